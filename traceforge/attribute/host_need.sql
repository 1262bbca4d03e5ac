-- What each host needs for itself in each whole iteration, of runs in attribute.host_pace.
--
-- A host of which nothing is recorded while its device has no work works in Python, or waits for another host. As one of them is
-- the last and waits for none, what all of them have in an iteration is work. Fetching input that ends as the device does is a
-- wait; how much of it is work is not known: `possible_ns` takes it for as long as the quickest host fetches.
-- Hosts that wait for their devices in each iteration are held up by what these have left to do, too, however fast hosts are.
-- Scope: run
CREATE OR REPLACE TABLE attribute.host_need (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank.
  rank,
  -- Iteration number; those of warm-up, and those that are not whole, are absent.
  iteration,
  -- Time in which the host surely works, ns: what it does, and the least of the hosts' `unnamed_ns`.
  host_ns,
  -- The same if it fetches input for at least as long as the quickest host, ns.
  possible_ns,
  -- Of `host_ns`, fetching input, ns.
  input_ns,
  -- Time in which even the host that waits least waits for its device, ns: what devices have left to do when hosts are done.
  least_awaited_ns
) AS
SELECT
  h.run_id, h.rank, h.iteration,
  CAST(SUM(h.host_ns + h.least_unnamed_ns) AS BIGINT),
  CAST(SUM(h.host_ns + h.least_unnamed_ns + GREATEST(0, h.least_fetching_ns - h.input_ns)) AS BIGINT),
  CAST(SUM(h.input_ns) AS BIGINT),
  CAST(SUM(h.least_awaited_ns) AS BIGINT)
FROM (
  SELECT
    run_id, rank, iteration, host_ns, input_ns,
    MIN(unnamed_ns) OVER (PARTITION BY run_id, iteration) AS least_unnamed_ns,
    MIN(awaited_ns) OVER (PARTITION BY run_id, iteration) AS least_awaited_ns,
    MIN(input_ns + fetching_wait_ns) OVER (PARTITION BY run_id, iteration) AS least_fetching_ns
  FROM attribute.host_pace
) AS h
JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE NOT i.is_warmup AND NOT i.is_partial
GROUP BY h.run_id, h.rank, h.iteration
ORDER BY h.run_id, h.rank, h.iteration
