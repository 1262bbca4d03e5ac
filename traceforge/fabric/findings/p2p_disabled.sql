-- GPUs of one node talk through host memory: a problem where NCCL says why, where other pairs talk directly, or where
-- NVLink joins them. Between groups whose own GPUs talk directly it is the best there is: those of two CPUs, or pairs
-- joined by bridges.
-- Mode: gpu_locality
-- Severity: notice
-- Summary: {shared} of {edges} connections within nodes pass through host memory{of_ranks}{reason}.
-- Next step: Check `nvidia-smi topo -p2p r`, ACS and IOMMU, GPU visibility per process, and NCCL_P2P_DISABLE and
--   NCCL_P2P_LEVEL.
WITH RECURSIVE refused AS (
  -- GPUs that could, and those that CUDA does not let.
  SELECT p.run_id, MIN(e.text) FILTER (e.kind = 'p2p_disabled') AS text,
    MIN(e.text) FILTER (e.kind = 'p2p_unavailable') AS unavailable
  FROM raw.nccl_event AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = e.source_id AND p.process_id = r.process_id
  WHERE e.kind IN ('p2p_disabled', 'p2p_unavailable')
  GROUP BY p.run_id
),
setting AS (
  SELECT p.run_id, MIN(e.name || '=' || e.value) AS text
  FROM raw.nccl_environment AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = e.source_id AND p.process_id = r.process_id
  WHERE (e.name = 'NCCL_P2P_DISABLE' AND e.value = '1') OR (e.name = 'NCCL_P2P_LEVEL' AND e.value IN ('LOC', '0'))
  GROUP BY p.run_id
),
joined AS (
  -- GPUs that NVSwitches or NVLinks join, as other lines say.
  SELECT s.run_id
  FROM raw.nccl_nvls AS n
  JOIN meta.source AS s USING (source_id)
  WHERE n.event = 'support' AND n.is_available
  UNION
  SELECT s.run_id
  FROM raw.nccl_topology_link AS k
  JOIN meta.source AS s USING (source_id)
  WHERE k.kind = 'NVL'
),
mixed AS (
  SELECT run_id, communicator_id
  FROM fabric.edge
  GROUP BY run_id, communicator_id
  HAVING BOOL_OR(path_class = 'shared_memory') AND BOOL_OR(path_class = 'p2p')
),
near AS (
  SELECT run_id, communicator_id, e.source_rank AS a, e.target_rank AS b
  FROM fabric.edge AS e
  JOIN mixed USING (run_id, communicator_id)
  WHERE e.path_class = 'p2p'
  UNION
  SELECT run_id, communicator_id, e.target_rank, e.source_rank
  FROM fabric.edge AS e
  JOIN mixed USING (run_id, communicator_id)
  WHERE e.path_class = 'p2p'
),
grouped AS (
  -- Ranks that reach one another without host memory.
  SELECT * FROM near
  UNION
  SELECT g.run_id, g.communicator_id, g.a, n.b
  FROM grouped AS g
  JOIN near AS n ON n.run_id = g.run_id AND n.communicator_id = g.communicator_id AND n.a = g.b
),
between_groups AS (
  SELECT e.source_id, e.record_id
  FROM fabric.edge AS e
  JOIN mixed USING (run_id, communicator_id)
  WHERE e.path_class = 'shared_memory'
    AND EXISTS (SELECT 1 FROM near AS n WHERE n.run_id = e.run_id AND n.communicator_id = e.communicator_id
      AND n.a = e.source_rank)
    AND EXISTS (SELECT 1 FROM near AS n WHERE n.run_id = e.run_id AND n.communicator_id = e.communicator_id
      AND n.a = e.target_rank)
    AND NOT EXISTS (SELECT 1 FROM grouped AS g WHERE g.run_id = e.run_id AND g.communicator_id = e.communicator_id
      AND g.a = e.source_rank AND g.b = e.target_rank)
)
SELECT
  e.run_id, 'job' AS subject_kind, 'all' AS subject,
  COUNT(*) FILTER (WHERE e.path_class = 'shared_memory') AS shared,
  COUNT(*) AS edges,
  LIST(DISTINCT m.global_rank) FILTER (WHERE e.path_class = 'shared_memory') AS ranks,
  CASE
    WHEN MIN(f.text) IS NOT NULL OR MIN(s.text) IS NOT NULL THEN 'problem'
    WHEN COUNT(*) FILTER (WHERE e.path_class = 'p2p') = 0 AND COUNT(j.run_id) > 0 THEN 'problem'
    WHEN COUNT(*) FILTER (WHERE e.path_class = 'p2p') > 0
      AND COUNT(*) FILTER (WHERE e.path_class = 'shared_memory' AND b.record_id IS NULL) > 0 THEN 'problem'
  END AS severity,
  COALESCE('; ' || MIN(s.text) || ' is set', '; NCCL says: ' || RTRIM(MIN(f.text), '. '),
    CASE WHEN COUNT(*) FILTER (WHERE e.path_class = 'p2p') = 0 AND COUNT(j.run_id) > 0
      THEN ', although NVLink joins the GPUs' END,
    '; NCCL says: ' || RTRIM(MIN(f.unavailable), '. '), '') AS reason,
  MIN((e.source_id, e.line)) FILTER (WHERE e.path_class = 'shared_memory') AS first,
  COUNT(*) FILTER (WHERE e.path_class = 'shared_memory') AS citation_count
FROM fabric.edge AS e
LEFT JOIN fabric.member AS m
  ON m.run_id = e.run_id AND m.communicator_id = e.communicator_id AND m.rank = e.source_rank
LEFT JOIN refused AS f ON f.run_id = e.run_id
LEFT JOIN setting AS s ON s.run_id = e.run_id
LEFT JOIN joined AS j ON j.run_id = e.run_id
LEFT JOIN between_groups AS b ON b.source_id = e.source_id AND b.record_id = e.record_id
WHERE e.path_class IN ('shared_memory', 'p2p')
GROUP BY e.run_id
HAVING COUNT(*) FILTER (WHERE e.path_class = 'shared_memory') > 0
