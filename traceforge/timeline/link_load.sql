-- How long messages between two hosts take, against those of as many bytes between other hosts.
--
-- One row a pair of hosts, of the size that takes it longest; none where no other pair exchanges messages of that size.
-- A pair that is slower than the others in all iterations may be farther away, or have a slow NIC, cable or switch: one
-- run cannot tell. Of a message that is sent before its receiver asks for it, part of the way may not show: where receivers
-- came first for some, only these tell how long messages take.
-- Scope: run
-- Reads: timeline.message, timeline.iteration, align.rank
CREATE OR REPLACE TABLE timeline.link_load (
  -- Joins meta.run.run_id.
  run_id,
  -- Host at one end, the first of both by name.
  low_host,
  -- Host at the other end.
  high_host,
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
  -- Median of the other pairs' medians (the lower of two in the middle), ns.
  usual_transfer_ns
) AS
WITH sent AS (
  SELECT
    m.run_id, m.iteration, m.collective_id, m.size_bytes, m.transfer_ns, m.posted_ns <= m.ready_ns AS is_whole,
    LEAST(s.host, d.host) AS low_host, GREATEST(s.host, d.host) AS high_host,
    LEAST(m.source_rank, m.destination_rank) AS low_rank, GREATEST(m.source_rank, m.destination_rank) AS high_rank
  FROM timeline.message AS m
  JOIN timeline.iteration AS i ON i.run_id = m.run_id AND i.iteration = m.iteration
  JOIN align.rank AS s ON s.run_id = m.run_id AND s.rank = m.source_rank
  JOIN align.rank AS d ON d.run_id = m.run_id AND d.rank = m.destination_rank
  WHERE NOT i.is_warmup AND NOT i.is_partial AND s.host <> d.host AND m.size_bytes > 0
),
told AS (
  -- Those that tell how long messages take.
  SELECT *, IF(is_whole OR NOT BOOL_OR(is_whole) OVER alike, transfer_ns, NULL) AS told_ns
  FROM sent
  WINDOW alike AS (PARTITION BY run_id, low_host, high_host, size_bytes)
),
pair AS (
  SELECT
    run_id, low_host, high_host, size_bytes, COUNT(*) AS messages,
    COUNT(DISTINCT collective_id) / COUNT(DISTINCT iteration) / COUNT(DISTINCT (low_rank, high_rank))
      AS exchanges_per_iteration,
    QUANTILE_DISC(told_ns, 0.5) AS transfer_ns, QUANTILE_DISC(told_ns, 0.25) AS quick_transfer_ns
  FROM told
  GROUP BY run_id, low_host, high_host, size_bytes
),
compared AS (
  SELECT
    p.run_id, p.low_host, p.high_host, p.size_bytes, p.messages, p.exchanges_per_iteration, p.transfer_ns,
    p.quick_transfer_ns, QUANTILE_DISC(o.transfer_ns, 0.5) AS usual_transfer_ns
  FROM pair AS p
  JOIN pair AS o
    ON o.run_id = p.run_id AND o.size_bytes = p.size_bytes
    AND (o.low_host <> p.low_host OR o.high_host <> p.high_host)
  GROUP BY ALL
)
SELECT
  run_id, low_host, high_host, size_bytes, messages, exchanges_per_iteration, transfer_ns, quick_transfer_ns,
  usual_transfer_ns
FROM compared
QUALIFY ROW_NUMBER() OVER (
  PARTITION BY run_id, low_host, high_host ORDER BY exchanges_per_iteration * transfer_ns DESC, size_bytes
) = 1
ORDER BY run_id, low_host, high_host
