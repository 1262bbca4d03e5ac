-- The verdict in words: one row a run.
CREATE OR REPLACE TABLE attribute.verdict (
  -- Joins meta.run.run_id.
  run_id,
  -- finding, nothing_significant or cannot_be_known; nothing_significant as well, with low confidence, where what was found
  -- may be chance, files are cut short, or ranks were not recorded.
  kind,
  -- The answer in one sentence.
  headline,
  -- What it rests on: how much was judged, and how much time lies above the reference.
  explanation,
  -- high, medium or low: of the finding, or that there is none; high where it is certain that it cannot be known.
  confidence,
  -- What to do next.
  next_step
) AS
WITH judged AS (
  SELECT e.run_id, COUNT(*) AS iterations, AVG(i.duration_ns) AS duration_ns, AVG(e.excess_ns) AS excess_ns
  FROM attribute.excess AS e
  JOIN timeline.iteration AS i USING (run_id, iteration)
  WHERE NOT i.is_warmup
  GROUP BY ALL
),
counted AS (
  SELECT
    r.run_id,
    r.world_size,
    EXISTS (SELECT 1 FROM meta.issue AS u WHERE u.run_id = r.run_id AND u.code = 'kineto_truncated') AS is_cut_short,
    (SELECT COUNT(*) FROM meta.source AS s WHERE s.run_id = r.run_id AND s.status = 'used') AS sources,
    (SELECT COUNT(*) FROM meta.source AS s WHERE s.run_id = r.run_id AND s.kind = 'kineto') AS timelines,
    (SELECT COUNT(*) FROM fabric.process AS p WHERE p.run_id = r.run_id) AS processes,
    (SELECT COUNT(*) FROM fabric.finding AS f WHERE f.run_id = r.run_id AND f.severity = 'problem') AS problems,
    (SELECT ARG_MIN(f.summary, f.finding_id) FROM fabric.finding AS f
     WHERE f.run_id = r.run_id AND f.severity = 'problem') AS first_problem,
    (SELECT COUNT(*) FROM align.rank AS k WHERE k.run_id = r.run_id) AS ranks,
    (SELECT COUNT(*) FROM align.call AS c WHERE c.run_id = r.run_id) AS calls,
    (SELECT COUNT(*) FROM align.match AS m WHERE m.run_id = r.run_id) AS matched,
    (SELECT COUNT(*) FROM timeline.collective AS c WHERE c.run_id = r.run_id AND c.iteration IS NOT NULL) AS collectives,
    (SELECT COUNT(*) FROM align.step AS s WHERE s.run_id = r.run_id AND s.is_marked) AS steps
  FROM meta.run AS r
),
-- What execution traces say without a timeline beside them: at most three kinds of communicators, the largest first.
moved AS (
  SELECT
    run_id,
    SUM(call_count) AS calls,
    STRING_AGG(
      FORMAT(
        '{} calls{} a rank in {}', ROUND(call_count / rank_count)::BIGINT,
        COALESCE(' of together ' || FORMATREADABLEDECIMALSIZE(sent_bytes // rank_count), ' of unknown size'),
        COALESCE(LEFT(communicator, 40), 'groups without a name')
      ),
      '; ' ORDER BY sent_bytes DESC NULLS LAST, call_count DESC
    ) FILTER (WHERE place <= 3) AS largest
  FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY run_id ORDER BY sent_bytes DESC NULLS LAST, call_count DESC) AS place
    FROM graph.volume
  )
  GROUP BY run_id
),
graphs AS (
  SELECT
    q.run_id, COUNT(*) AS traces, SUM(q.node_count) AS nodes, BOOL_OR(q.label = 'modelled') AS is_modelled,
    COALESCE(ANY_VALUE(m.largest), 'they record no communication') AS largest
  FROM graph.quality AS q
  LEFT JOIN moved AS m USING (run_id)
  GROUP BY q.run_id
),
led AS (
  SELECT run_id, iteration, ARG_MAX(rank, stage) AS rank FROM attribute.frontier GROUP BY run_id, iteration
),
leader AS (
  SELECT run_id, rank, COUNT(*) AS led_count, SUM(COUNT(*)) OVER (PARTITION BY run_id) AS iteration_count
  FROM led
  GROUP BY run_id, rank
  QUALIFY ROW_NUMBER() OVER (PARTITION BY run_id ORDER BY COUNT(*) DESC, rank) = 1
),
state AS (
  SELECT
    c.*, l.rank AS leading_rank, l.led_count, l.iteration_count, j.iterations, j.duration_ns, j.excess_ns,
    CASE WHEN j.duration_ns < 1e6 THEN 1e3 ELSE 1e6 END AS unit_ns,
    CASE WHEN j.duration_ns < 1e6 THEN 'µs' ELSE 'ms' END AS unit,
    CASE WHEN j.excess_ns < 0 THEN 'below' ELSE 'above' END AS side,
    CASE a.reference
      WHEN 'median' THEN 'at median durations'
      WHEN 'first_quartile' THEN 'at the first quartile of its durations'
      ELSE 'on the rank with the least work'
    END AS on_time,
    f.summary, f.confidence AS finding_confidence, f.next_step,
    g.traces, g.nodes, g.largest, g.is_modelled,
    CASE
      WHEN c.timelines = 0 AND (c.processes > 0 OR c.problems > 0) THEN 'logs_alone'
      WHEN c.timelines = 0 AND g.traces > 0 THEN 'graphs_alone'
      WHEN c.sources = 0 OR c.timelines = 0 THEN 'no_timeline'
      WHEN c.ranks = 0 THEN 'rank_unknown'
      WHEN c.ranks = 1 THEN 'one_rank'
      WHEN c.calls = 0 THEN 'no_communication'
      WHEN c.collectives = 0 THEN 'unmatched'
      WHEN j.run_id IS NULL THEN 'irregular'
      WHEN f.confidence = 'high' THEN 'finding'
      -- Where most calls have no partner, who waits for whom is seen of the least part only.
      WHEN 2 * c.matched < c.calls THEN 'mostly_unmatched'
      WHEN f.confidence = 'medium' AND c.is_cut_short THEN 'cut_short'
      WHEN f.confidence = 'medium' THEN 'finding'
      WHEN f.share >= 0.1 THEN 'uncertain'
      WHEN c.ranks < c.world_size THEN 'partly_seen'
      ELSE 'nothing_significant'
    END AS state
  FROM counted AS c
  CROSS JOIN meta.analysis AS a
  LEFT JOIN judged AS j USING (run_id)
  LEFT JOIN graphs AS g USING (run_id)
  LEFT JOIN leader AS l USING (run_id)
  LEFT JOIN attribute.finding AS f ON f.run_id = c.run_id AND f.finding_id = 0
)
SELECT
  run_id,
  CASE
    WHEN state IN ('finding', 'nothing_significant') THEN state
    -- What may be chance is not significant, however much it is.
    WHEN state IN ('uncertain', 'partly_seen', 'cut_short') THEN 'nothing_significant'
    ELSE 'cannot_be_known'
  END,
  CASE state
    WHEN 'no_timeline' THEN 'No file of this run holds a timeline.'
    WHEN 'graphs_alone' THEN
      'Execution traces alone tell what ranks issue and how large it is, not when: who waits for whom cannot be known from this.'
    WHEN 'logs_alone' THEN
      'Logs alone tell how ranks are connected, not how long they wait: what it costs cannot be known from this.'
    WHEN 'rank_unknown' THEN 'No trace of this run says which rank it belongs to: who waits for whom cannot be known from this.'
    WHEN 'one_rank' THEN 'Only one rank was recorded: who waits for whom cannot be known from this.'
    WHEN 'no_communication' THEN
      'No communication between ranks was recorded: who waits for whom cannot be known from this.'
    WHEN 'unmatched' THEN
      'The collectives of different ranks cannot be matched with certainty: who waits for whom cannot be known from this.'
    WHEN 'mostly_unmatched' THEN
      'Most calls of communication cannot be matched between ranks: who waits for whom cannot be known from this.'
    WHEN 'irregular' THEN
      'No iteration was recorded in the same form by all ranks: delays cannot be told apart from the program.'
    WHEN 'finding' THEN summary
    WHEN 'uncertain' THEN 'Nothing stands out with certainty; what costs most may be chance: ' || summary
    WHEN 'cut_short' THEN 'Nothing is certain, as files are cut short; from what is left: ' || summary
    WHEN 'partly_seen' THEN
      FORMAT(
        'Nothing significant on the {} of {} ranks recorded; whether the others are late cannot be known from this.',
        ranks, world_size
      )
    ELSE 'Nothing significant: no rank and no transfer stands out of this run''s own noise.'
  END,
  CASE
    WHEN state = 'logs_alone' AND problems = 0 THEN
      'They show no problem of configuration; see the section on the fabric.'
    WHEN state = 'logs_alone' THEN
      FORMAT(
        'They show {} problem{}, none of them a measured delay; first: {}', problems,
        CASE WHEN problems = 1 THEN '' ELSE 's' END, first_problem
      )
    WHEN state = 'graphs_alone' THEN
      FORMAT(
        'Read: {} trace{} of {} nodes; {}.{}', traces, CASE WHEN traces = 1 THEN '' ELSE 's' END,
        CAST(nodes AS BIGINT), largest,
        CASE WHEN is_modelled THEN ' Durations in them are a generator''s, not measured.' ELSE '' END
      )
    WHEN state IN ('unmatched', 'mostly_unmatched', 'irregular') AND iteration_count >= 3 AND led_count >= 0.6 * iteration_count THEN
      FORMAT(
        'From durations alone, without a common clock: rank {} has most work of its own in {} of {} iterations. Whether it delays the others, these files do not tell.',
        leading_rank, led_count, CAST(iteration_count AS BIGINT)
      )
    WHEN state NOT IN ('finding', 'nothing_significant', 'uncertain', 'partly_seen', 'cut_short') THEN
      'The data-quality panel (meta.issue) lists what was found and what was left out.'
    WHEN iterations = 1 THEN
      FORMAT(
        'One iteration was judged; it takes {:.1f} {}, {:.1f} {} {} what the same work takes {}.',
        duration_ns / unit_ns, unit, ABS(excess_ns) / unit_ns, unit, side, on_time
      )
    ELSE
      FORMAT(
        '{} iterations were judged; they take {:.1f} {} on average, {:.1f} {} {} what the same work takes {}.',
        iterations, duration_ns / unit_ns, unit, ABS(excess_ns) / unit_ns, unit, side, on_time
      )
  END,
  CASE
    WHEN state = 'finding' THEN finding_confidence
    -- That something cannot be known from these files is certain.
    WHEN state IN ('uncertain', 'partly_seen', 'cut_short') THEN 'low'
    WHEN state <> 'nothing_significant' THEN 'high'
    WHEN iterations >= 10 THEN 'high'
    WHEN iterations >= 3 THEN 'medium'
    ELSE 'low'
  END,
  CASE
    WHEN state = 'finding' THEN next_step
    WHEN state = 'cut_short' THEN 'Give the whole files (a job that is killed while it writes leaves part of them).'
    WHEN state = 'logs_alone' THEN
      'Record a timeline with torch.profiler on all ranks beside these logs; both in one folder are joined.'
    WHEN state = 'graphs_alone' THEN
      'Record a timeline with torch.profiler on all ranks in the same steps (profile(..., execution_trace_observer=...) writes both); both in one folder are joined.'
    WHEN state = 'rank_unknown' THEN
      'Record with torch.distributed initialised, or name the files or their folders by rank (rank0.json, rank1.json).'
    WHEN state IN ('no_timeline', 'one_rank', 'partly_seen') THEN
      'Record the same steps on all ranks, one trace file a rank, and give the folder that holds them.'
    WHEN state IN ('no_communication', 'unmatched', 'mostly_unmatched') THEN
      'Record with torch.profiler on PyTorch 2.4 or later, all ranks in the same steps, with activities CPU and CUDA.'
    WHEN state = 'irregular' AND steps = 0 THEN
      'Call profiler.step() in the training loop, so that the trace marks its iterations.'
    WHEN state = 'irregular' THEN
      'Record steps in which all ranks run the same program; stages of a pipeline are not told apart yet.'
    WHEN state = 'uncertain' AND iterations >= 10 THEN
      'Record more iterations than these, so that chance can be told from a cause; then: ' || next_step
    WHEN iterations < 10 THEN
      'Record ten or more steps (torch.profiler.schedule with active=10), so that rare delays can be told from noise.'
    ELSE 'If it still scales badly, compare with a run at another scale: the time per collective is then the question.'
  END
FROM state
ORDER BY run_id
