-- Processes with debug logs: one row per (log, process). Logs of one process share its number.
-- Scope: run
CREATE OR REPLACE TABLE fabric.process (
  -- Joins meta.run.run_id.
  run_id,
  -- Small integer within the run: one for each (host, pid).
  process,
  -- Joins meta.source.source_id.
  source_id,
  -- Joins raw.nccl_process.process_id within the source.
  process_id,
  -- Host name as printed, or as fabric.process_host tells hosts of one name apart.
  host,
  -- Operating system's process id.
  pid,
  -- Rank that the launcher or the file's name states; NULL where neither does, or the file holds several processes.
  stated_rank,
  -- nccl or rccl version in use, such as 2.27.5; NULL where the log does not say.
  nccl_version
) AS
WITH counted AS (
  SELECT source_id, COUNT(*) AS processes FROM raw.nccl_process GROUP BY source_id
),
stated AS (
  SELECT r.source_id, r.process_id, MIN(v.version) AS nccl_version
  FROM raw.nccl_version AS v
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  WHERE v.component IN ('nccl', 'rccl')
  GROUP BY r.source_id, r.process_id
),
headless AS (
  -- Banners without a line head, as rank 0 prints them until 2.21, apply to the whole file.
  SELECT source_id, MIN(nccl_version) AS nccl_version FROM stated WHERE process_id IS NULL GROUP BY source_id
)
SELECT
  s.run_id,
  CAST(DENSE_RANK() OVER (PARTITION BY s.run_id ORDER BY w.host, p.pid) - 1 AS INTEGER),
  p.source_id, p.process_id, w.host, p.pid,
  COALESCE(p.launcher_rank, CASE WHEN c.processes = 1 THEN s.rank END),
  COALESCE(own.nccl_version, h.nccl_version)
FROM raw.nccl_process AS p
JOIN fabric.process_host AS w USING (source_id, process_id)
JOIN meta.source AS s USING (source_id)
JOIN counted AS c USING (source_id)
LEFT JOIN stated AS own ON own.source_id = p.source_id AND own.process_id = p.process_id
LEFT JOIN headless AS h ON h.source_id = p.source_id
ORDER BY s.run_id, w.host, p.pid, p.source_id, p.process_id
