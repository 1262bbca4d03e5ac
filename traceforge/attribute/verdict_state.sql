-- What the verdict rests on: one row a run; `attribute.verdict` puts it in words.
-- Scope: run
CREATE OR REPLACE TABLE attribute.verdict_state (
  -- Joins meta.run.run_id.
  run_id,
  -- What can be said: hang, hang_unknown, no_hang (of flight recorder dumps without a timeline),
  -- logs_alone, graphs_alone, no_timeline, rank_unknown, one_rank, no_communication, unmatched, ranks_missing, irregular,
  -- mostly_unmatched (all of them: it cannot be known), finding, cut_short, uncertain, partly_seen or nothing_significant.
  state,
  -- finding, nothing_significant or cannot_be_known, as in attribute.verdict.
  kind,
  -- high, medium or low, as in attribute.verdict.
  confidence,
  -- Number of iterations judged; NULL where there are none.
  iterations,
  -- Number of recorded iterations beside those of warm-up, whole or not.
  recorded_iterations,
  -- Mean duration of those judged, ns.
  duration_ns,
  -- Mean time from the start of one to the start of the next, ns, as in attribute.pace.
  every_ns,
  -- Their mean time above the reference, ns.
  excess_ns,
  -- The causes that own most of that, with their shares of an iteration, largest first; NULL where none owns
  -- enough to be reported.
  spread,
  -- Number of ranks with a trace.
  ranks,
  -- Number of ranks of the job, as far as the files say.
  world_size,
  -- Number of connections between ranks that the logs show (fabric.edge).
  connections,
  -- What the logs show first that need not be a problem (fabric.finding); NULL if nothing.
  first_notice,
  -- Number of problems of configuration (fabric.finding).
  problems,
  -- Summary of the first of them; NULL where there is none.
  first_problem,
  -- What to do about it; NULL where there is none.
  first_problem_step,
  -- Number of execution traces.
  graph_traces,
  -- Their nodes.
  graph_nodes,
  -- Whether a generator made them, so that their durations are not measured.
  is_modelled,
  -- Rank with most work of its own in most iterations by attribute.frontier; NULL where it leads in too few to name it.
  leading_rank,
  -- Number of iterations in which it leads.
  led_iterations,
  -- Number of iterations in attribute.frontier.
  frontier_iterations,
  -- Whether the traces mark steps.
  has_steps,
  -- Whether an iteration is not judged as device work of a rank has no time there.
  has_untimed_work,
  -- The smallest delay of any one rank that would have been found (attribute.sight, the worst cause), ns an iteration; NULL
  -- where none would.
  rank_sight_ns,
  -- The same of a rank's pauses alone, where it cannot be told of what it computes, as no other rank has its role; else
  -- NULL.
  pause_sight_ns,
  -- The same of a host; NULL where there are not several, or none would be found.
  host_sight_ns,
  -- The same of an episode of slow transfers.
  transfer_sight_ns,
  -- Summary of the largest delay that is no chance but too small to count; NULL where there is none.
  small_summary,
  -- True of a pipeline with one replica: a stage is held against its own other iterations, so that one that computes
  -- longer in all of them does not show.
  is_one_replica,
  -- Whether no file says how many ranks the job has, nor which belong to a group: others may not have been recorded.
  is_size_assumed,
  -- Whether ranks are stages of a pipeline.
  has_stages,
  -- Whether dumps of all ranks show a hang that a job which runs does not show; NULL without dumps.
  is_sure_hang
) AS
WITH limits AS MATERIALIZED (
  SELECT
    MAX(value) FILTER (WHERE name = 'attribute.MATCHED_SHARE') AS matched_share,
    MAX(value) FILTER (WHERE name = 'attribute.UNCERTAIN_SHARE') AS uncertain_share,
    MAX(value) FILTER (WHERE name = 'attribute.SURE_NEGATIVE_ITERATIONS') AS sure_iterations,
    MAX(value) FILTER (WHERE name = 'attribute.FEW_ITERATIONS') AS few_iterations,
    MAX(value) FILTER (WHERE name = 'attribute.SHARP_SIGHT_SHARE') AS sharp_sight_share,
    MAX(value) FILTER (WHERE name = 'attribute.BLURRED_SIGHT_SHARE') AS blurred_sight_share,
    MAX(value) FILTER (WHERE name = 'attribute.MEDIUM_P_VALUE') AS medium_p_value,
    MAX(value) FILTER (WHERE name = 'attribute.LEADING_SHARE') AS leading_share,
    MAX(value) FILTER (WHERE name = 'attribute.REPORTED_SHARE') AS reported_share,
    MAX(value) FILTER (WHERE name = 'attribute.SPREAD_SHARE') AS spread_share,
    MAX(value) FILTER (WHERE name = 'attribute.HINT_PART') AS hint_part
  FROM meta.threshold
),
counted AS (
  SELECT
    r.run_id,
    (SELECT COUNT(*) FROM timeline.iteration AS i WHERE i.run_id = r.run_id AND NOT i.is_warmup) AS recorded_iterations,
    -- Ranks that numbers of files or members of groups show to be missing are as missing as those of a stated size.
    COALESCE(r.world_size, CASE WHEN v.job_ranks > v.ranks THEN v.job_ranks END) AS world_size,
    EXISTS (
      SELECT 1 FROM meta.issue AS u
      JOIN meta.source AS s ON s.run_id = u.run_id AND u.code = s.kind || '_truncated'
      JOIN align.file AS f ON f.run_id = s.run_id AND f.source_id = s.source_id
      WHERE u.run_id = r.run_id AND f.is_timeline
    ) AS is_cut_short,
    (SELECT COUNT(*) FROM meta.source AS s WHERE s.run_id = r.run_id AND s.status = 'used') AS sources,
    (SELECT COUNT(*) FROM align.file AS f WHERE f.run_id = r.run_id AND f.is_timeline) AS timelines,
    (SELECT COUNT(*) FROM fabric.process AS p WHERE p.run_id = r.run_id) AS processes,
    (SELECT COUNT(*) FROM fabric.edge AS e WHERE e.run_id = r.run_id) AS connections,
    (SELECT ARG_MIN(f.summary, f.finding_id) FROM fabric.finding AS f
     WHERE f.run_id = r.run_id AND f.severity = 'notice') AS first_notice,
    (SELECT COUNT(*) FROM fabric.finding AS f WHERE f.run_id = r.run_id AND f.severity = 'problem') AS problems,
    (SELECT ARG_MIN(f.summary, f.finding_id) FROM fabric.finding AS f
     WHERE f.run_id = r.run_id AND f.severity = 'problem') AS first_problem,
    (SELECT ARG_MIN(f.next_step, f.finding_id) FROM fabric.finding AS f
     WHERE f.run_id = r.run_id AND f.severity = 'problem') AS first_problem_step,
    v.ranks,
    COALESCE((SELECT k.calls FROM align.partner_count AS k WHERE k.run_id = r.run_id), 0) AS calls,
    (SELECT k.unmatched FROM align.partner_count AS k WHERE k.run_id = r.run_id) AS unmatched,
    EXISTS (SELECT 1 FROM timeline.mesh AS m WHERE m.run_id = r.run_id AND m.axis = 'pp') AND NOT EXISTS (
      SELECT 1 FROM timeline.mesh AS m
      WHERE m.run_id = r.run_id AND m.coordinate > 0 AND m.axis NOT IN ('pp', 'tp', 'cp', 'ep')
    ) AND (
      -- Where the rest of the mesh is not known, ranks of a stage may be replicas.
      EXISTS (SELECT 1 FROM timeline.mesh AS m WHERE m.run_id = r.run_id AND m.axis IN ('tp', 'cp', 'ep'))
      OR NOT EXISTS (SELECT 1 FROM timeline.role AS o WHERE o.run_id = r.run_id GROUP BY o.stage HAVING COUNT(*) > 1)
    ) AS is_one_replica,
    r.world_size IS NULL AND COALESCE(v.job_ranks <= v.ranks, true) AND NOT EXISTS (
      SELECT 1 FROM align.communicator AS g WHERE g.run_id = r.run_id AND g.origin <> 'assumed'
    ) AS is_size_assumed,
    (SELECT COUNT(*) FROM timeline.collective AS c WHERE c.run_id = r.run_id AND c.iteration IS NOT NULL) AS collectives,
    EXISTS (SELECT 1 FROM align.step AS s WHERE s.run_id = r.run_id AND s.is_marked) AS has_steps,
    EXISTS (
      SELECT 1 FROM timeline.untimed_work AS w
      JOIN meta.threshold AS t ON t.name = 'timeline.MOST_UNTIMED_SHARE'
      WHERE w.run_id = r.run_id AND w.untimed > t.value * w.events
    ) AS has_untimed_work
  FROM meta.run AS r
  LEFT JOIN timeline.coverage AS v ON v.run_id = r.run_id
),
graphs AS (
  SELECT
    run_id, COUNT(*) AS graph_traces, CAST(SUM(node_count) AS BIGINT) AS graph_nodes,
    BOOL_OR(label = 'modelled') AS is_modelled
  FROM graph.quality
  GROUP BY run_id
),
led AS (
  SELECT run_id, iteration, ARG_MAX(rank, stage) AS rank FROM attribute.frontier GROUP BY run_id, iteration
),
leader AS (
  SELECT
    run_id, rank AS leading_rank, COUNT(*) AS led_iterations,
    CAST(SUM(COUNT(*)) OVER (PARTITION BY run_id) AS BIGINT) AS frontier_iterations
  FROM led
  CROSS JOIN limits AS t
  GROUP BY run_id, rank, t.few_iterations, t.leading_share
  QUALIFY ROW_NUMBER() OVER (PARTITION BY run_id ORDER BY COUNT(*) DESC, rank) = 1
    AND frontier_iterations >= t.few_iterations AND led_iterations >= t.leading_share * frontier_iterations
),
-- Of each kind the cause that is seen worst; one that is not seen at all makes it unknown.
seen AS (
  SELECT
    run_id,
    IF(COUNT(*) FILTER (WHERE subject_kind = 'rank' AND smallest_delay_ns_per_iteration IS NULL) = 0,
      MAX(smallest_delay_ns_per_iteration) FILTER (WHERE subject_kind = 'rank'), NULL) AS rank_sight_ns,
    IF(COUNT(*) FILTER (WHERE subject_kind = 'rank' AND smallest_delay_ns_per_iteration IS NULL) > 0,
      MAX(smallest_delay_ns_per_iteration) FILTER (WHERE subject_kind = 'rank'), NULL) AS pause_sight_ns,
    IF(COUNT(*) FILTER (WHERE subject_kind = 'host' AND smallest_delay_ns_per_iteration IS NULL) = 0,
      MAX(smallest_delay_ns_per_iteration) FILTER (WHERE subject_kind = 'host'), NULL) AS host_sight_ns,
    MAX(smallest_delay_ns_per_iteration) FILTER (WHERE cause = 'slow_transfer' AND pattern = 'episode') AS transfer_sight_ns
  FROM attribute.sight
  GROUP BY run_id
),
owned AS (
  SELECT d.run_id, d.cause, SUM(d.delay_ns) / (j.iterations * j.duration_ns) AS share
  FROM attribute.delay AS d
  JOIN timeline.iteration AS i ON i.run_id = d.run_id AND i.iteration = d.iteration AND NOT i.is_warmup
  JOIN attribute.pace AS j ON j.run_id = d.run_id
  GROUP BY d.run_id, d.cause, j.iterations, j.duration_ns
),
spread AS (
  SELECT o.run_id,
    STRING_AGG(
      -- Two digits, as shares have everywhere: 9.0 and 33. One digit is one letter, the pattern _.
      FORMAT(
        IF(FORMAT('{:.0f}', 100 * o.share) LIKE '_', '{} {:.1f} %', '{} {:.0f} %'),
        REPLACE(o.cause, '_', ' '), 100 * o.share
      ),
      ', ' ORDER BY o.share DESC, o.cause
    ) AS spread
  FROM owned AS o
  CROSS JOIN limits AS t
  WHERE o.share >= t.reported_share
  GROUP BY o.run_id
),
small AS (
  SELECT f.run_id, ARG_MAX(f.summary, f.delay_ns_per_iteration) AS small_summary
  FROM attribute.finding AS f
  CROSS JOIN limits AS t
  -- Of what the job does not end earlier without, attribute/costless.py says so.
  WHERE f.confidence = 'low' AND f.p_value <= t.medium_p_value AND f.delay_low_ns > 0 AND f.gain_if_fixed > 0
  GROUP BY f.run_id
),
found AS (
  SELECT
    c.*, e.rank_sight_ns, e.pause_sight_ns, e.host_sight_ns, e.transfer_sight_ns, m.small_summary, p.spread, j.iterations, j.duration_ns, j.every_ns, j.excess_ns, g.graph_traces, g.graph_nodes, g.is_modelled,
    l.leading_rank, l.led_iterations, l.frontier_iterations, f.confidence AS finding_confidence,
    -- Ranks that wait for each other, or inside one transfer, may also be seen in a job that runs.
    h.kind IN ('mismatch', 'absent', 'stuck') AND LEN(h.without_dump) = 0 AS is_sure_hang,
    CASE
      WHEN c.timelines = 0 AND h.kind IN ('none', 'unknown') THEN IF(h.kind = 'none', 'no_hang', 'hang_unknown')
      WHEN c.timelines = 0 AND h.kind IS NOT NULL THEN 'hang'
      WHEN c.timelines = 0 AND (c.processes > 0 OR c.problems > 0 OR c.first_notice IS NOT NULL) THEN 'logs_alone'
      WHEN c.timelines = 0 AND g.graph_traces > 0 THEN 'graphs_alone'
      WHEN c.sources = 0 OR c.timelines = 0 THEN 'no_timeline'
      WHEN c.ranks = 0 THEN 'rank_unknown'
      WHEN c.ranks = 1 THEN 'one_rank'
      WHEN c.calls = 0 THEN 'no_communication'
      WHEN c.collectives = 0 THEN 'unmatched'
      WHEN j.run_id IS NULL AND c.ranks < c.world_size THEN 'ranks_missing'
      WHEN j.run_id IS NULL THEN 'irregular'
      WHEN f.confidence = 'high' THEN 'finding'
      -- Where most calls have no partner, little is seen of who waits for whom.
      WHEN c.calls - c.unmatched < t.matched_share * c.calls THEN 'mostly_unmatched'
      WHEN f.confidence = 'medium' AND c.is_cut_short THEN 'cut_short'
      WHEN f.confidence = 'medium' THEN 'finding'
      WHEN f.delay_ns_per_iteration >= t.uncertain_share * j.duration_ns THEN 'uncertain'
      -- Where most of much delay may be of one, it is not said to be spread.
      WHEN j.excess_ns >= t.spread_share * j.duration_ns AND f.delay_ns_per_iteration >= t.hint_part * j.excess_ns
        THEN 'uncertain'
      WHEN c.ranks < c.world_size THEN 'partly_seen'
      ELSE 'nothing_significant'
    END AS state
  FROM counted AS c
  CROSS JOIN limits AS t
  LEFT JOIN attribute.pace AS j USING (run_id)
  LEFT JOIN graphs AS g USING (run_id)
  LEFT JOIN leader AS l USING (run_id)
  LEFT JOIN fabric.hang AS h ON h.run_id = c.run_id AND h.place = 0
  LEFT JOIN seen AS e USING (run_id)
  LEFT JOIN small AS m USING (run_id)
  LEFT JOIN spread AS p USING (run_id)
  LEFT JOIN attribute.finding AS f ON f.run_id = c.run_id AND f.finding_id = 0
)
SELECT
  f.run_id, f.state,
  CASE
    WHEN f.state IN ('finding', 'nothing_significant') THEN f.state
    WHEN f.state = 'hang' THEN 'finding'
    WHEN f.state = 'no_hang' THEN 'nothing_significant'
    -- What may be chance is not significant, however much it is.
    WHEN f.state IN ('uncertain', 'partly_seen', 'cut_short') THEN 'nothing_significant'
    ELSE 'cannot_be_known'
  END,
  CASE
    WHEN f.state = 'finding' THEN f.finding_confidence
    WHEN f.state = 'hang' AND NOT f.is_sure_hang THEN 'medium'
    WHEN f.state IN ('uncertain', 'partly_seen', 'cut_short') THEN 'low'
    -- A stage that is always slow would not be seen.
    WHEN f.state = 'nothing_significant' AND f.is_one_replica THEN 'low'
    -- That something cannot be known from these files is certain.
    WHEN f.state <> 'nothing_significant' THEN 'high'
    -- To 0.1 % as it is said: sizes are tried a hair above the steps of their grid, some of which are these limits.
    WHEN f.iterations < t.few_iterations
      OR COALESCE(t.blurred_sight_share <= ROUND(f.rank_sight_ns / f.duration_ns, 3), true) THEN 'low'
    -- A negative is as sure as what it would have found is small; ranks that no file tells of may be late, too.
    WHEN f.iterations >= t.sure_iterations AND NOT f.is_size_assumed AND t.sharp_sight_share
      >= ROUND(GREATEST(f.rank_sight_ns, COALESCE(f.transfer_sight_ns, f.duration_ns)) / f.duration_ns, 3) THEN 'high'
    ELSE 'medium'
  END,
  f.iterations, f.recorded_iterations, f.duration_ns, f.every_ns, f.excess_ns, f.spread, f.ranks, f.world_size,
  f.connections, f.first_notice,
  f.problems, f.first_problem,
  f.first_problem_step, f.graph_traces, f.graph_nodes, f.is_modelled, f.leading_rank, f.led_iterations, f.frontier_iterations, f.has_steps, f.has_untimed_work,
  f.rank_sight_ns, f.pause_sight_ns, f.host_sight_ns, f.transfer_sight_ns, f.small_summary, f.is_one_replica, f.is_size_assumed,
  EXISTS (SELECT 1 FROM timeline.mesh AS m WHERE m.run_id = f.run_id AND m.axis = 'pp'), f.is_sure_hang
FROM found AS f
CROSS JOIN limits AS t
ORDER BY f.run_id
