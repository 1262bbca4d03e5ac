-- Whether all ranks of a process group issue the same sequence of collectives: one row a (run, process group, members).
--
-- Compared are operation, element type and, where all ranks must move the same, bytes; no times. Each rank is held
-- against the sequence that most ranks have (of equally common ones, the longest). Sequence numbers tell where recordings
-- begin, if every call states one. A row tells of the first rank that does not fit; meta.issue has one for each.
-- Scope: run
-- Reads: graph.communication, raw.chakra_communication, raw.chakra_node
CREATE OR REPLACE TABLE graph.divergence (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- As in graph.communication; NULL where the group is unknown.
  process_group VARCHAR,
  -- Ranks compared.
  ranks BIGINT[] NOT NULL,
  -- Places of the sequence that at least two ranks cover.
  compared_count BIGINT NOT NULL,
  -- agrees, differs (another call in the place of one), missing (a rank lacks calls that others make, and goes on as
  -- they do), extra (it makes calls that others do not), unrecorded (the same as missing, but the numbers of its calls
  -- skip some: they were made and are not in the recording), shorter (one recording merely begins later or ends earlier),
  -- or not_comparable (one rank only, or calls whose group or members are not known).
  status VARCHAR NOT NULL,
  -- First place that differs: sequence number, or number of the collective within the group, from 0; NULL when none does.
  first_place BIGINT,
  -- Last place that it may be, where calls around a missing one are alike; equals first_place where it is known.
  last_place BIGINT,
  -- Calls that only this rank, or all but this rank, has; NULL when none is missing.
  call_count BIGINT,
  -- Rank that differs there; NULL when none does.
  rank INTEGER,
  -- Its execution trace; joins meta.source.source_id.
  source_id INTEGER,
  -- Node of that rank, as its file numbers it; NULL where it has no call at that place.
  node_id BIGINT,
  -- Last call of that rank before the ones that it lacks, as its file numbers it; NULL where it lacks none, or its first.
  previous_node_id BIGINT,
  -- What it issues, such as all_reduce 4096 bytes float.
  found VARCHAR,
  -- What the other ranks issue.
  expected VARCHAR,
  -- A rank that issues what is expected; NULL when none differs.
  peer_rank INTEGER,
  -- Node of the call that is expected, as the file of that rank numbers it; NULL where that is no call.
  peer_node_id BIGINT,
  -- Ranks that issue the same as that one.
  peer_count BIGINT
)
