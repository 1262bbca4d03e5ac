-- From when to when a file recorded, and on which devices: one row a file with events.
-- Scope: source
-- Reads: raw.event, align.file_batch
-- In parts by: align.file_batch
CREATE OR REPLACE TABLE align.extent (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Start of the first event with a duration, ns on the rank's own clock, but for times that are no times of that clock;
  -- NULL where none is left.
  raw_first_ns BIGINT,
  -- End of the last one, ns on the same clock; NULL where none has a duration.
  raw_last_ns BIGINT,
  -- Lowest device of a kernel; NULL where there is none.
  first_device INTEGER,
  -- Highest of them.
  last_device INTEGER,
  -- Whether anything ran on a device.
  has_device BOOLEAN NOT NULL,
  -- Lowest device that an event with a stream names; NULL where none does.
  stream_device INTEGER
)
