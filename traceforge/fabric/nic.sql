-- NICs that processes found: one row per (host, network, NIC).
-- Scope: run
CREATE OR REPLACE TABLE fabric.nic (
  -- Joins meta.run.run_id.
  run_id,
  -- Host name.
  host,
  -- Network that drives it, such as IB, Socket, OFI.
  network,
  -- Number by which connections name it.
  nic,
  -- Device name, such as mlx5_0; NULL where not printed.
  name,
  -- Link layer: IB or RoCE; NULL otherwise.
  link,
  -- Rail; NULL before NCCL 2.30.
  rail,
  -- Speed, bytes a second; NULL where not printed.
  speed_bytes_per_s,
  -- Processes of the host that found it under this number and name.
  process_count,
  -- Joins meta.source.source_id: the log that first names it.
  source_id,
  -- Line there, from 1.
  line
) AS
WITH stated AS (
  SELECT p.run_id, p.host, p.process, n.*, r.line
  FROM raw.nccl_nic AS n
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = n.source_id AND p.process_id = r.process_id
  WHERE n.network NOT IN ('Bootstrap', 'OOB')
),
described AS (
  -- What is said of devices before they get the numbers by which connections name them.
  SELECT run_id, host, network, name, port, MIN(link) AS link, MIN(speed_bytes_per_s) AS speed_bytes_per_s
  FROM stated
  WHERE nic IS NULL AND name IS NOT NULL
  GROUP BY run_id, host, network, name, port
),
found AS (
  SELECT s.*, d.link AS described_link, d.speed_bytes_per_s AS described_speed_bytes_per_s
  FROM stated AS s
  LEFT JOIN described AS d
    ON d.run_id = s.run_id AND d.host = s.host AND d.network = s.network AND d.name = s.name
    AND (d.port = s.port OR s.port IS NULL)
  WHERE s.nic IS NOT NULL
)
SELECT
  run_id, host, network, nic, ARG_MIN(name, (source_id, line)),
  COALESCE(MIN(link), MIN(described_link)), MIN(rail),
  COALESCE(MIN(speed_bytes_per_s), MIN(described_speed_bytes_per_s)),
  COUNT(DISTINCT process), ARG_MIN(source_id, (source_id, line)), ARG_MIN(line, (source_id, line))
FROM found
GROUP BY run_id, host, network, nic
ORDER BY run_id, host, network, nic
