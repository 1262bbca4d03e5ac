-- What the other runs say that the same files were divided into, such as windows of the profiler.
WITH family AS (
  SELECT
    run_id,
    run_name,
    SPLIT_PART(run_name, ' [', 1) = (SELECT SPLIT_PART(run_name, ' [', 1) FROM meta.run WHERE run_id = $run_id) AS is_own
  FROM meta.run
),
first_finding AS (
  SELECT
    run_id,
    MIN(finding_id) AS finding_id
  FROM attribute.finding
  GROUP BY run_id
)
SELECT
  r.run_name,
  v.kind,
  v.headline,
  v.confidence,
  f.mode,
  f.cause,
  f.subject_kind,
  f.subject,
  f.delay_ns_per_iteration,
  q.p50_ns,
  (SELECT p50_ns FROM timeline.iteration_quantile WHERE run_id = $run_id) AS own_p50_ns
FROM family AS r
JOIN attribute.verdict AS v USING (run_id)
LEFT JOIN first_finding AS l ON l.run_id = r.run_id AND v.kind = 'finding'
LEFT JOIN attribute.finding AS f ON f.run_id = l.run_id AND f.finding_id = l.finding_id
LEFT JOIN timeline.iteration_quantile AS q ON q.run_id = r.run_id
WHERE r.is_own
  AND r.run_id <> $run_id
ORDER BY r.run_id
