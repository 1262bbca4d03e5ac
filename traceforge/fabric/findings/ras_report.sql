-- NCCL's RAS reports processes that do not answer, or ranks that are not as far as others.
-- Mode: runtime_control_plane
-- Severity: problem
-- Summary: NCCL's RAS reports {text}{of_ranks}.
-- Next step: Look at the hosts and processes that it names: whether the process lives, its log, the kernel's log.
WITH said AS (
  SELECT s.run_id, e.source_id, e.record_id, r.line, e.kind, e.place AS section,
    -- Ranks are listed behind the sentence, with their processes.
    REGEXP_REPLACE(e.text, '; Rank [0-9]+ -- GPU [^;]*', '', 'g') AS text,
    CAST(REGEXP_EXTRACT_ALL(e.text, '; Rank ([0-9]{1,9}) (?:--|has|is)', 1) AS INTEGER[]) AS ranks
  FROM raw.nccl_event AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN meta.source AS s USING (source_id)
  WHERE STARTS_WITH(e.kind, 'ras_')
)
SELECT
  run_id, 'job' AS subject_kind, 'all' AS subject, text[:300] AS text, ranks, 'error message' AS basis,
  CASE WHEN section = 'Warnings' THEN 'notice' END AS severity,
  CASE WHEN kind = 'ras_mismatch'
    THEN 'Ask again after some seconds: counts that go on differ by chance. Where they stand still, the job hangs, and '
      || 'the ranks with fewer operations are waited for; where the same ranks stay behind, they are slow.'
  END AS next_step,
  (source_id, line) AS first, 1 AS citation_count
FROM said
