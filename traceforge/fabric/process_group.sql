-- Process groups of the flight recorder dumps: one row a name and set of members, as one name may stand for other
-- groups on other ranks.
-- Scope: run
CREATE OR REPLACE TABLE fabric.process_group (
  -- Joins meta.run.run_id.
  run_id,
  -- Number within the run, from 0.
  group_id,
  -- Name, often a number that PyTorch counts up.
  name,
  -- What the program calls it, such as TENSOR_MODEL_PARALLEL_GROUP; NULL where it does not.
  description,
  -- Its members as ranks of the job, in the group's own order; NULL where no dump states them.
  ranks,
  -- Members whose dump is there.
  dump_count,
  -- Members whose dump is not, ascending; NULL where the members are unknown.
  without_dump,
  -- Whether sends and receives run in it: then counters count each rank's own messages, and calls alone show progress.
  has_messages
) AS
WITH described AS (
  SELECT
    d.run_id, d.rank, d.source_id, g.process_group_name AS name, g.description,
    fabric.stated_members(g.ranks) AS ranks
  FROM raw.flight_recorder_group AS g
  JOIN fabric.hang_dump AS d USING (source_id)
),
called AS (
  SELECT d.run_id, d.rank, e.source_id, e.process_group_name AS name, BOOL_OR(e.is_p2p) AS has_messages
  FROM raw.flight_recorder_entry AS e
  JOIN fabric.hang_dump AS d USING (source_id)
  WHERE e.process_group_name IS NOT NULL
  GROUP BY ALL
),
own AS (
  SELECT
    COALESCE(g.run_id, c.run_id) AS run_id, COALESCE(g.rank, c.rank) AS rank, COALESCE(g.name, c.name) AS name,
    g.description, g.ranks, COALESCE(c.has_messages, false) AS has_messages
  FROM described AS g
  FULL JOIN called AS c USING (source_id, name)
),
joined AS (
  SELECT
    run_id, name, ranks, MIN(NULLIF(description, '')) AS description, LIST(DISTINCT rank) AS dumped,
    BOOL_OR(has_messages) AS has_messages
  FROM own
  GROUP BY run_id, name, ranks
)
SELECT
  run_id,
  CAST(ROW_NUMBER() OVER (
    PARTITION BY run_id ORDER BY TRY_CAST(name AS BIGINT) NULLS LAST, name, ranks NULLS LAST
  ) - 1 AS INTEGER),
  name, description, ranks, CAST(LEN(dumped) AS INTEGER),
  LIST_SORT(LIST_FILTER(ranks, LAMBDA one: NOT LIST_CONTAINS(dumped, one))),
  has_messages
FROM joined
