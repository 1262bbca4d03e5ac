-- One row a run of a job that was added to this history.
CREATE TABLE history.run (
  -- Hash of the files that the run was read from: adding it again replaces it.
  run_key VARCHAR NOT NULL,
  -- Name of the run in its trace database.
  run_name VARCHAR NOT NULL,
  -- Name of the job, as given with --job, else the name of the run: runs of one job are compared.
  job VARCHAR NOT NULL,
  -- Identifier of the execution, as given with --job-id: runs that share it count as one job where hosts are judged.
  job_id VARCHAR,
  -- Version of the code, as given with --commit; NULL where nobody said it.
  commit_id VARCHAR,
  -- Place in the order in which runs were added, from 0.
  sequence INTEGER NOT NULL,
  -- When it was added, ns since 1970.
  added_ns BIGINT NOT NULL,
  -- When its first iteration began, ns since 1970; NULL where its clocks count from elsewhere.
  recorded_ns BIGINT,
  -- How long the job ran, hours, as given with --hours; NULL where nobody said it: a trace shows seconds of a job.
  hours DOUBLE,
  -- Ranks of the job: as it states, else as many as were recorded.
  ranks INTEGER NOT NULL,
  -- Ranks that have a trace.
  recorded_ranks INTEGER NOT NULL,
  -- Hosts that the traces name.
  hosts INTEGER NOT NULL,
  -- Whether device kernels were recorded; false where only host threads were.
  has_devices BOOLEAN NOT NULL,
  -- Names of the devices, separated by commas; NULL where no trace names one.
  device VARCHAR,
  -- Parallel layout, such as dp=4, tp=2; NULL where the groups of the job do not tell it.
  layout VARCHAR,
  -- Iterations judged.
  iterations INTEGER NOT NULL,
  -- Mean duration of these, ns; NULL where there is none.
  mean_iteration_ns DOUBLE,
  -- finding, nothing_significant or cannot_be_known; NULL without a verdict.
  verdict VARCHAR,
  -- high, medium or low: of that verdict.
  confidence VARCHAR,
  -- The verdict in one sentence.
  headline VARCHAR,
  -- Time above the run's own reference as a share of the mean iteration, below 0 where iterations took less than at it;
  -- NULL where it was not judged.
  delay_share DOUBLE,
  -- The smallest delay of one rank by slow compute in all iterations that would have been found, ns; NULL where none would.
  sight_ns BIGINT,
  -- What bounds the job: the largest avoidable part, as in attribute.bottleneck; NULL where it is not known.
  bound VARCHAR,
  -- Version of traceforge that made the summary.
  made_by VARCHAR NOT NULL
)
