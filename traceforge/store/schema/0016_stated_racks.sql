-- Which rack a host stands in, as the user states it; none where nothing was stated.
CREATE TABLE meta.stated_rack (
  -- Host name, as align.rank.host has it, or without its domain.
  host VARCHAR PRIMARY KEY,
  -- Name of the rack.
  rack VARCHAR NOT NULL
);

-- How names of hosts tell their rack, as the user states it: one row, or none.
CREATE TABLE meta.rack_pattern (
  -- Regular expression (Python's), searched in the name; its only group is the rack.
  pattern VARCHAR NOT NULL
);
