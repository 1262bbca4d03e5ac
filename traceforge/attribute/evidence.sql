-- What speaks for and against each finding, in words with numbers.
-- Scope: run
CREATE OR REPLACE TABLE attribute.evidence (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins attribute.finding.finding_id within the run.
  finding_id,
  -- for or against.
  direction,
  -- One sentence.
  statement,
  -- Order in which the statements of a finding are shown.
  place
) AS
WITH limits AS (
  SELECT
    MAX(value) FILTER (WHERE name = 'attribute.HIGH_DOMINANCE') AS high_dominance,
    MAX(value) FILTER (WHERE name = 'attribute.CHANCE_P_VALUE') AS chance_p_value,
    MAX(value) FILTER (WHERE name = 'attribute.LEAST_SHOWN_P_VALUE') AS least_p_value,
    MAX(value) FILTER (WHERE name = 'attribute.LAST_SHARE') AS last_share,
    MAX(value) FILTER (WHERE name = 'attribute.FEW_ITERATIONS') AS few_iterations,
    MAX(value) FILTER (WHERE name = 'attribute.HIDDEN_GAIN') AS hidden_gain,
    MAX(value) FILTER (WHERE name = 'attribute.CONFIGURATION_STATEMENTS') AS configuration_statements
  FROM meta.threshold
),
parts AS (
  SELECT p.run_id, p.finding_id,
    STRING_AGG(FORMAT('{} {:.1f} ms', REPLACE(p.cause, '_', ' '), p.delay_ns_per_iteration / 1e6), ', '
      ORDER BY p.delay_ns_per_iteration DESC, p.cause) AS listed
  FROM attribute.finding_part AS p
  GROUP BY ALL
  HAVING COUNT(*) > 1
),
-- Collectives that its ranks take part in (of a job of many groups most are not theirs), and at how many one is last.
collectives AS (
  SELECT f.run_id, f.finding_id, COUNT(*) AS total, COUNT(*) FILTER (WHERE LIST_CONTAINS(f.ranks, c.last_rank)) AS last_count
  FROM attribute.finding AS f
  JOIN timeline.communicator AS g ON g.run_id = f.run_id AND LIST_HAS_ANY(g.ranks, f.ranks)
  JOIN timeline.collective AS c ON c.run_id = g.run_id AND c.communicator_id = g.communicator_id
  WHERE c.iteration IS NOT NULL
  GROUP BY ALL
),
configuration AS (
  SELECT c.run_id, c.finding_id, 11 + c.place AS place, g.summary, s.path, g.line,
    LIST_FILTER(g.ranks, LAMBDA rank: NOT LIST_CONTAINS(m.ranks, rank)) AS others
  FROM attribute.configuration AS c
  JOIN attribute.finding AS m USING (run_id, finding_id)
  JOIN fabric.finding AS g ON g.run_id = c.run_id AND g.finding_id = c.fabric_finding_id
  JOIN meta.source AS s ON s.source_id = g.source_id
  CROSS JOIN limits AS t
  WHERE c.place < t.configuration_statements
),
differing AS (
  SELECT *, LEFT(name, 80) AS what, attribute.duration_text(excess_ns_per_iteration) AS more,
    attribute.duration_text(call_duration_ns) AS call, attribute.duration_text(peer_call_duration_ns) AS peer_call,
    attribute.duration_text(gap_call_ns_per_iteration) AS in_gap_call,
    IF(ROUND(calls) = 1, '1 call', FORMAT('{:.0f} calls', calls)) AS counted
  FROM attribute.finding_difference
  WHERE place = 1 AND explains
),
device AS (
  SELECT *,
    FORMAT('{:,.0f}', sm_clock_mhz) AS clock, FORMAT('{:,.0f}', peer_sm_clock_mhz) AS peer_clock,
    CASE WHEN readings = 1 THEN '1 reading' ELSE FORMAT('{} readings', readings) END
      || CASE
        WHEN status IN ('too_coarse', 'elsewhere', 'no_clock') THEN ''
        WHEN NOT is_timed THEN ' of its tool, which prints no times'
        WHEN is_zone_guessed THEN ', local times taken for UTC'
        ELSE ''
      END AS seen
  FROM attribute.finding_device
),
-- All that is known of a finding in one row.
known AS (
  SELECT f.*, t.*, p.listed, c.total, c.last_count,
    attribute.duration_text(f.isolated_cost_ns) AS isolated_cost, attribute.duration_text(f.affected_delay_ns) AS hit,
    -- A path is nobody's work: its ranks are not late.
    f.subject_kind IN ('rank', 'ranks', 'host', 'stage') AND f.cause <> 'slow_path' AS is_work,
    IF(f.subject_kind = 'ranks', 'these ranks''', FORMAT('{} {}''s', f.subject_kind, f.subject)) AS whose,
    CASE f.subject_kind
      WHEN 'rank' THEN FORMAT('Rank {}', f.subject)
      WHEN 'ranks' THEN 'One of these ranks'
      ELSE FORMAT('A rank of {} {}', f.subject_kind, f.subject)
    END AS who,
    COUNT(*) FILTER (WHERE f.confidence <> 'low') OVER (PARTITION BY f.run_id) AS counted
  FROM attribute.finding AS f
  CROSS JOIN limits AS t
  LEFT JOIN parts AS p ON p.run_id = f.run_id AND p.finding_id = f.finding_id
  LEFT JOIN collectives AS c ON c.run_id = f.run_id AND c.finding_id = f.finding_id
),
-- Of each finding all that may be said, NULL where it is not so.
sayable AS (
  SELECT run_id, finding_id, UNNEST([
    {'place': 1, 'direction': 'for', 'statement': CASE
      WHEN iterations = 1 THEN FORMAT('It stands out in the one iteration judged, by {}.', hit)
      WHEN affected_iterations = 1 THEN FORMAT('It stands out in 1 of {} iterations judged, by {}.', iterations, hit)
      ELSE FORMAT('It stands out in {} of {} iterations judged, by {} each.', affected_iterations, iterations, hit) END},
    {'place': 2, 'direction': 'for', 'statement': CASE WHEN is_work AND dominance >= high_dominance
      THEN FORMAT('{:.0f} % of the delay by this cause, over all ranks, is {}.', 100 * dominance, whose) END},
    {'place': 3, 'direction': 'for', 'statement': CASE
      WHEN p_value > chance_p_value THEN NULL
      WHEN p_value < least_p_value THEN FORMAT('Chance explanation: p < {:.4f}.', least_p_value)
      ELSE FORMAT('Chance explanation: p = {:.2g}.', p_value) END},
    {'place': 2, 'direction': 'for', 'statement': CASE WHEN cause = 'slow_path' AND subject_kind IN ('host', 'nic')
      THEN 'All communicators that are slower than their peers pass it, and none at pace does.' END},
    {'place': 4, 'direction': IF(last_count >= last_share * total, 'for', 'against'), 'statement': CASE
      WHEN is_work AND pattern = 'persistent'
      THEN FORMAT('{} arrives last at {:,} of {:,} collectives.', who, last_count, total) END},
    {'place': 5, 'direction': 'against', 'statement': CASE WHEN is_work AND dominance < high_dominance
      THEN FORMAT('Only {:.0f} % of the delay by this cause is {}; other ranks have it too.', 100 * dominance, whose) END},
    {'place': 2, 'direction': 'for', 'statement': FORMAT('In an iteration it consists of: {}.', listed)},
    -- One iteration cannot tell chance from cause either way; that is said below.
    {'place': 6, 'direction': 'against', 'statement': CASE WHEN p_value > chance_p_value AND iterations > 1
      THEN FORMAT('Chance explanation: p = {:.2g} that one of the ranks gathers as much.', p_value) END},
    {'place': 7, 'direction': 'against', 'statement': CASE WHEN iterations < few_iterations
      THEN FORMAT('Only {} judged; whether it recurs cannot be known from this trace.',
        IF(iterations = 1, 'one iteration was', 'two iterations were')) END},
    {'place': 8, 'direction': 'against', 'statement': CASE WHEN gain_if_fixed < hidden_gain * share
      THEN FORMAT('Without it the replayed job would be only {:.1f} % faster: other lateness takes its place.',
        100 * gain_if_fixed) END},
    {'place': 10, 'direction': 'against', 'statement': IF(cause = 'slow_transfer',
      FORMAT('It may be a by-product of {}: transfers are slow when ranks wait for that, and hardly else.',
        REPLACE(companion_of, '_', ' ')),
      FORMAT('It may be a by-product of {}, by far the greater delay of the same {}.',
        REPLACE(companion_of, '_', ' '), subject_kind))},
    {'place': 12, 'direction': 'for', 'statement': CASE
      WHEN confidence = 'low' OR amplification IS NULL OR isolated_cost_ns <= 0 THEN NULL
      -- Of one rank nobody waits.
      WHEN ROUND(amplification, 1) = 0 THEN FORMAT('With this delay alone, an iteration would take {} longer.', isolated_cost)
      ELSE FORMAT('Each second lost here costs {:.1f} rank-seconds of waiting; with this delay alone, an iteration would take {} longer.',
        amplification, isolated_cost) END},
    {'place': 14, 'direction': 'for', 'statement': CASE WHEN confidence <> 'low' AND counted > 1
      THEN FORMAT('Without all findings of this run together the replayed job would be {} % faster.',
        IF(gain_if_all_fixed < 1, FORMAT('{:.1f}', 100 * gain_if_all_fixed), FORMAT('{:,.0f}', 100 * gain_if_all_fixed))) END},
    {'place': 9, 'direction': 'against', 'statement': CASE
      WHEN subject_kind = 'job' AND pattern = 'transient' AND mode = 'fabric_contention'
      THEN 'The affected iterations do not follow one another, as they would in an episode on the fabric.' END},
    {'place': 13, 'direction': 'against', 'statement': cost_note}
  ], max_depth := 2)
  FROM known
),
statement AS (
  SELECT run_id, finding_id, place, direction, statement FROM sayable WHERE statement IS NOT NULL
  UNION ALL
  SELECT run_id, finding_id, 0, 'for',
    CASE
      WHEN kind = 'gap' THEN FORMAT(
        'The device of rank {} is idle for {} an iteration longer than the median rank''s; cause of the gaps: {}{}.',
        rank, more,
        IF(name = 'late_launch', 'nothing launched in time', REPLACE(name, '_', ' ')),
        COALESCE(FORMAT(', {} of them in {}', in_gap_call, LEFT(gap_call, 80)), ''))
      WHEN kind = 'new_operation' THEN FORMAT(
        'Rank {} spends {} an iteration in {} ({}); the median rank makes none.', rank, more, what, counted)
      WHEN kind = 'more_work' AND ROUND(calls) <> ROUND(peer_calls) THEN FORMAT(
        'Rank {} makes {} of {} an iteration, the median rank {:.0f}: {} more.',
        rank, counted, what, peer_calls, more)
      WHEN kind = 'more_work' THEN FORMAT(
        'Rank {} does more in as many calls of {}: {} an iteration more than the median rank.', rank, what, more)
      ELSE FORMAT(
        '{} takes {} a call on rank {} and {} on the median rank: {} an iteration.', what, call, rank, peer_call, more)
    END
  FROM differing
  UNION ALL
  SELECT f.run_id, f.finding_id, 11, 'against',
    FORMAT('{} {} too, yet the communicators there keep the pace of their peers: {}',
      CASE WHEN LEN(g.others) = 1 THEN 'Rank' ELSE 'Ranks' END,
      LIST_AGGREGATE(g.others, 'string_agg', ', ') || CASE WHEN LEN(g.others) = 1 THEN ' has it' ELSE ' have it' END, g.summary)
  FROM attribute.finding AS f
  JOIN configuration AS g USING (run_id, finding_id)
  WHERE f.cause = 'slow_path' AND LEN(g.others) > 0
  UNION ALL
  SELECT run_id, finding_id, place, 'for',
    FORMAT('{} [configuration, not a measured delay: {}, line {}]', summary, path, line)
  FROM configuration
  UNION ALL
  SELECT run_id, finding_id, 4, 'for',
    FORMAT('Telemetry: device clock {} against {} MHz of the median peer{} ({}); it accounts for {:.0f} % longer compute.',
      clock, peer_clock,
      CASE
        WHEN held_by IS NULL THEN ', no reason recorded'
        WHEN held_share IS NULL THEN ', ' || held_by
        ELSE FORMAT(', {} in {:.0f} % of readings', held_by, 100 * held_share)
      END,
      seen, 100 * (peer_sm_clock_mhz / sm_clock_mhz - 1))
  FROM device
  WHERE status = 'slower_clock'
  UNION ALL
  SELECT run_id, finding_id, 15, 'against',
    CASE
      WHEN status = 'as_peers' THEN FORMAT(
        'Telemetry: device clock {} MHz, the median peer''s {} ({}): its clock does not explain it.', clock, peer_clock, seen)
      WHEN status = 'too_coarse' THEN FORMAT(
        'Telemetry too coarse to tell whether its device was slowed down: {} in {:.1f} s{}.', seen, duration_ns / 1e9,
        COALESCE(FORMAT(', one every {:.1f} s', interval_ns / 1e9), ''))
      WHEN status = 'no_clock' THEN
        'Telemetry of its device holds no clock, so whether it was slowed down cannot be told.'
      ELSE 'Telemetry of its device was taken at another time, or in an unknown zone: whether it was slowed down cannot be told.'
    END
  FROM device
  WHERE status <> 'slower_clock'
)
SELECT run_id, finding_id, direction, statement, place
FROM statement
ORDER BY run_id, finding_id, direction DESC, place, statement
