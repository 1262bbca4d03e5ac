-- Which configuration evidence fits which measured delay: one row a pair, the best fitting first.
-- A slow path is explained by what its own ranks have wrong; a slow fabric by anything wrong with paths; late ranks by
-- what they have wrong in the same mode, or on their host's side.
-- Scope: run
CREATE OR REPLACE TABLE attribute.configuration (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins attribute.finding.finding_id within the run.
  finding_id,
  -- Joins fabric.finding.finding_id within the run.
  fabric_finding_id,
  -- Place among the evidence for this finding, from 0.
  place
) AS
SELECT
  m.run_id, m.finding_id, g.finding_id,
  ROW_NUMBER() OVER (PARTITION BY m.run_id, m.finding_id
    -- A far NIC explains why GPU Direct RDMA is off, not the other way round.
    ORDER BY NOT LIST_HAS_ALL(m.ranks, g.ranks), g.mode <> m.mode, LEN(g.ranks), g.code = 'gdr_off', g.finding_id) - 1
FROM attribute.finding AS m
JOIN fabric.finding AS g
  ON g.run_id = m.run_id AND g.severity = 'problem'
  AND CASE
    WHEN m.mode = 'fabric_contention' THEN g.mode IN ('fabric_contention', 'gpu_locality')
    WHEN m.cause = 'slow_path' THEN
      g.mode IN ('fabric_contention', 'gpu_locality') AND LIST_HAS_ANY(g.ranks, m.ranks)
    ELSE m.subject_kind IN ('rank', 'ranks', 'host', 'stage') AND LIST_HAS_ANY(g.ranks, m.ranks)
      AND g.mode IN (m.mode, 'synchronization_amplification', 'runtime_control_plane')
  END
ORDER BY m.run_id, m.finding_id, g.finding_id
