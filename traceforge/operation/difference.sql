-- What each rank does more, or more slowly, than the median rank of its role: one row a rank and operation, kernel or cause
-- of gaps.
--
-- Only what costs a rank a hundredth of its mean iteration more than the median rank (of two ranks, than the other) is a
-- row. attribute.finding_difference joins it to findings. Peers are the ranks of one role (timeline.role): stages of a
-- pipeline differ by design; a rank that is alone in its role has no rows.
-- Scope: run
CREATE OR REPLACE TABLE operation.difference (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank.
  rank,
  -- 1 for what costs the rank most.
  place,
  -- more_work (more calls, or more arithmetic or bytes in as many), slower_execution (the same work takes longer), new_operation (the
  -- median rank does not do it) or gap (the device is idle for longer).
  kind,
  -- Host operation; kernel where there is none, or where a rank of the role has none at all; cause of the gaps
  -- (timeline.gap).
  name,
  -- Time above the median rank, ns an iteration.
  excess_ns_per_iteration,
  -- Its calls an iteration (of gaps, their number).
  calls,
  -- Those of the median rank.
  peer_calls,
  -- Its mean time of a call, ns.
  call_duration_ns,
  -- That of the median rank; NULL where that has no calls.
  peer_call_duration_ns,
  -- Call to the runtime or driver that fills most of the gaps (timeline.gap); NULL where none does, and for work.
  gap_call,
  -- How much of the rank's gaps by this cause it fills, ns an iteration; NULL likewise.
  gap_call_ns_per_iteration,
  -- Whether the arithmetic, or the bytes, of both ranks are known, so that slower execution is of as much work; NULL for
  -- gaps.
  is_work_known
) AS
WITH recorded AS (
  SELECT w.run_id, w.rank, o.role, COUNT(*) AS iterations, AVG(w.duration_ns) AS duration_ns,
    COUNT(*) OVER (PARTITION BY w.run_id, o.role) AS ranks
  FROM timeline.rank_iteration AS w
  JOIN operation.judged_iteration USING (run_id, iteration)
  JOIN timeline.role AS o ON o.run_id = w.run_id AND o.rank = w.rank
  GROUP BY w.run_id, w.rank, o.role
),
worked AS (
  FROM operation.kernel WHERE class NOT IN ('communication', 'communication_call', 'host_communication')
),
-- A rank whose host was not recorded has kernels alone: its peers are compared by these, too.
without_operations AS (
  SELECT DISTINCT run_id, role
  FROM (
    SELECT run_id, rank, role
    FROM worked
    JOIN timeline.role USING (run_id, rank)
    GROUP BY ALL
    HAVING COUNT(operation) = 0
  )
),
named AS (
  SELECT w.*, o.role IS NOT NULL AND w.kernel IS NOT NULL OR w.operation IS NULL AS is_kernel
  FROM worked AS w
  LEFT JOIN timeline.role AS r USING (run_id, rank)
  LEFT JOIN without_operations AS o ON o.run_id = w.run_id AND o.role = r.role
),
spent AS (
  SELECT run_id, rank, false AS is_gap, CASE WHEN is_kernel THEN kernel ELSE operation END AS name,
    SUM(CASE WHEN is_kernel OR joined = 'host' THEN calls ELSE operation_calls END) AS calls,
    SUM(duration_ns) AS duration_ns, SUM(flops) AS flops, SUM(bytes) AS bytes
  FROM named
  GROUP BY ALL
  UNION ALL
  SELECT run_id, rank, true, cause, COUNT(*), SUM(duration_ns), NULL, NULL
  FROM timeline.gap
  JOIN operation.judged_iteration USING (run_id, iteration)
  GROUP BY ALL
),
filling AS (
  SELECT run_id, rank, cause AS name, call, SUM(call_ns) AS call_ns
  FROM timeline.gap
  JOIN operation.judged_iteration USING (run_id, iteration)
  WHERE call IS NOT NULL
  GROUP BY run_id, rank, cause, call
  QUALIFY ROW_NUMBER() OVER (PARTITION BY run_id, rank, cause ORDER BY SUM(call_ns) DESC, call) = 1
),
-- What a rank does not do counts as none of it.
filled AS (
  SELECT r.run_id, r.rank, r.role, r.ranks, r.duration_ns AS step_ns, r.iterations, n.is_gap, n.name,
    COALESCE(s.calls, 0) / r.iterations AS calls,
    COALESCE(s.duration_ns, 0) / r.iterations AS duration_ns,
    s.flops / r.iterations AS flops,
    s.bytes / r.iterations AS bytes
  FROM recorded AS r
  JOIN (SELECT DISTINCT run_id, is_gap, name FROM spent) AS n USING (run_id)
  LEFT JOIN spent AS s
    ON s.run_id = r.run_id AND s.rank = r.rank AND s.is_gap = n.is_gap AND s.name = n.name
  WHERE r.ranks > 1
),
compared AS (
  SELECT *,
    CASE WHEN ranks = 2 THEN SUM(calls) OVER alike - calls ELSE MEDIAN(calls) OVER alike END AS peer_calls,
    CASE WHEN ranks = 2 THEN SUM(duration_ns) OVER alike - duration_ns ELSE MEDIAN(duration_ns) OVER alike END
      AS peer_duration_ns,
    CASE WHEN ranks = 2 THEN SUM(flops) OVER alike - flops ELSE MEDIAN(flops) OVER alike END AS peer_flops,
    CASE WHEN ranks = 2 THEN SUM(bytes) OVER alike - bytes ELSE MEDIAN(bytes) OVER alike END AS peer_bytes
  FROM filled
  WINDOW alike AS (PARTITION BY run_id, role, is_gap, name)
),
per_call AS (
  SELECT *, duration_ns - peer_duration_ns AS excess_ns,
    duration_ns / NULLIF(calls, 0) AS call_ns, peer_duration_ns / NULLIF(peer_calls, 0) AS peer_call_ns,
    -- Of what does little arithmetic bytes alone are counted.
    COALESCE(flops / NULLIF(peer_flops, 0), bytes / NULLIF(peer_bytes, 0)) AS work_ratio
  FROM compared
)
SELECT
  t.run_id, t.rank,
  CAST(ROW_NUMBER() OVER (PARTITION BY t.run_id, t.rank ORDER BY t.excess_ns DESC, t.name) AS INTEGER),
  CASE
    WHEN t.is_gap THEN 'gap'
    WHEN t.peer_calls = 0 THEN 'new_operation'
    -- More calls at the peer's pace, or more to do, explain at least this much of the excess.
    WHEN GREATEST(
      (t.calls - t.peer_calls) * t.peer_call_ns,
      COALESCE((t.work_ratio - 1) * t.peer_duration_ns, 0)
    ) >= (SELECT value FROM meta.threshold WHERE name = 'operation.EXPLAINING_SHARE') * t.excess_ns THEN 'more_work'
    ELSE 'slower_execution'
  END,
  t.name,
  CAST(ROUND(t.excess_ns) AS BIGINT), CAST(t.calls AS DOUBLE), CAST(t.peer_calls AS DOUBLE),
  CAST(ROUND(t.call_ns) AS BIGINT), CAST(ROUND(t.peer_call_ns) AS BIGINT),
  g.call, CAST(ROUND(g.call_ns / t.iterations) AS BIGINT),
  CASE WHEN NOT t.is_gap THEN t.work_ratio IS NOT NULL END
FROM per_call AS t
LEFT JOIN filling AS g ON t.is_gap AND g.run_id = t.run_id AND g.rank = t.rank AND g.name = t.name
WHERE t.excess_ns >= (SELECT value FROM meta.threshold WHERE name = 'operation.LEAST_EXCESS_SHARE') * t.step_ns
ORDER BY t.run_id, t.rank, t.excess_ns DESC, t.name
