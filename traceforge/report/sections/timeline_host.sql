-- What the host did while the device had nothing to do; on ranks without a device, while no rank computed on it.
SELECT rank, iteration, start_ns, duration_ns, cause, call, call_ns
FROM timeline.gap
WHERE run_id = $run_id
  AND iteration IN ($iterations)
  AND rank IN ($ranks)
UNION ALL
SELECT segment.rank, segment.iteration, segment.start_ns, segment.duration_ns, segment.activity, NULL, NULL
FROM timeline.segment AS segment
JOIN align.rank AS recorded
  ON recorded.run_id = segment.run_id
  AND recorded.rank = segment.rank
WHERE segment.run_id = $run_id
  AND segment.iteration IN ($iterations)
  AND segment.rank IN ($ranks)
  AND NOT recorded.has_device
  AND segment.phase IN ('input', 'runtime', 'idle')
ORDER BY rank, iteration, start_ns
