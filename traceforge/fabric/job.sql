-- Which processes worked together: one row per process that is a member of some communicator. A log may hold the output
-- of several jobs one after the other.
-- Scope: run
CREATE OR REPLACE TABLE fabric.job (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins fabric.process.process within the run.
  process,
  -- Number of the job: the smallest communicator_id that its processes share.
  job
) AS
WITH joined AS (
  SELECT DISTINCT run_id, process, communicator_id FROM fabric.member
),
-- Processes of different groups (tensor parallel, data parallel) meet through a third one.
once AS (
  SELECT run_id, process, MIN(communicator_id) AS label
  FROM joined
  GROUP BY run_id, process
),
by_communicator AS (
  SELECT j.run_id, j.communicator_id, MIN(o.label) AS label
  FROM joined AS j
  JOIN once AS o USING (run_id, process)
  GROUP BY j.run_id, j.communicator_id
),
twice AS (
  SELECT j.run_id, j.process, MIN(c.label) AS label
  FROM joined AS j
  JOIN by_communicator AS c USING (run_id, communicator_id)
  GROUP BY j.run_id, j.process
),
again AS (
  SELECT j.run_id, j.communicator_id, MIN(t.label) AS label
  FROM joined AS j
  JOIN twice AS t USING (run_id, process)
  GROUP BY j.run_id, j.communicator_id
)
SELECT j.run_id, j.process, MIN(c.label)
FROM joined AS j
JOIN again AS c USING (run_id, communicator_id)
GROUP BY j.run_id, j.process
ORDER BY 1, 2
