-- What live pacing brought in blocks with and without it, beside what a replay predicted.
SELECT
  policy, is_dry_run, pairs, throughput_ratio, throughput_ratio_low, throughput_ratio_high,
  foretold_ratio, foretold_ratio_low, foretold_ratio_high, agrees
FROM replay.paced
WHERE run_id = $run_id
