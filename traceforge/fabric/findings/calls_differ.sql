-- Some ranks of a communicator make fewer calls than most, or more, and the same ones as far as they go.
-- Mode: runtime_control_plane
-- Severity: notice
-- Summary: As far as these logs go, most ranks of communicator {subject} make {usual:count collective}, {found}{of_ranks}.
-- Next step: If the job hangs, look at the stacks of the ranks with fewer calls (py-spy dump): the others wait for them. If
--   it does not, their log was cut, or begins later.
WITH called AS (
  SELECT run_id, communicator_id, rank, COUNT(*) AS calls, MAX((source_id, line)) AS last
  FROM fabric.operation
  WHERE op NOT IN ('send', 'recv') AND rank IS NOT NULL
  GROUP BY run_id, communicator_id, rank
),
differing AS (
  -- Where ranks call different things, another finding says more.
  SELECT run_id, communicator_id
  FROM fabric.operation
  WHERE op NOT IN ('send', 'recv') AND rank IS NOT NULL
  GROUP BY run_id, communicator_id, sequence
  HAVING COUNT(DISTINCT (op, element_count, datatype, root)) > 1
),
counted AS (
  SELECT run_id, communicator_id, calls, COUNT(*) AS ranks_with,
    SUM(COUNT(*)) OVER (PARTITION BY run_id, communicator_id) AS ranks_in_all
  FROM called
  GROUP BY run_id, communicator_id, calls
),
usual AS (
  SELECT run_id, communicator_id, calls FROM counted
  WHERE ranks_with > ranks_in_all - ranks_with AND ranks_with < ranks_in_all
)
SELECT
  c.run_id, 'communicator' AS subject_kind, c.communicator_id AS subject, ANY_VALUE(u.calls) AS usual,
  CASE WHEN COUNT(*) = 1 THEN 'one makes ' ELSE FORMAT('{} make ', COUNT(*)) END
    || CASE WHEN MIN(c.calls) = MAX(c.calls) THEN FORMAT('{:,}', MIN(c.calls))
      ELSE FORMAT('{:,} to {:,}', MIN(c.calls), MAX(c.calls)) END AS found,
  LIST(m.global_rank) AS ranks, MIN(c.last) AS first, COUNT(*) AS citation_count
FROM called AS c
JOIN usual AS u ON u.run_id = c.run_id AND u.communicator_id = c.communicator_id AND u.calls <> c.calls
LEFT JOIN fabric.member AS m ON m.run_id = c.run_id AND m.communicator_id = c.communicator_id AND m.rank = c.rank
ANTI JOIN differing AS d ON d.run_id = c.run_id AND d.communicator_id = c.communicator_id
GROUP BY c.run_id, c.communicator_id
