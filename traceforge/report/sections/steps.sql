-- A mean iteration of each rank: its wall clock, the phases that sum to it, and communication hidden behind compute.
WITH used AS (
  SELECT iteration FROM timeline.iteration WHERE run_id = $run_id AND NOT is_warmup AND NOT is_partial
),
spent AS (
  SELECT
    phase.rank,
    phase.phase,
    SUM(phase.duration_ns) AS duration_ns
  FROM timeline.phase AS phase
  JOIN used
    ON used.iteration = phase.iteration
  WHERE phase.run_id = $run_id
  GROUP BY phase.rank, phase.phase
),
own AS (
  SELECT
    own.rank,
    COUNT(*) AS iterations,
    SUM(own.duration_ns) AS duration_ns,
    COALESCE(SUM(own.hidden_communication_ns), 0) AS hidden_ns
  FROM timeline.rank_iteration AS own
  JOIN used
    ON used.iteration = own.iteration
  WHERE own.run_id = $run_id
  GROUP BY own.rank
)
SELECT
  own.rank,
  own.iterations,
  own.duration_ns / own.iterations AS duration_ns,
  COALESCE(SUM(spent.duration_ns) FILTER (spent.phase = 'compute'), 0) / own.iterations AS compute_ns,
  COALESCE(SUM(spent.duration_ns) FILTER (spent.phase = 'transfer'), 0) / own.iterations AS transfer_ns,
  COALESCE(SUM(spent.duration_ns) FILTER (spent.phase = 'wait'), 0) / own.iterations AS wait_ns,
  COALESCE(SUM(spent.duration_ns) FILTER (spent.phase = 'communication'), 0) / own.iterations AS communication_ns,
  COALESCE(SUM(spent.duration_ns) FILTER (spent.phase = 'copy'), 0) / own.iterations AS copy_ns,
  COALESCE(SUM(spent.duration_ns) FILTER (spent.phase = 'input'), 0) / own.iterations AS input_ns,
  COALESCE(SUM(spent.duration_ns) FILTER (spent.phase = 'runtime'), 0) / own.iterations AS runtime_ns,
  COALESCE(SUM(spent.duration_ns) FILTER (spent.phase = 'idle'), 0) / own.iterations AS idle_ns,
  own.hidden_ns / own.iterations AS hidden_ns
FROM own
JOIN spent
  ON spent.rank = own.rank
GROUP BY own.rank, own.iterations, own.duration_ns, own.hidden_ns
ORDER BY own.rank
