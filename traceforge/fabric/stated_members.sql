-- Ranks of a group as its dump states them, in that order: NULL where it states none, or they are no ranks.
CREATE OR REPLACE MACRO fabric.stated_members(
  -- JSON text of a list of ranks.
  ranks
) AS CASE
  WHEN LEN(LIST_DISTINCT(LIST_FILTER(TRY_CAST(ranks AS INTEGER[]), LAMBDA one: one >= 0)))
    = NULLIF(LEN(TRY_CAST(ranks AS INTEGER[])), 0)
    THEN TRY_CAST(ranks AS INTEGER[])
END
