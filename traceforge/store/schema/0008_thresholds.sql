-- Every number that decides what is said: the limits of the version that built the stages.
CREATE TABLE meta.threshold (
  -- Module and constant in traceforge.thresholds, such as attribute.LEAST_SHARE.
  name VARCHAR PRIMARY KEY,
  -- The limit.
  value DOUBLE NOT NULL,
  -- Unit of the value, such as ns, iterations, probability, share of the mean iteration.
  unit VARCHAR NOT NULL,
  -- What the limit means.
  meaning VARCHAR NOT NULL,
  -- Table, column or answer that depends on it.
  decides VARCHAR NOT NULL
);
