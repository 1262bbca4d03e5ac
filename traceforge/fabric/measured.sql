-- Collectives timed by NCCL's Inspector: one row per (communicator, operation, number), over all ranks that report it.
-- A rank's time starts at its own arrival: the shortest is the transfer after the last arrival, and the excess of the
-- other ranks is their wait. This needs neither a timeline nor aligned clocks.
-- Scope: run
CREATE OR REPLACE TABLE fabric.measured (
  -- Joins meta.run.run_id.
  run_id,
  -- commHash, as fabric.communicator.comm_hash.
  comm_hash,
  -- Joins fabric.communicator.communicator_id within the run; NULL where no log mentions the communicator.
  communicator_id,
  -- Operation, such as all_reduce.
  op,
  -- The Inspector's counter within communicator and operation.
  sequence,
  -- Message size, bytes, as stated; the largest over ranks.
  size_bytes,
  -- Ranks of the communicator.
  rank_count,
  -- Ranks that measured it.
  member_count,
  -- Shortest time of a rank, ns: the transfer after the last arrival where all ranks are present.
  transfer_ns,
  -- Longest time of a rank, ns.
  longest_ns,
  -- Longest minus shortest, ns: how long the first arriver waited for the last; NULL unless all ranks are present.
  skew_ns,
  -- Rank in the communicator whose time was shortest: it arrived last; NULL unless all ranks are present.
  last_rank,
  -- The same rank in the job; NULL where no log states it.
  last_global_rank,
  -- Bus bandwidth as the Inspector states it for the shortest time, bytes/s; NULL where it states none.
  bus_bandwidth_bytes_per_s,
  -- kernel_gpu, or a less exact clock where a rank had no other: kernel_cpu, collective_cpu.
  timing_source
) AS
WITH known AS (
  SELECT run_id, comm_hash, rank_count, MIN(communicator_id) AS communicator_id
  FROM fabric.communicator
  WHERE comm_hash IS NOT NULL
  GROUP BY run_id, comm_hash, rank_count
),
timed AS (
  -- A record that occurs in two dumps counts once.
  SELECT s.run_id, i.comm_hash, i.rank_count, LOWER(REGEXP_REPLACE(i.op, '([a-z])([A-Z])', '\1_\2', 'g')) AS op,
    i.sequence, i.rank, MAX(i.size_bytes) AS size_bytes, MIN(i.duration_ns) AS duration_ns,
    ARG_MIN(i.bus_bandwidth_bytes_per_s, i.duration_ns) AS bus_bandwidth_bytes_per_s,
    MAX(CASE i.timing_source WHEN 'kernel_gpu' THEN 0 WHEN 'kernel_cpu' THEN 1 ELSE 2 END) AS clock
  FROM raw.nccl_inspector_operation AS i
  JOIN meta.source AS s USING (source_id)
  WHERE i.duration_ns > 0 AND i.sequence IS NOT NULL AND i.rank IS NOT NULL AND i.peer IS NULL
  GROUP BY ALL
),
gathered AS (
  SELECT run_id, comm_hash, rank_count, op, sequence, MAX(size_bytes) AS size_bytes, COUNT(*) AS member_count,
    MIN(duration_ns) AS transfer_ns, MAX(duration_ns) AS longest_ns, ARG_MIN(rank, (duration_ns, rank)) AS last_rank,
    ARG_MIN(bus_bandwidth_bytes_per_s, (duration_ns, rank)) AS bus_bandwidth_bytes_per_s, MAX(clock) AS clock
  FROM timed
  GROUP BY ALL
),
seat AS (
  SELECT run_id, communicator_id, rank, MIN(global_rank) AS global_rank
  FROM fabric.member
  GROUP BY run_id, communicator_id, rank
)
SELECT g.run_id, g.comm_hash, k.communicator_id, g.op, g.sequence, g.size_bytes, g.rank_count, g.member_count,
  g.transfer_ns, g.longest_ns,
  CASE WHEN g.member_count = g.rank_count THEN g.longest_ns - g.transfer_ns END,
  CASE WHEN g.member_count = g.rank_count THEN g.last_rank END,
  CASE WHEN g.member_count = g.rank_count THEN s.global_rank END,
  g.bus_bandwidth_bytes_per_s,
  ['kernel_gpu', 'kernel_cpu', 'collective_cpu'][g.clock + 1]
FROM gathered AS g
LEFT JOIN known AS k ON k.run_id = g.run_id AND k.comm_hash = g.comm_hash AND k.rank_count = g.rank_count
LEFT JOIN seat AS s ON s.run_id = g.run_id AND s.communicator_id = k.communicator_id AND s.rank = g.last_rank
ORDER BY g.run_id, g.comm_hash, g.op, g.sequence
