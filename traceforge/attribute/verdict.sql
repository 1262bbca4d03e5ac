-- The verdict in words: one row a run.
CREATE OR REPLACE TABLE attribute.verdict (
  -- Joins meta.run.run_id.
  run_id,
  -- finding, nothing_significant or cannot_be_known.
  kind,
  -- The answer in one sentence.
  headline,
  -- What it rests on, and how much of the excess is explained.
  explanation,
  -- high, medium or low.
  confidence,
  -- What to do next.
  next_step
) AS
WITH judged AS (
  SELECT e.run_id, COUNT(*) AS iterations, AVG(i.duration_ns) AS duration_ns, AVG(e.excess_ns) AS excess_ns
  FROM attribute.excess AS e
  JOIN timeline.iteration AS i USING (run_id, iteration)
  WHERE NOT i.is_warmup
  GROUP BY ALL
),
ranked AS (
  SELECT run_id, COUNT(*) AS ranks FROM align.rank GROUP BY ALL
),
matched AS (
  SELECT run_id, COUNT(*) AS collectives FROM timeline.collective WHERE iteration IS NOT NULL GROUP BY ALL
),
called AS (
  SELECT run_id, COUNT(*) AS calls FROM align.call GROUP BY ALL
),
top AS (
  SELECT * FROM attribute.finding WHERE finding_id = 0
)
SELECT
  r.run_id,
  CASE
    WHEN COALESCE(k.ranks, 0) < 2 OR COALESCE(m.collectives, 0) = 0 OR j.run_id IS NULL THEN 'cannot_be_known'
    WHEN t.confidence IN ('high', 'medium') THEN 'finding'
    ELSE 'nothing_significant'
  END AS kind,
  CASE
    WHEN k.run_id IS NULL THEN 'No trace of this run can be read as a timeline.'
    WHEN k.ranks < 2 THEN 'Only one rank was recorded: who waits for whom cannot be known from this.'
    WHEN COALESCE(m.collectives, 0) = 0 AND COALESCE(c.calls, 0) = 0 THEN
      'No communication between ranks was recorded: who waits for whom cannot be known from this.'
    WHEN COALESCE(m.collectives, 0) = 0 THEN
      'The collectives of different ranks cannot be matched with certainty: who waits for whom cannot be known from this.'
    WHEN j.run_id IS NULL THEN
      'No iteration was recorded in the same form by all ranks: delays cannot be told apart from the program.'
    WHEN t.confidence IN ('high', 'medium') THEN t.summary
    ELSE 'Nothing significant: no rank and no transfer stands out of this run''s own noise.'
  END AS headline,
  CASE
    WHEN j.run_id IS NULL THEN 'See the data-quality panel for what was found and what was left out.'
    ELSE FORMAT(
      '{} iterations were judged; they take {:.1f} ms on average, {:.1f} ms above what the same work takes at median durations.',
      j.iterations, j.duration_ns / 1e6, j.excess_ns / 1e6
    )
  END AS explanation,
  CASE
    WHEN t.confidence IN ('high', 'medium') AND m.collectives > 0 THEN t.confidence
    WHEN j.iterations >= 10 THEN 'high'
    WHEN j.iterations >= 3 THEN 'medium'
    ELSE 'low'
  END AS confidence,
  CASE
    WHEN t.confidence IN ('high', 'medium') AND m.collectives > 0 THEN t.next_step
    WHEN COALESCE(k.ranks, 0) < 2 THEN
      'Record the same steps on all ranks, one trace file a rank, and give the folder that holds them.'
    WHEN COALESCE(m.collectives, 0) = 0 THEN
      'Record with torch.profiler on PyTorch 2.4 or later, all ranks in the same steps, with activities CPU and CUDA.'
    WHEN j.run_id IS NULL OR j.iterations < 10 THEN
      'Record ten or more steps (torch.profiler.schedule with active=10), so that rare delays can be told from noise.'
    ELSE 'If it still scales badly, compare with a run at another scale: the time per collective is then the question.'
  END AS next_step
FROM meta.run AS r
LEFT JOIN ranked AS k USING (run_id)
LEFT JOIN called AS c USING (run_id)
LEFT JOIN matched AS m USING (run_id)
LEFT JOIN judged AS j USING (run_id)
LEFT JOIN top AS t USING (run_id)
ORDER BY r.run_id
