-- Hosts and NICs that took part in a run, and those that a finding of high or medium confidence accuses.
CREATE TABLE history.member (
  -- Joins history.run.run_key.
  run_key VARCHAR NOT NULL,
  -- host or nic.
  kind VARCHAR NOT NULL,
  -- Name of the host; of a NIC the name of its host, a blank, and its own.
  name VARCHAR NOT NULL,
  -- Ranks on that host, ascending.
  ranks INTEGER[],
  -- Whether a finding names it, or ranks of it alone, and not because they do more work.
  is_accused BOOLEAN NOT NULL
)
