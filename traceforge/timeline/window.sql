-- One row an iteration of one rank, on the aligned clock: the host's step, until what it issued has ended.
--
-- Hosts run ahead of devices. An iteration of a rank therefore ends when the host's step and the last collective it
-- issued in that step have ended, and the next one starts no earlier.
-- Scope: rank
CREATE OR REPLACE TABLE timeline.window (
  -- Joins meta.run.run_id.
  run_id,
  -- Iteration number, as the profiler counts steps.
  iteration,
  -- Global rank.
  rank,
  -- Start, aligned clock, ns.
  start_ns,
  -- End, aligned clock, ns.
  end_ns
) AS
WITH issued AS (
  SELECT s.run_id, s.rank, s.iteration, MAX(c.raw_end_ns) AS raw_end_ns
  FROM align.call AS c
  ASOF JOIN align.step AS s ON s.run_id = c.run_id AND s.rank = c.rank AND c.raw_issue_ns >= s.raw_start_ns
  WHERE c.raw_issue_ns < s.raw_end_ns
  GROUP BY ALL
),
ended AS (
  SELECT
    s.run_id, s.rank, s.iteration, s.raw_start_ns,
    MAX(GREATEST(s.raw_end_ns, COALESCE(i.raw_end_ns, s.raw_end_ns))) OVER so_far AS raw_end_ns,
    s.is_marked
  FROM align.step AS s
  LEFT JOIN issued AS i USING (run_id, rank, iteration)
  WINDOW so_far AS (PARTITION BY s.run_id, s.rank ORDER BY s.raw_start_ns)
),
begun AS (
  SELECT *,
    GREATEST(raw_start_ns, COALESCE(LAG(raw_end_ns) OVER (PARTITION BY run_id, rank ORDER BY raw_start_ns), raw_start_ns))
      AS raw_begin_ns
  FROM ended
)
SELECT
  b.run_id, b.iteration, b.rank,
  b.raw_begin_ns - align.ahead_ns(b.raw_begin_ns, f),
  b.raw_end_ns - align.ahead_ns(b.raw_end_ns, u)
FROM begun AS b
ASOF JOIN align.clock_piece AS f ON f.run_id = b.run_id AND f.rank = b.rank AND b.raw_begin_ns >= f.raw_from_ns
ASOF JOIN align.clock_piece AS u ON u.run_id = b.run_id AND u.rank = b.rank AND b.raw_end_ns >= u.raw_from_ns
WHERE b.raw_begin_ns < b.raw_end_ns
ORDER BY b.run_id, b.iteration, b.rank
