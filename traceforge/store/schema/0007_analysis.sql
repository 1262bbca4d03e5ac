-- What was chosen for the stages that are built from the facts; one row.
CREATE TABLE meta.analysis (
  -- What work takes where nothing is late: median, first_quartile or best_rank (see replay.reference_rule).
  reference VARCHAR NOT NULL
);

INSERT INTO meta.analysis VALUES ('median');
