-- What each run measured at its scale, and what must be equal for two runs to lie on one curve.
--
-- A step runs from one completion of an iteration to the next; where an iteration between two was left out, that time
-- is no step. Times are means over ranks and judged iterations, ns an iteration.
-- Scope: run
CREATE OR REPLACE TABLE forecast.point (
  -- Joins meta.run.run_id.
  run_id,
  -- Name of the run.
  run_name,
  -- Number of ranks: the stated world size, else the ranks whose traces are here.
  ranks,
  -- Hosts whose traces are here; NULL where none is named.
  hosts,
  -- Judged iterations.
  iterations,
  -- Steps from one completion to the next.
  steps,
  -- Mean step, ns; NULL without a step.
  step_ns,
  -- Standard error of the mean step, ns; NULL below three steps.
  step_error_ns,
  -- Standard deviation over mean of the iteration time; NULL below two iterations.
  cv,
  -- Median iteration time, ns.
  p50_ns,
  -- 95 % point of the iteration time, ns.
  p95_ns,
  -- 99 % point of the iteration time, ns.
  p99_ns,
  -- Compute, copies, input, runtime and idle time, ns.
  local_ns,
  -- Of this, compute, ns.
  compute_ns,
  -- Copies, ns.
  copy_ns,
  -- Waiting for input, ns.
  input_ns,
  -- Device idle while the host launches, allocates or synchronises, ns.
  runtime_ns,
  -- Device and host idle, ns.
  idle_ns,
  -- Communication after the last arrival that no compute hides, ns; NULL where members have no trace (see
  -- timeline.coverage), so that it cannot be separated from waiting.
  exposed_transfer_ns,
  -- Communication after the last arrival that compute hides, ns; NULL likewise.
  hidden_transfer_ns,
  -- Exposed communication until the last rank arrives, ns; NULL likewise.
  waiting_ns,
  -- Exposed communication of which waiting and transfer are not told apart, ns; all of it where they are NULL.
  communication_ns,
  -- Bytes that a rank takes part in moving, an iteration; NULL where no size is known.
  size_bytes,
  -- Mean number of ranks that reduce, gather or scatter together, by the time that it takes them; NULL without any.
  group_ranks,
  -- Share of that time in groups on several hosts, 0..1; NULL where a host is not known.
  crossing_share,
  -- Collectives that a rank takes part in, an iteration.
  collectives,
  -- Operations that move them, by name.
  operations,
  -- Element type of most of the bytes; NULL where it is not known.
  dtype,
  -- Algorithm NCCL chose for most of the bytes; NULL where no log states it.
  algorithm,
  -- NCCL version; NULL where no file states one.
  nccl_version
) AS
WITH judged AS (
  SELECT run_id, iteration, duration_ns,
    CASE
      WHEN LAG(iteration) OVER run = iteration - 1
        THEN start_ns + duration_ns - LAG(start_ns + duration_ns) OVER run
    END AS step_ns
  FROM timeline.iteration
  WHERE NOT is_warmup AND NOT is_partial
  WINDOW run AS (PARTITION BY run_id ORDER BY iteration)
),
pace AS (
  SELECT run_id, COUNT(*) AS iterations, COUNT(step_ns) AS steps, AVG(step_ns) AS step_ns,
    CASE
      WHEN COUNT(step_ns) >= (SELECT value FROM meta.threshold WHERE name = 'forecast.LEAST_STEPS')
        THEN STDDEV_SAMP(step_ns) / SQRT(COUNT(step_ns))
    END AS step_error_ns,
    STDDEV_SAMP(duration_ns) / AVG(duration_ns) AS cv,
    QUANTILE_DISC(duration_ns, 0.5) AS p50_ns,
    QUANTILE_DISC(duration_ns, 0.95) AS p95_ns,
    QUANTILE_DISC(duration_ns, 0.99) AS p99_ns
  FROM judged
  GROUP BY run_id
),
recorded AS (
  SELECT run_id, COUNT(*) AS rank_iterations FROM timeline.rank_iteration SEMI JOIN judged USING (run_id, iteration)
  GROUP BY run_id
),
spent AS (
  SELECT p.run_id,
    SUM(p.duration_ns) FILTER (WHERE p.phase NOT IN ('transfer', 'wait', 'communication')) AS local_ns,
    SUM(p.duration_ns) FILTER (WHERE p.phase = 'compute') AS compute_ns,
    SUM(p.duration_ns) FILTER (WHERE p.phase = 'copy') AS copy_ns,
    SUM(p.duration_ns) FILTER (WHERE p.phase = 'input') AS input_ns,
    SUM(p.duration_ns) FILTER (WHERE p.phase = 'runtime') AS runtime_ns,
    SUM(p.duration_ns) FILTER (WHERE p.phase = 'idle') AS idle_ns,
    SUM(p.duration_ns) FILTER (WHERE p.phase = 'transfer') AS exposed_transfer_ns,
    SUM(p.duration_ns) FILTER (WHERE p.phase = 'wait') AS waiting_ns,
    SUM(p.duration_ns) FILTER (WHERE p.phase = 'communication') AS communication_ns,
    SUM(p.duration_ns) FILTER (WHERE p.phase IN ('transfer', 'wait', 'communication')) AS exposed_ns
  FROM timeline.phase AS p
  SEMI JOIN judged USING (run_id, iteration)
  GROUP BY p.run_id
),
taken AS (
  SELECT a.run_id, c.op, c.dtype, f.algorithm, c.size_bytes, c.transfer_ns
  FROM timeline.arrival AS a
  JOIN timeline.collective AS c USING (run_id, collective_id)
  LEFT JOIN fabric.collective AS f USING (run_id, collective_id)
  SEMI JOIN judged AS j ON j.run_id = a.run_id AND j.iteration = a.iteration
),
moved AS (
  SELECT run_id, SUM(size_bytes) AS size_bytes, SUM(transfer_ns) AS transfer_ns, COUNT(*) AS collectives,
    STRING_AGG(DISTINCT op, ', ' ORDER BY op) AS operations
  FROM taken
  GROUP BY run_id
),
spread AS (
  SELECT g.run_id, g.communicator_id, COUNT(DISTINCT k.host) > 1 AS is_crossing,
    COUNT(k.host) = COUNT(*) AS is_known
  FROM (
    SELECT run_id, communicator_id, UNNEST(ranks) AS rank FROM timeline.communicator
  ) AS g
  LEFT JOIN align.rank AS k USING (run_id, rank)
  GROUP BY g.run_id, g.communicator_id
),
grouped AS (
  -- By the time of ranks: a collective counts for each of its members.
  SELECT c.run_id, SUM(g.size * g.size * c.transfer_ns) / NULLIF(SUM(g.size * c.transfer_ns), 0) AS group_ranks,
    CASE
      WHEN BOOL_AND(s.is_known)
        THEN COALESCE(SUM(g.size * c.transfer_ns) FILTER (WHERE s.is_crossing), 0)
          / NULLIF(SUM(g.size * c.transfer_ns), 0)
    END AS crossing_share
  FROM timeline.collective AS c
  JOIN timeline.communicator AS g USING (run_id, communicator_id)
  JOIN spread AS s USING (run_id, communicator_id)
  SEMI JOIN judged USING (run_id, iteration)
  WHERE g.size > 1 AND c.op NOT IN ('send', 'recv', 'send_recv')
  GROUP BY c.run_id
),
by_dtype AS (
  SELECT run_id, dtype, SUM(size_bytes) AS size_bytes FROM taken WHERE dtype IS NOT NULL GROUP BY ALL
),
by_algorithm AS (
  SELECT run_id, algorithm, SUM(size_bytes) AS size_bytes FROM taken WHERE algorithm IS NOT NULL GROUP BY ALL
),
main_dtype AS (
  SELECT run_id, ARG_MAX(dtype, (size_bytes, dtype)) AS dtype FROM by_dtype GROUP BY run_id
),
main_algorithm AS (
  SELECT run_id, ARG_MAX(algorithm, (size_bytes, algorithm)) AS algorithm FROM by_algorithm GROUP BY run_id
),
stated_version AS (
  SELECT run_id, nccl_version FROM fabric.process WHERE nccl_version IS NOT NULL
  UNION
  SELECT s.run_id, k.nccl_version
  FROM raw.profile AS k
  JOIN meta.source AS s USING (source_id)
  WHERE k.nccl_version IS NOT NULL
),
version AS (
  SELECT run_id, STRING_AGG(DISTINCT nccl_version, ', ' ORDER BY nccl_version) AS nccl_version
  FROM stated_version
  GROUP BY run_id
),
present AS (
  SELECT run_id, COUNT(*) AS ranks, NULLIF(COUNT(DISTINCT host), 0) AS hosts FROM align.rank GROUP BY run_id
)
SELECT
  r.run_id, r.run_name, COALESCE(r.world_size, k.ranks), k.hosts,
  p.iterations, p.steps, CAST(ROUND(p.step_ns) AS BIGINT), CAST(ROUND(p.step_error_ns) AS BIGINT), p.cv, p.p50_ns, p.p95_ns, p.p99_ns,
  CAST(ROUND(COALESCE(s.local_ns, 0) / n.rank_iterations) AS BIGINT),
  CAST(ROUND(COALESCE(s.compute_ns, 0) / n.rank_iterations) AS BIGINT),
  CAST(ROUND(COALESCE(s.copy_ns, 0) / n.rank_iterations) AS BIGINT),
  CAST(ROUND(COALESCE(s.input_ns, 0) / n.rank_iterations) AS BIGINT),
  CAST(ROUND(COALESCE(s.runtime_ns, 0) / n.rank_iterations) AS BIGINT),
  CAST(ROUND(COALESCE(s.idle_ns, 0) / n.rank_iterations) AS BIGINT),
  CASE WHEN c.is_split THEN CAST(ROUND(COALESCE(s.exposed_transfer_ns, 0) / n.rank_iterations) AS BIGINT) END,
  CASE
    WHEN c.is_split THEN CAST(ROUND(
      GREATEST(0, COALESCE(m.transfer_ns, 0) - COALESCE(s.exposed_transfer_ns, 0)) / n.rank_iterations
    ) AS BIGINT)
  END,
  CASE WHEN c.is_split THEN CAST(ROUND(COALESCE(s.waiting_ns, 0) / n.rank_iterations) AS BIGINT) END,
  CAST(ROUND(COALESCE(CASE WHEN c.is_split THEN s.communication_ns ELSE s.exposed_ns END, 0) / n.rank_iterations) AS BIGINT),
  CAST(ROUND(m.size_bytes / n.rank_iterations) AS BIGINT),
  e.group_ranks, COALESCE(e.crossing_share, CASE WHEN e.group_ranks IS NOT NULL AND k.hosts = 1 THEN 0 END),
  COALESCE(m.collectives, 0) / n.rank_iterations,
  m.operations, d.dtype, a.algorithm, v.nccl_version
FROM meta.run AS r
JOIN pace AS p USING (run_id)
JOIN recorded AS n USING (run_id)
JOIN present AS k USING (run_id)
JOIN timeline.coverage AS c USING (run_id)
LEFT JOIN spent AS s USING (run_id)
LEFT JOIN moved AS m USING (run_id)
LEFT JOIN grouped AS e USING (run_id)
LEFT JOIN main_dtype AS d USING (run_id)
LEFT JOIN main_algorithm AS a USING (run_id)
LEFT JOIN version AS v USING (run_id)
ORDER BY r.run_id
