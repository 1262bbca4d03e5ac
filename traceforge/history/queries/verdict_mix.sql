-- How often each verdict was given, by job.
SELECT job, COALESCE(verdict, 'none') AS verdict, COALESCE(confidence, '') AS confidence, COUNT(*) AS runs
FROM history.run
GROUP BY ALL
ORDER BY job, runs DESC, verdict, confidence
