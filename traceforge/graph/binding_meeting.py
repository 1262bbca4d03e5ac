"""Which message a call of several ends with. In: timeline.*, graph.queued. Out: queries of arrivals that say so.

A kernel that sends and receives together ends when all of its messages have; the one it waited for is its binding
meeting. Not handled: messages of one kernel that are held up at the same time, of which one is named.
"""

# The binding meeting of a call ends with it: the last to begin, but for those whose other side is done long before, and
# for what a host has sent long before. The others have ended when the other side is done, and take no longer than
# binding ones of their size: what else a kernel waits for is not theirs.
USUAL = """
WITH several AS (
  SELECT DISTINCT run_id, rank
  FROM (SELECT run_id, rank FROM timeline.arrival GROUP BY run_id, rank, call_id HAVING COUNT(*) > 1)
),
met AS (
  SELECT a.run_id, a.end_ns, c.last_arrival_ns, c.communicator_id, c.size_bytes,
    ROW_NUMBER() OVER (
      PARTITION BY a.run_id, a.rank, a.call_id
      ORDER BY a.recorded_end_ns - a.end_ns <= $1 * (a.recorded_end_ns - a.arrival_ns) DESC,
        a.end_ns - f.first_end_ns <= $1 * (a.end_ns - c.last_arrival_ns) DESC,
        c.last_arrival_ns DESC, a.collective_id DESC
    ) = 1 AS is_binding
  FROM timeline.arrival AS a
  JOIN (SELECT run_id, collective_id, MIN(end_ns) AS first_end_ns FROM timeline.arrival GROUP BY ALL) AS f
    USING (run_id, collective_id)
  JOIN several USING (run_id, rank)
  JOIN timeline.collective AS c USING (run_id, collective_id)
)
SELECT run_id, communicator_id, size_bytes, QUANTILE_DISC(GREATEST(0, end_ns - last_arrival_ns), 0.5) AS usual_ns
FROM met
WHERE is_binding
GROUP BY ALL
"""

# Members of a collective may issue it in different iterations. A call of several meetings ends with one that, at
# its usual pace, ends about then, where another would have ended long before: both sides of a message may be held up by
# what they exchange with others.
ARRIVALS = """
WITH own AS (
  SELECT * FROM timeline.arrival WHERE run_id = $1 AND iteration BETWEEN $2 AND $3
),
of_collective AS (
  SELECT a.collective_id, MIN(a.end_ns) AS first_end_ns,
    COALESCE(
      MIN(a.iteration) FILTER (w.rank IS NOT NULL) < MAX(a.iteration) FILTER (w.rank IS NOT NULL), false
    ) AS is_split
  FROM timeline.arrival AS a
  LEFT JOIN timeline.window AS w USING (run_id, iteration, rank)
  WHERE a.run_id = $1 AND a.collective_id IN (SELECT collective_id FROM own)
  GROUP BY a.collective_id
),
usual AS (
  SELECT communicator_id, size_bytes, MEDIAN(transfer_ns) AS usual_ns
  FROM timeline.collective
  WHERE run_id = $1
  GROUP BY communicator_id, size_bytes
),
explained AS (
  SELECT a.*, o.first_end_ns, o.is_split, c.last_arrival_ns, c.communicator_id, c.size_bytes,
    COUNT(*) OVER own_call AS meetings,
    COALESCE(a.end_ns - LEAST(o.first_end_ns, c.last_arrival_ns + u.usual_ns) <= u.usual_ns, true) AS is_explained
  FROM own AS a
  JOIN of_collective AS o USING (collective_id)
  JOIN timeline.collective AS c USING (run_id, collective_id)
  LEFT JOIN usual AS u ON u.communicator_id = c.communicator_id AND u.size_bytes IS NOT DISTINCT FROM c.size_bytes
  WINDOW own_call AS (PARTITION BY a.rank, a.call_id)
),
receiver AS (
  SELECT DISTINCT collective_id, destination_rank AS rank
  FROM timeline.message
  WHERE run_id = $1 AND collective_id IN (SELECT collective_id FROM own)
),
met AS (
  SELECT * EXCLUDE (is_explained),
    ROW_NUMBER() OVER (
      PARTITION BY rank, call_id
      ORDER BY recorded_end_ns - end_ns <= $4 * (recorded_end_ns - arrival_ns) DESC,
        is_explained DESC,
        end_ns - first_end_ns <= $4 * (end_ns - last_arrival_ns) DESC,
        last_arrival_ns DESC, collective_id DESC
    ) = 1 AS is_binding
  FROM explained
)
SELECT a.run_id, a.iteration, a.rank, o.role, a.collective_id, a.call_id, a.arrival_ns, a.end_ns, a.meetings,
  a.is_binding, a.first_end_ns, a.last_arrival_ns, a.is_split, a.communicator_id, a.size_bytes,
  w.end_ns AS window_end_ns, w.start_ns, r.rank IS NOT NULL AS is_receiver,
  b.collective_id AS behind, CASE WHEN q.is_held THEN b.collective_id END AS queued,
  CASE WHEN b.call_id IS NULL THEN 0 ELSE q.ahead_ns END AS ahead_ns
FROM met AS a
JOIN timeline.window AS w USING (run_id, iteration, rank)
JOIN timeline.role AS o USING (run_id, rank)
LEFT JOIN receiver AS r USING (collective_id, rank)
LEFT JOIN graph.queued AS q USING (run_id, rank, call_id)
LEFT JOIN met AS b
  ON b.rank = q.rank AND b.call_id = q.behind_call_id AND b.iteration = a.iteration AND b.is_binding
ORDER BY a.rank, a.iteration, a.call_id, a.is_binding, a.collective_id
"""
