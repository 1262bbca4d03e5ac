-- NVLink joins GPUs of several hosts (GB200 and the like), and their connections run over the network all the same.
-- Mode: gpu_locality
-- Severity: problem
-- Summary: {edges:count connection} between hosts that NVLink joins, such as {subject} and {other}, run over the
--   network{of_ranks}{reason}.
-- Next step: NCCL looks for NVLink between hosts (the line `MNNVL 1`) where all ranks can use it: nvidia-imex must run on
--   each host, and its channels (/dev/nvidia-caps-imex-channels) be in each container (in Kubernetes a ComputeDomain).
--   NCCL_MNNVL_ENABLE=1 has NCCL say what fails.
WITH joined AS (
  -- State 3: the domain of the GPU is made. GPUs outside of any print zeros.
  SELECT DISTINCT p.run_id, p.host, REGEXP_EXTRACT(e.text, 'fabric UUID (\S+ cliqueId \w+) state 3', 1) AS domain
  FROM raw.nccl_event AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = e.source_id AND p.process_id = r.process_id
  WHERE e.kind = 'nvlink_domain' AND REGEXP_MATCHES(e.text, 'fabric UUID \S*[1-9a-f]\S* cliqueId \w+ state 3')
),
setting AS (
  SELECT p.run_id, MIN(e.name || '=' || e.value) AS text
  FROM raw.nccl_environment AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = e.source_id AND p.process_id = r.process_id
  WHERE (e.name IN ('NCCL_MNNVL_ENABLE', 'NCCL_CUMEM_ENABLE') AND e.value = '0')
    OR (e.name = 'NCCL_P2P_DISABLE' AND e.value = '1')
  GROUP BY p.run_id
)
SELECT
  e.run_id, 'host' AS subject_kind, MIN(e.source_host) AS subject,
  ARG_MIN(e.target_host, (e.source_host, e.target_host)) AS other,
  COUNT(DISTINCT (e.source_id, e.record_id)) AS edges, LIST(DISTINCT m.global_rank) AS ranks,
  COALESCE('; ' || MIN(s.text) || ' is set', '') AS reason,
  MIN((e.source_id, e.line)) AS first, COUNT(DISTINCT (e.source_id, e.record_id)) AS citation_count
FROM fabric.edge AS e
JOIN joined AS a ON a.run_id = e.run_id AND a.host = e.source_host
JOIN joined AS b ON b.run_id = e.run_id AND b.host = e.target_host AND b.domain = a.domain
LEFT JOIN setting AS s ON s.run_id = e.run_id
LEFT JOIN fabric.member AS m
  ON m.run_id = e.run_id AND m.communicator_id = e.communicator_id AND m.rank = e.source_rank
WHERE e.transport = 'NET' AND e.source_host <> e.target_host
GROUP BY e.run_id
