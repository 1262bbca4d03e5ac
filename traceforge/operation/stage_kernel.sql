-- What each longer stage of a pipeline runs, against the mean of the stages that are not longer: one row a stage and kernel.
--
-- Kernels are told apart by name, by the operation that launched them and by the shapes of its inputs. Communication and
-- copies are left out, and ranks without a device: an operation of a host or a timer may stand for any amount of work.
-- Scope: run
CREATE OR REPLACE TABLE operation.stage_kernel (
  -- Joins meta.run.run_id.
  run_id,
  -- Stage that computes longer than the usual one (timeline.stage_load.is_longer).
  stage,
  -- Name of the kernel as recorded.
  kernel,
  -- Host operation that launched it; NULL where it is not known.
  operation,
  -- Shapes of its inputs; NULL where they are not known.
  shapes,
  -- Whether its work follows from these shapes: not that of attention, which windows, masks and lengths of sequences
  -- change, nor of products of groups, whose rows may be free.
  is_work_fixed,
  -- Its calls on a rank of the stage an iteration; 0 where only other stages run it.
  calls,
  -- Their time, ns.
  duration_ns,
  -- Calls on a rank of the mean stage that is not longer an iteration; 0 where none runs it.
  peer_calls,
  -- Their time, ns.
  peer_duration_ns
) AS
WITH longer AS (
  SELECT l.run_id, l.stage, o.stage AS of_stage, COUNT(*) FILTER (NOT o.is_longer) OVER own AS others
  FROM timeline.stage_load AS l
  JOIN timeline.stage_load AS o ON o.run_id = l.run_id AND (o.stage = l.stage OR NOT o.is_longer)
  WHERE l.is_longer
  WINDOW own AS (PARTITION BY l.run_id, l.stage)
),
recorded AS (
  SELECT w.run_id, r.stage, COUNT(*) AS iterations
  FROM timeline.rank_iteration AS w
  JOIN operation.judged_iteration USING (run_id, iteration)
  JOIN timeline.role AS r ON r.run_id = w.run_id AND r.rank = w.rank
  WHERE r.stage IS NOT NULL
  GROUP BY w.run_id, r.stage
),
-- A further kernel of the same call has no work of its own, and the same shapes.
ran AS (
  SELECT k.run_id, r.stage, k.full_name, k.operation, k.shapes,
    BOOL_AND(
      k.shapes IS NOT NULL AND k.kind <> 'attention' AND k.work_basis IS DISTINCT FROM 'stacked_rows'
    ) AS is_work_fixed,
    SUM(k.calls) AS calls, SUM(k.duration_ns) AS duration_ns
  FROM operation.kernel AS k
  JOIN timeline.role AS r ON r.run_id = k.run_id AND r.rank = k.rank
  WHERE k.kernel IS NOT NULL AND k.class NOT IN ('communication', 'copy')
  GROUP BY k.run_id, r.stage, k.full_name, k.operation, k.shapes
),
held AS (
  SELECT k.run_id, l.stage, l.others, l.of_stage = l.stage AS is_own, l.of_stage,
    k.full_name, k.operation, k.shapes, k.is_work_fixed,
    k.calls / d.iterations AS calls, k.duration_ns / d.iterations AS duration_ns
  FROM ran AS k
  JOIN recorded AS d ON d.run_id = k.run_id AND d.stage = k.stage
  JOIN longer AS l ON l.run_id = k.run_id AND l.of_stage = k.stage
)
-- Fractions are summed in one order, so that they come out the same each time.
SELECT
  run_id, stage, full_name, operation, shapes, BOOL_AND(is_work_fixed),
  COALESCE(SUM(calls) FILTER (is_own), 0),
  CAST(ROUND(COALESCE(SUM(duration_ns) FILTER (is_own), 0)) AS BIGINT),
  COALESCE(SUM(calls ORDER BY of_stage) FILTER (NOT is_own), 0) / others,
  CAST(ROUND(COALESCE(SUM(duration_ns ORDER BY of_stage) FILTER (NOT is_own), 0) / others) AS BIGINT)
FROM held
GROUP BY run_id, stage, others, full_name, operation, shapes
ORDER BY run_id, stage, SUM(duration_ns ORDER BY of_stage) DESC, full_name, operation, shapes
