-- A communicator is created after training has begun, that is, after its ranks have called many collectives on others.
-- Mode: runtime_control_plane
-- Severity: notice
-- Summary: After at least {calls:.0f} collectives had been called, NCCL still created
--   {made:count communicator side}{of_ranks}; every rank of the group waits meanwhile.
-- Next step: Make all process groups before the first step and use each once (a barrier), so that nothing is connected
--   inside training.
WITH training AS (
  -- The call of each process from which on training has begun.
  SELECT p.run_id, p.process, o.source_id, o.record_id, t.value AS calls
  FROM fabric.operation AS o
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = o.source_id AND p.process_id = r.process_id
  JOIN meta.threshold AS t ON t.name = 'fabric.CALLS_BEFORE_TRAINING'
  QUALIFY ROW_NUMBER() OVER (PARTITION BY p.run_id, p.process, o.source_id ORDER BY o.record_id) = t.value
),
late AS (
  SELECT m.run_id, m.global_rank, m.source_id, m.line, s.calls
  FROM fabric.member AS m
  JOIN raw.nccl_communicator AS c USING (source_id, handle_id)
  JOIN training AS s ON s.run_id = m.run_id AND s.process = m.process AND s.source_id = m.source_id
  WHERE COALESCE(c.start_record_id, c.complete_record_id) > s.record_id
)
SELECT
  run_id, 'job' AS subject_kind, 'all' AS subject, COUNT(*) AS made, MIN(calls) AS calls,
  LIST(DISTINCT global_rank) AS ranks, MIN((source_id, line)) AS first, COUNT(*) AS citation_count
FROM late
GROUP BY run_id
