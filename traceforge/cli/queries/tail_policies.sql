-- Pacing policies that would lower the 99 % point without losing throughput (half a per cent at most).
SELECT o.run_id, o.policy, o.parameters, o.p99_ns / 1e6 AS p99_ms, n.p99_ns / 1e6 AS unpaced_p99_ms,
  o.throughput_ratio, o.cv, o.verdict, o.reason
FROM replay.outcome AS o
JOIN replay.outcome AS n ON n.run_id = o.run_id AND n.policy = 'none'
WHERE o.p99_ns < n.p99_ns AND o.throughput_ratio >= 0.995
ORDER BY o.run_id, o.p99_ns, o.policy, o.parameters
