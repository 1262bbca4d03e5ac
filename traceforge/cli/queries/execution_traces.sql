-- How each execution trace was tied to its timeline, and what its graph is good for.
SELECT q.run_id, q.rank, s.path, q.format, l.method, l.matched_share, l.name_agreement, q.label, q.node_count,
  q.device_successor_share, q.dangling_edge_count, q.reason
FROM graph.quality AS q
JOIN meta.source AS s USING (source_id)
LEFT JOIN graph.link AS l ON l.source_id = q.source_id AND l.part = q.part AND l.is_accepted
ORDER BY q.run_id, q.rank, s.path
