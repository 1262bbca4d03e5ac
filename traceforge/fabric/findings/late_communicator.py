"""A communicator is made after training has begun: after its ranks have called a hundred collectives on others."""

from traceforge.fabric.rule import Rule

RULE = Rule(
    mode="runtime_control_plane",
    severity="notice",
    summary="After at least 100 collectives had been called, NCCL still made {made:count communicator side}{of_ranks}; "
    "every rank of the group stands still meanwhile.",
    next_step="Make all process groups before the first step and use each once (a barrier), so that nothing is "
    "connected "
    "inside training.",
    query="""
WITH hundredth AS (
  SELECT p.run_id, p.process, o.source_id, o.record_id
  FROM fabric.operation AS o
  JOIN raw.nccl_record AS r ON r.source_id = o.source_id AND r.record_id = o.record_id
  JOIN fabric.process AS p ON p.source_id = o.source_id AND p.process_id = r.process_id
  QUALIFY ROW_NUMBER() OVER (PARTITION BY p.run_id, p.process, o.source_id ORDER BY o.record_id) = 100
),
late AS (
  SELECT m.run_id, m.global_rank, m.source_id, m.line
  FROM fabric.member AS m
  JOIN raw.nccl_communicator AS c USING (source_id, handle_id)
  JOIN hundredth AS h ON h.run_id = m.run_id AND h.process = m.process AND h.source_id = m.source_id
  WHERE COALESCE(c.start_record_id, c.complete_record_id) > h.record_id
)
SELECT
  run_id, 'job' AS subject_kind, 'all' AS subject, COUNT(*) AS made, LIST(DISTINCT global_rank) AS ranks,
  ARG_MIN(source_id, (source_id, line)) AS source_id, ARG_MIN(line, (source_id, line)) AS line,
    COUNT(*) AS citation_count
FROM late
GROUP BY run_id
""",
)
