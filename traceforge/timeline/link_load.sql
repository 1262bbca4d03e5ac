-- How long messages between two hosts take, against those of as many bytes between other hosts; or between two devices of
-- one host, or of hosts that are not known, against those between other such devices.
--
-- One row a pair, of the size that takes it longest; one that other pairs of its kind exchange, too, where there is any.
-- A pair that is slower than the others in all iterations may be farther away, or have a slow NIC, cable or switch: one
-- run cannot tell. Of a message that is sent before its receiver asks for it, part of the way may not show: where receivers
-- came first for some, only these tell how long messages take.
-- Scope: run
-- Reads: timeline.message, timeline.iteration, align.rank
CREATE OR REPLACE TABLE timeline.link_load (
  -- Joins meta.run.run_id.
  run_id,
  -- Host at one end, the first of both by name; NULL where that of an end is not known.
  low_host,
  -- Host at the other end; NULL likewise.
  high_host,
  -- Rank at one end, the lower; NULL between two hosts, where those of any of their ranks count.
  low_rank,
  -- Rank at the other end; NULL likewise.
  high_rank,
  -- Bytes of a message.
  size_bytes,
  -- How many there are in iterations that count.
  messages,
  -- How often an iteration two ranks exchange any, those that share a kernel being one exchange.
  exchanges_per_iteration,
  -- What one takes once both ends are ready: median, ns.
  transfer_ns,
  -- What three of four take at least, ns.
  quick_transfer_ns,
  -- Median of the other pairs' medians (the lower of two in the middle), ns; NULL where no other pair of its kind
  -- exchanges messages of this size.
  usual_transfer_ns
) AS
WITH sent AS (
  SELECT
    m.run_id, m.iteration, m.collective_id, m.size_bytes, m.transfer_ns, m.posted_ns <= m.ready_ns AS is_whole,
    IF(s.host <= d.host, s.host, IF(s.host > d.host, d.host, NULL)) AS low_host,
    IF(s.host <= d.host, d.host, IF(s.host > d.host, s.host, NULL)) AS high_host,
    LEAST(m.source_rank, m.destination_rank) AS first_rank, GREATEST(m.source_rank, m.destination_rank) AS last_rank,
    IF(s.host <> d.host, NULL, first_rank) AS low_rank, IF(s.host <> d.host, NULL, last_rank) AS high_rank
  FROM timeline.message AS m
  JOIN timeline.iteration AS i ON i.run_id = m.run_id AND i.iteration = m.iteration
  JOIN align.rank AS s ON s.run_id = m.run_id AND s.rank = m.source_rank
  JOIN align.rank AS d ON d.run_id = m.run_id AND d.rank = m.destination_rank
  WHERE NOT i.is_warmup AND NOT i.is_partial AND m.size_bytes > 0
    -- Between processes of one host without devices the cores that they have decide.
    AND (s.host <> d.host OR s.has_device AND d.has_device)
),
told AS (
  -- Those that tell how long messages take.
  SELECT *, IF(is_whole OR NOT BOOL_OR(is_whole) OVER alike, transfer_ns, NULL) AS told_ns
  FROM sent
  WINDOW alike AS (PARTITION BY run_id, low_host, high_host, low_rank, high_rank, size_bytes)
),
pair AS (
  SELECT
    run_id, low_host, high_host, low_rank, high_rank, size_bytes, COUNT(*) AS messages,
    COUNT(DISTINCT collective_id) / COUNT(DISTINCT iteration) / COUNT(DISTINCT (first_rank, last_rank))
      AS exchanges_per_iteration,
    QUANTILE_DISC(told_ns, 0.5) AS transfer_ns, QUANTILE_DISC(told_ns, 0.25) AS quick_transfer_ns
  FROM told
  GROUP BY run_id, low_host, high_host, low_rank, high_rank, size_bytes
),
compared AS (
  SELECT
    p.run_id, p.low_host, p.high_host, p.low_rank, p.high_rank, p.size_bytes, p.messages, p.exchanges_per_iteration,
    p.transfer_ns, p.quick_transfer_ns, QUANTILE_DISC(o.transfer_ns, 0.5) AS usual_transfer_ns
  FROM pair AS p
  LEFT JOIN pair AS o
    ON o.run_id = p.run_id AND o.size_bytes = p.size_bytes
    AND (o.low_host IS NULL) = (p.low_host IS NULL) AND (o.low_rank IS NULL) = (p.low_rank IS NULL)
    AND (o.low_host, o.high_host, o.low_rank, o.high_rank)
      IS DISTINCT FROM (p.low_host, p.high_host, p.low_rank, p.high_rank)
  GROUP BY ALL
)
SELECT
  run_id, low_host, high_host, low_rank, high_rank, size_bytes, messages, exchanges_per_iteration, transfer_ns,
  quick_transfer_ns, usual_transfer_ns
FROM compared
QUALIFY ROW_NUMBER() OVER (
  PARTITION BY run_id, low_host, high_host, low_rank, high_rank
  ORDER BY usual_transfer_ns IS NULL, exchanges_per_iteration * transfer_ns DESC, size_bytes
) = 1
ORDER BY run_id, low_host, high_host, low_rank, high_rank
