-- Algorithm and protocol that NCCL chose by operation and size, with the communicators that used them.
SELECT
  choice.op,
  choice.size_bytes,
  choice.algorithm,
  choice.protocol,
  MIN(choice.channel_low) AS channel_low,
  MAX(choice.channel_high) AS channel_high,
  COUNT(DISTINCT choice.communicator_id) AS communicators,
  CAST(SUM(choice.choices) AS BIGINT) AS choices
FROM fabric.choice
WHERE choice.run_id = $run_id
GROUP BY choice.op, choice.size_bytes, choice.algorithm, choice.protocol
ORDER BY choices DESC, choice.op, choice.size_bytes, choice.algorithm, choice.protocol
