-- Memory that the allocator handed out (where memory was profiled), by rank and iteration, against the trace's start.
WITH change AS (
  SELECT k.run_id, k.rank, e.raw_start_ns,
    SUM(e.size_bytes) OVER (PARTITION BY e.source_id, e.device ORDER BY e.raw_start_ns, e.event_id) AS held_bytes
  FROM raw.event AS e
  JOIN align.rank AS k USING (source_id)
  WHERE e.name = '[memory]' AND e.size_bytes IS NOT NULL
)
SELECT c.run_id, c.rank, s.iteration, COUNT(*) AS changes, MIN(c.held_bytes) AS least_bytes,
  MAX(c.held_bytes) AS most_bytes, ARG_MAX(c.held_bytes, c.raw_start_ns) AS at_end_bytes
FROM change AS c
LEFT JOIN align.step AS s
  ON s.run_id = c.run_id AND s.rank = c.rank AND c.raw_start_ns >= s.raw_start_ns AND c.raw_start_ns < s.raw_end_ns
GROUP BY c.run_id, c.rank, s.iteration
ORDER BY c.run_id, c.rank, s.iteration
