-- One row an iteration, over all ranks that recorded it.
-- Scope: iteration
CREATE OR REPLACE TABLE timeline.iteration (
  -- Joins meta.run.run_id.
  run_id,
  -- Iteration number, as the profiler counts steps.
  iteration,
  -- First start over ranks, aligned clock, ns.
  start_ns,
  -- Last end minus first start over ranks, ns.
  duration_ns,
  -- Ranks that recorded it (of a run with aligned clocks, those that are).
  ranks,
  -- True for the first iterations while each takes more than twice the median, in fewer than half of the run, and later
  -- ones do not take about as long again and again: kept, but not judged.
  is_warmup,
  -- True where a rank of the run did not record it (or its truncated file does not hold all of it) or is not aligned,
  -- where the trace marks no steps, where the window begins or ends within it, where a clock was set meanwhile, where
  -- none of its calls has partners or more of them than usual lack some, where device work of a rank has no time,
  -- where the recording ends before the ranks meet that accumulate gradients in it, or where ranks ran an inference
  -- engine's batch of another kind than most are: kept, but not judged.
  is_partial,
  -- Name of the annotation taken for the step, with # in the place of numbers, as in align.step; several where ranks ran
  -- batches of several kinds. NULL where steps are known from elsewhere.
  annotation
) AS
WITH comparable AS (
  -- An unaligned clock does not say when the others' iterations began; if no clock is aligned, all are taken.
  SELECT run_id, rank
  FROM align.clock
  QUALIFY status <> 'unaligned'
    OR COUNT(*) FILTER (WHERE status IN ('fitted', 'shared_clock', 'bounded')) OVER (PARTITION BY run_id) = 0
),
whole AS (
  SELECT run_id, iteration, MIN(start_ns) AS start_ns, MAX(end_ns) - MIN(start_ns) AS duration_ns, COUNT(*) AS ranks
  FROM timeline.window
  SEMI JOIN comparable USING (run_id, rank)
  GROUP BY ALL
),
present AS (
  -- A truncated file that holds no whole step counts as none at all.
  SELECT run_id, COUNT(*) AS ranks
  FROM align.rank AS r
  WHERE raw_intact_ns IS NULL
    OR EXISTS (SELECT 1 FROM align.step AS s WHERE s.run_id = r.run_id AND s.rank = r.rank)
  GROUP BY ALL
),
named AS (
  SELECT run_id, iteration, STRING_AGG(DISTINCT annotation, ', ' ORDER BY annotation) AS annotation
  FROM align.step
  WHERE annotation IS NOT NULL
  GROUP BY ALL
),
usual AS (
  SELECT DISTINCT ON (run_id) run_id, annotation
  FROM (SELECT run_id, annotation, COUNT(*) AS iterations FROM named GROUP BY ALL)
  ORDER BY run_id, iterations DESC, annotation
),
cut AS (
  SELECT DISTINCT run_id, iteration FROM align.step WHERE NOT is_marked OR NOT is_whole
),
setting AS (
  -- From the last instant at which a clock is known before it was set to the first one after.
  SELECT run_id, raw_anchor_ns - offset_ns AS from_ns,
    LEAD(raw_anchor_ns) OVER course - LEAD(offset_ns) OVER course AS until_ns
  FROM align.clock_piece
  WINDOW course AS (PARTITION BY run_id, rank ORDER BY raw_from_ns)
  QUALIFY ABS(drift_ppb) >= (SELECT value FROM meta.threshold WHERE name = 'align.STEEP_PPB')
),
set_in AS (
  SELECT DISTINCT w.run_id, w.iteration
  FROM whole AS w
  JOIN setting AS s
    ON s.run_id = w.run_id AND s.from_ns < w.start_ns + w.duration_ns AND s.until_ns > w.start_ns
),
partnerless AS (
  SELECT c.run_id, s.iteration, COUNT(*) AS calls
  FROM align.unmatched AS u
  JOIN align.call AS c USING (run_id, rank, call_id)
  ASOF JOIN align.step AS s ON s.run_id = c.run_id AND s.rank = c.rank AND c.raw_issue_ns >= s.raw_start_ns
  WHERE u.reason = 'no_partner' AND c.raw_issue_ns < s.raw_end_ns
  GROUP BY ALL
),
matched AS (
  SELECT run_id, iteration, COUNT(*) AS calls FROM timeline.arrival WHERE iteration IS NOT NULL GROUP BY ALL
),
calling AS (
  SELECT
    w.run_id, w.iteration, COALESCE(m.calls, 0) AS matched, COALESCE(p.calls, 0) AS lost,
    MEDIAN(COALESCE(p.calls, 0)) OVER (PARTITION BY w.run_id) AS usually_lost
  FROM whole AS w
  LEFT JOIN matched AS m USING (run_id, iteration)
  LEFT JOIN partnerless AS p USING (run_id, iteration)
  SEMI JOIN timeline.arrival AS a ON a.run_id = w.run_id
),
untied AS (
  -- A rank that lost its record of some iterations, or a part of it, leaves the others' calls without partners.
  SELECT run_id, iteration
  FROM calling
  WHERE lost > 0 AND matched = 0
    OR lost - usually_lost
      > (SELECT value FROM meta.threshold WHERE name = 'timeline.MOST_LOST_SHARE') * (matched + lost)
),
untimed AS (
  -- What ran without a time leaves gaps that nobody made.
  SELECT DISTINCT run_id, iteration
  FROM timeline.untimed_work
  WHERE untimed > (SELECT value FROM meta.threshold WHERE name = 'timeline.MOST_UNTIMED_SHARE') * events
),
meeting AS (
  SELECT run_id, iteration, iteration - LAG(iteration) OVER (PARTITION BY run_id ORDER BY iteration) AS steps
  FROM (SELECT DISTINCT run_id, iteration FROM timeline.arrival WHERE iteration IS NOT NULL)
),
unmet AS (
  -- Gradients are accumulated over steps without calls. After the last call no rank waits for another, and what hosts
  -- ahead of their devices launched is recorded of no step; of those ranks the work seems less.
  SELECT w.run_id, w.iteration
  FROM whole AS w
  JOIN (SELECT run_id, MAX(iteration) AS last, MAX(steps) AS steps FROM meeting GROUP BY run_id) AS m USING (run_id)
  WHERE w.iteration > m.last
  QUALIFY MAX(w.iteration) OVER (PARTITION BY w.run_id) - m.last < m.steps
),
slow AS (
  SELECT
    *,
    duration_ns > (SELECT value FROM meta.threshold WHERE name = 'timeline.WARMUP_RATIO') * MEDIAN(duration_ns) OVER run
      AND COUNT(*) OVER run >= (SELECT value FROM meta.threshold WHERE name = 'timeline.LEAST_ITERATIONS') AS is_slow,
    COUNT(*) OVER run AS iterations
  FROM whole
  WINDOW run AS (PARTITION BY run_id)
),
begun AS (
  SELECT *,
    BOOL_AND(is_slow) OVER so_far
      AND COUNT(*) OVER so_far < iterations * (SELECT value FROM meta.threshold WHERE name = 'timeline.MOST_WARMUP_SHARE')
      AS is_first
  FROM slow
  WINDOW so_far AS (PARTITION BY run_id ORDER BY iteration)
),
-- What returns is no warm-up: a checkpoint every so many iterations may fall on the first.
returning_iteration AS (
  SELECT b.run_id, b.iteration
  FROM begun AS b
  JOIN begun AS later
    ON later.run_id = b.run_id
    AND later.duration_ns
      >= b.duration_ns * (SELECT value FROM meta.threshold WHERE name = 'timeline.RETURNING_SHARE')
  WHERE b.is_first AND NOT later.is_first
  GROUP BY ALL
  HAVING COUNT(*) >= (SELECT value FROM meta.threshold WHERE name = 'timeline.RETURNING_ITERATIONS')
)
SELECT
  j.run_id, j.iteration, j.start_ns, j.duration_ns, j.ranks, j.is_first AND r.iteration IS NULL,
  j.ranks < p.ranks OR u.iteration IS NOT NULL OR t.iteration IS NOT NULL OR d.iteration IS NOT NULL
    OR e.iteration IS NOT NULL OR x.iteration IS NOT NULL
    OR COALESCE(n.annotation <> m.annotation, FALSE),
  n.annotation
FROM begun AS j
JOIN present AS p USING (run_id)
LEFT JOIN cut AS u USING (run_id, iteration)
LEFT JOIN set_in AS t USING (run_id, iteration)
LEFT JOIN untied AS d USING (run_id, iteration)
LEFT JOIN untimed AS e USING (run_id, iteration)
LEFT JOIN unmet AS x USING (run_id, iteration)
LEFT JOIN returning_iteration AS r USING (run_id, iteration)
LEFT JOIN named AS n USING (run_id, iteration)
LEFT JOIN usual AS m USING (run_id)
ORDER BY j.run_id, j.iteration
