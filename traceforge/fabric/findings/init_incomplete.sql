-- A communicator was begun and, as far as the logs go, never made: a job that hangs or ended as it started.
-- Mode: runtime_control_plane
-- Severity: notice
-- Summary: As far as these logs go, {begun} of {size} ranks began the init of communicator {subject}, and {completed}
--   ended it{absent}{waiting}.
-- Next step: Look at the ranks that did not begin, or did not end it: their output, their hosts, whether they can be
--   reached over the interface that `Bootstrap : Using` names. Where a log was cut, this is no evidence.
WITH continued AS (
  -- Where a log was rotated, one file has the begin, and another what follows.
  SELECT p.run_id, p.process, c.comm_pointer, c.source_id
  FROM raw.nccl_communicator AS c
  JOIN fabric.process AS p USING (source_id, process_id)
  WHERE c.start_record_id IS NULL
),
side AS (
  SELECT m.run_id, m.communicator_id, m.rank, m.global_rank, m.source_id, m.line, m.process, c.rank_count,
    c.start_record_id IS NOT NULL AS is_begun,
    c.complete_record_id IS NOT NULL OR c.close_record_id IS NOT NULL AS is_completed
  FROM fabric.member AS m
  JOIN raw.nccl_communicator AS c USING (source_id, handle_id)
  WHERE m.rank IS NOT NULL
    -- Of lines of several ranks Ray keeps some: those left out say nothing.
    AND m.run_id NOT IN (SELECT i.run_id FROM meta.issue AS i WHERE i.code = 'nccl_repeats_left_out')
    AND (
    c.complete_record_id IS NOT NULL OR NOT EXISTS (
      SELECT 1 FROM continued AS n
      WHERE n.run_id = m.run_id AND n.process = m.process AND n.comm_pointer = c.comm_pointer
        AND n.source_id <> m.source_id
    )
  )
),
failed AS (
  -- Other findings say why.
  SELECT DISTINCT p.run_id, p.process
  FROM raw.nccl_event AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = e.source_id AND p.process_id = r.process_id
  WHERE e.kind IN ('unwinding', 'duplicate_gpu', 'mismatched_start', 'network_not_found', 'call_failed', 'cuda_failure',
    'shared_memory')
),
made AS (
  SELECT run_id, communicator_id, ANY_VALUE(rank_count) AS size, COUNT(DISTINCT rank) AS seen,
    COUNT(DISTINCT rank) FILTER (WHERE is_begun) AS begun, COUNT(DISTINCT rank) FILTER (WHERE is_completed) AS completed,
    LIST_FILTER(RANGE(ANY_VALUE(rank_count)), lambda one: NOT LIST_CONTAINS(LIST(DISTINCT rank), one)) AS absent_ranks,
    LIST_SORT(LIST(DISTINCT rank) FILTER (WHERE NOT is_completed)) AS open_ranks,
    LIST(DISTINCT global_rank) FILTER (WHERE NOT is_completed) AS ranks,
    MIN((source_id, line)) FILTER (WHERE NOT is_completed) AS first
  FROM side
  GROUP BY run_id, communicator_id
  HAVING COUNT(*) FILTER (WHERE is_begun AND NOT is_completed) > 0
    AND COUNT(*) FILTER (WHERE (run_id, process) IN (SELECT (f.run_id, f.process) FROM failed AS f)) = 0
)
SELECT
  run_id, 'communicator' AS subject_kind, communicator_id AS subject, size, begun,
  CASE completed WHEN 0 THEN 'none' ELSE CAST(completed AS VARCHAR) END AS completed,
  -- Only where most logs are there is a rank without one a suspect.
  CASE WHEN seen = size OR seen <= size - seen THEN ''
    WHEN size - seen = 1 THEN FORMAT('; the logs hold nothing of its rank {}', absent_ranks[1])
    ELSE FORMAT('; the logs hold nothing of {} of its ranks, such as {}', size - seen, absent_ranks[1]) END AS absent,
  CASE WHEN completed = 0 THEN ''
    WHEN LEN(open_ranks) = 1 THEN FORMAT('; rank {} did not', open_ranks[1])
    ELSE FORMAT('; {} did not, such as rank {}', LEN(open_ranks), open_ranks[1]) END AS waiting,
  CASE WHEN completed = 0 AND seen < size AND seen > size - seen THEN 'problem' END AS severity,
  ranks, first, begun AS citation_count
FROM made
