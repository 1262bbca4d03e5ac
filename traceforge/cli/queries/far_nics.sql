-- Ranks whose path to their NIC crosses a host bridge or a socket although another NIC is nearer, with the log's line.
SELECT f.run_id, f.subject AS rank, f.summary, f.next_step, s.path, f.line
FROM fabric.finding AS f
JOIN meta.source AS s USING (source_id)
WHERE f.code = 'far_nic'
ORDER BY f.run_id, f.finding_id
