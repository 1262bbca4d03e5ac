-- One row an exception of PyTorch that quotes an error of NCCL, as a job's output has it without any NCCL_DEBUG.
CREATE TABLE raw.nccl_exception (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- Global rank as the line names it (since PyTorch 2.2), or the watchdog's rank in its process group; NULL where none.
  rank INTEGER,
  -- File and line of PyTorch that gave up; NULL where the watchdog did.
  place VARCHAR,
  -- PyTorch's words for the error, such as unhandled system error.
  meaning VARCHAR NOT NULL,
  -- NCCL's name for it, such as ncclSystemError; NULL where not printed.
  result VARCHAR,
  -- Version of NCCL; NULL where not printed.
  nccl_version VARCHAR,
  -- What NCCL said last; NULL where it said nothing.
  text VARCHAR
);
