-- Whether all ranks of a process group issue the same sequence of collectives: one row a (run, process group, members).
--
-- Compared are operation, element type and, where all ranks must move the same, bytes; no times. Sequence numbers align
-- the ranks where every call states one, else the order of calls. Where ranks disagree, the
-- value of most is expected (of equals, the lowest rank's).
-- Scope: run
-- Reads: graph.communication
CREATE OR REPLACE TABLE graph.divergence (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- As in graph.communication; NULL where the group is unknown.
  process_group VARCHAR,
  -- Ranks compared.
  ranks BIGINT[] NOT NULL,
  -- Places of the sequence that at least two ranks cover.
  compared_count BIGINT NOT NULL,
  -- agrees, differs, shorter (one rank stops earlier and agrees until then: often the end of its recording), or
  -- not_comparable (one rank only, or calls whose group or members are not known).
  status VARCHAR NOT NULL,
  -- First place that differs: sequence number, or order of the call; NULL when none does.
  first_place BIGINT,
  -- Rank that differs there; NULL when none does.
  rank INTEGER,
  -- Its execution trace; joins meta.source.source_id.
  source_id INTEGER,
  -- Node of that rank, as its file numbers it; NULL where it has no call at that place.
  node_id BIGINT,
  -- What it issues, such as all_reduce 4096 bytes float.
  found VARCHAR,
  -- What the other ranks issue.
  expected VARCHAR
)
