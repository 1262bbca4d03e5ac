-- Which host each rank is on, as files other than its timeline state it: NCCL logs with the rank of the launcher, of the
-- file's name, or in the communicator that spans most ranks; and other files of the rank. Ranks that are stated on
-- several hosts have no row.
-- Scope: run
CREATE OR REPLACE TABLE align.stated_host (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank, from 0.
  rank,
  -- Host name as printed.
  host
) AS
WITH alone AS (
  SELECT source_id, COUNT(*) = 1 AS is_alone FROM raw.nccl_process GROUP BY source_id
),
widest AS (
  SELECT s.run_id, MAX(c.rank_count) AS rank_count
  FROM raw.nccl_communicator AS c
  JOIN meta.source AS s USING (source_id)
  GROUP BY s.run_id
),
stated AS (
  SELECT s.run_id, COALESCE(p.launcher_rank, CASE WHEN a.is_alone THEN s.rank END) AS rank, p.host, 0 AS place
  FROM raw.nccl_process AS p
  JOIN meta.source AS s USING (source_id)
  JOIN alone AS a USING (source_id)
  UNION
  SELECT s.run_id, c.rank, p.host, 1 AS place
  FROM raw.nccl_communicator AS c
  JOIN raw.nccl_process AS p USING (source_id, process_id)
  JOIN meta.source AS s USING (source_id)
  JOIN widest AS w ON w.run_id = s.run_id AND w.rank_count = c.rank_count
  UNION
  SELECT run_id, rank, host, 2 AS place FROM meta.source
),
best AS (
  SELECT run_id, rank, host
  FROM stated
  WHERE rank IS NOT NULL AND host IS NOT NULL
  QUALIFY place = MIN(place) OVER (PARTITION BY run_id, rank)
)
SELECT run_id, rank, MIN(host)
FROM best
GROUP BY run_id, rank
HAVING COUNT(DISTINCT host) = 1
ORDER BY run_id, rank
