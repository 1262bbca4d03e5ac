-- Which communicator each logged connection belongs to: one row per connection for which it is known.
-- Since NCCL 2.22 connections are made at the first call, after the init, and name only ranks. The communicator is then
-- that of the process's previous call, or the only one whose devices and hosts at both ends match the printed ones.
-- Scope: run
CREATE OR REPLACE TABLE fabric.link (
  -- Joins meta.source.source_id.
  source_id,
  -- Joins raw.nccl_link.record_id within the source.
  record_id,
  -- Joins raw.nccl_communicator.handle_id within the source.
  handle_id,
  -- stated, init or only (as in raw.nccl_link.handle_origin), call (previous call), ends (by its two ends), implied (the
  -- only one that the process's connections show).
  origin
) AS
WITH late AS (
  SELECT l.source_id, l.record_id, r.process_id, l.transport, l.mode,
    CASE WHEN l.direction = 'receive' THEN l.target_rank ELSE l.source_rank END AS own_rank,
    CASE WHEN l.direction = 'receive' THEN l.source_rank ELSE l.target_rank END AS other_rank,
    CASE WHEN l.direction = 'receive' THEN l.target_device ELSE l.source_device END AS own_device,
    CASE WHEN l.direction = 'receive' THEN l.source_device ELSE l.target_device END AS other_device
  FROM raw.nccl_link AS l
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  WHERE l.handle_id IS NULL AND l.source_rank IS NOT NULL AND l.target_rank IS NOT NULL
),
side AS (
  SELECT m.run_id, m.communicator_id, m.rank, m.host, m.source_id, m.handle_id, c.process_id, c.rank_count,
    CAST(COALESCE(c.nvml_device, c.device) AS VARCHAR) AS device
  FROM fabric.member AS m
  JOIN raw.nccl_communicator AS c USING (source_id, handle_id)
),
called AS (
  SELECT c.source_id, c.record_id, s.process_id, s.handle_id, s.rank, s.rank_count
  FROM raw.nccl_collective_call AS c
  JOIN side AS s USING (source_id, handle_id)
  WHERE EXISTS (SELECT 1 FROM late AS l WHERE l.source_id = c.source_id)
),
by_call AS (
  SELECT l.source_id, l.record_id, c.handle_id
  FROM late AS l
  ASOF JOIN called AS c
    ON c.source_id = l.source_id AND c.process_id = l.process_id AND c.record_id <= l.record_id
  WHERE c.rank = l.own_rank AND c.rank_count > l.other_rank
),
by_ends AS (
  SELECT l.source_id, l.record_id, MIN(a.handle_id) AS handle_id
  FROM late AS l
  JOIN side AS a
    ON a.source_id = l.source_id AND a.process_id = l.process_id AND a.rank = l.own_rank
    AND a.rank_count > l.other_rank AND a.handle_id <= l.record_id
  JOIN side AS b ON b.run_id = a.run_id AND b.communicator_id = a.communicator_id AND b.rank = l.other_rank
  WHERE COALESCE(l.own_device = a.device, TRUE) AND COALESCE(l.other_device = b.device, TRUE)
    -- NVLink may join hosts.
    AND ((a.host = b.host) = (l.transport IN ('P2P', 'SHM')) OR l.mode = 'MNNVL')
  GROUP BY l.source_id, l.record_id
  HAVING COUNT(DISTINCT a.handle_id) = 1
),
implied AS (
  SELECT l.source_id, l.record_id, m.handle_id
  FROM late AS l
  JOIN fabric.process AS p ON p.source_id = l.source_id AND p.process_id = l.process_id
  JOIN fabric.member AS m
    ON m.source_id = l.source_id AND m.process = p.process AND m.rank = l.own_rank AND m.identity = 'implied'
)
SELECT source_id, record_id, handle_id, handle_origin FROM raw.nccl_link WHERE handle_id IS NOT NULL
UNION ALL
SELECT l.source_id, l.record_id, COALESCE(c.handle_id, e.handle_id, i.handle_id),
  CASE WHEN c.handle_id IS NOT NULL THEN 'call' WHEN e.handle_id IS NOT NULL THEN 'ends' ELSE 'implied' END
FROM late AS l
LEFT JOIN by_call AS c USING (source_id, record_id)
LEFT JOIN by_ends AS e USING (source_id, record_id)
LEFT JOIN implied AS i USING (source_id, record_id)
WHERE COALESCE(c.handle_id, e.handle_id, i.handle_id) IS NOT NULL
