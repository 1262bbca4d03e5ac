-- How far a process got in a process group, as a PyTorch flight recorder dump counts it: one row a group of the dump.
CREATE TABLE raw.flight_recorder_progress (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Number of the process group in the process, as in raw.flight_recorder_entry; the file does not state its name.
  process_group_id INTEGER NOT NULL,
  -- Last sequence number enqueued, -1 before the first; NULL where not stated.
  last_enqueued BIGINT,
  -- Last one that started, -1 before the first or where starts are not recorded; NULL where not stated.
  last_started BIGINT,
  -- Last one that ended, -1 before the first; NULL where not stated.
  last_completed BIGINT
);

INSERT INTO raw.flight_recorder_progress
SELECT source_id, TRY_CAST(process_group_name AS INTEGER), last_enqueued, last_started, last_completed
FROM raw.flight_recorder_group
WHERE TRY_CAST(process_group_name AS INTEGER) IS NOT NULL
  AND COALESCE(last_enqueued, last_started, last_completed) IS NOT NULL;

-- Progress was kept under the number of a group in the process, as if that were the group's name.
ALTER TABLE raw.flight_recorder_group RENAME TO flight_recorder_group_with_progress;

-- One row a process group that a PyTorch flight recorder dump describes.
CREATE TABLE raw.flight_recorder_group (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Process group name.
  process_group_name VARCHAR NOT NULL,
  -- Description, such as default_pg.
  description VARCHAR,
  -- Global ranks, as the JSON text of a list; NULL where not stated.
  ranks VARCHAR
);

INSERT INTO raw.flight_recorder_group
SELECT source_id, process_group_name, description, ranks
FROM raw.flight_recorder_group_with_progress
WHERE COALESCE(ranks, description) IS NOT NULL OR COALESCE(last_enqueued, last_started, last_completed) IS NULL;

DROP TABLE raw.flight_recorder_group_with_progress;
