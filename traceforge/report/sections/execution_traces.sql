-- What each execution trace is good for, and how it was tied to its rank's timeline.
SELECT
  q.rank,
  s.path,
  q.format,
  l.method,
  l.matched_share,
  l.name_agreement,
  q.label,
  q.node_count,
  q.device_node_count,
  q.device_successor_share,
  q.dangling_edge_count,
  q.reason
FROM graph.quality AS q
JOIN meta.source AS s USING (source_id)
LEFT JOIN graph.link AS l ON l.source_id = q.source_id AND l.part = q.part AND l.is_accepted
WHERE q.run_id = $run_id
ORDER BY q.rank NULLS LAST, s.path, q.part
