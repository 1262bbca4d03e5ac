-- Of a history: in how many of their jobs hosts and NICs were accused, and in how many chance alone would accuse them.
WITH participation AS (
  SELECT COALESCE(run.job_id, run.run_key) AS job, member.kind, member.name, BOOL_OR(member.is_accused) AS is_accused
  FROM history.run AS run
  JOIN history.member AS member USING (run_key)
  GROUP BY ALL
),
chance AS (
  SELECT job, kind, COUNT(*) FILTER (WHERE is_accused) / COUNT(*) AS chance FROM participation GROUP BY job, kind
)
SELECT participation.kind, participation.name, COUNT(*) AS jobs, COUNT(*) FILTER (WHERE is_accused) AS guilty_jobs,
  SUM(chance.chance) AS by_chance
FROM participation
JOIN chance USING (job, kind)
GROUP BY participation.kind, participation.name
ORDER BY guilty_jobs - by_chance DESC, participation.kind, participation.name
