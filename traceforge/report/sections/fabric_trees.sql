-- Trees of the largest communicator by channel: the root, how many ranks have rank below, and who reaches other nodes.
-- That is unknown where a rank's log is missing.
WITH shown AS (
  SELECT MIN(communicator_id) AS communicator_id
  FROM fabric.tree
  WHERE run_id = $run_id
)
SELECT
  tree.channel,
  COUNT(*) AS ranks,
  MIN(tree.rank) FILTER (WHERE tree.parent_rank IS NULL) AS root,
  COUNT(*) FILTER (WHERE tree.parent_rank IS NULL) AS roots,
  MAX(LEN(tree.child_ranks)) AS most_children,
  CASE
    WHEN COUNT(DISTINCT tree.rank) = ANY_VALUE(c.rank_count) THEN COUNT(*) FILTER (WHERE own.host <> above.host)
  END AS crossings
FROM fabric.tree
JOIN shown
  ON shown.communicator_id = tree.communicator_id
JOIN fabric.communicator AS c
  ON c.run_id = tree.run_id AND c.communicator_id = tree.communicator_id
LEFT JOIN fabric.member AS own
  ON own.run_id = tree.run_id AND own.communicator_id = tree.communicator_id AND own.rank = tree.rank
LEFT JOIN fabric.member AS above
  ON above.run_id = tree.run_id AND above.communicator_id = tree.communicator_id AND above.rank = tree.parent_rank
WHERE tree.run_id = $run_id
GROUP BY tree.channel
ORDER BY tree.channel
