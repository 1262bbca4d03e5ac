-- What NCCL's logs show of the run in numbers: processes, communicators, nodes, versions, records understood.
SELECT
  -- The job communicates on its hosts (gloo): there is no log of NCCL to have.
  (SELECT COUNT(*) > 0 AND NOT BOOL_OR(r.has_device) FROM align.rank AS r JOIN raw.profile AS p USING (source_id)
   WHERE r.run_id = $run_id AND p.backend ILIKE '%gloo%' AND p.backend NOT ILIKE '%nccl%') AS is_on_host,
  (SELECT COUNT(DISTINCT process) FROM fabric.process WHERE run_id = $run_id) AS processes,
  (SELECT COUNT(DISTINCT host) FROM fabric.process WHERE run_id = $run_id) AS hosts,
  (SELECT STRING_AGG(DISTINCT nccl_version, ', ' ORDER BY nccl_version)
   FROM fabric.process WHERE run_id = $run_id) AS versions,
  (SELECT COUNT(*) FROM fabric.communicator WHERE run_id = $run_id) AS communicators,
  (SELECT COUNT(*) FROM fabric.communicator WHERE run_id = $run_id AND is_complete) AS complete,
  -- Those that no line names are at least as many as one process takes part in: those of several may be the same.
  (SELECT COUNT(DISTINCT communicator_id) FILTER (WHERE identity NOT IN ('alone', 'implied'))
   FROM fabric.member WHERE run_id = $run_id)
  + COALESCE((SELECT MAX(own) FROM (
      SELECT COUNT(DISTINCT communicator_id) AS own FROM fabric.member
      WHERE run_id = $run_id AND identity IN ('alone', 'implied') GROUP BY process)), 0) AS least,
  (SELECT MAX(rank_count) FROM fabric.communicator WHERE run_id = $run_id) AS largest,
  (SELECT STRING_AGG(DISTINCT global_rank_origin, ', ' ORDER BY global_rank_origin)
   FROM fabric.member WHERE run_id = $run_id) AS rank_origins,
  (SELECT CAST(SUM(f.record_count) AS BIGINT) FROM raw.nccl_file AS f
   JOIN meta.source AS s USING (source_id) WHERE s.run_id = $run_id) AS records,
  (SELECT CAST(SUM(f.understood_count) AS BIGINT) FROM raw.nccl_file AS f
   JOIN meta.source AS s USING (source_id) WHERE s.run_id = $run_id) AS understood,
  (SELECT SUM(f.understood_count) / NULLIF(SUM(f.record_count), 0) FROM raw.nccl_file AS f
   JOIN meta.source AS s USING (source_id) WHERE s.run_id = $run_id) AS understood_share,
  -- Of the connections over a network, those by GPU Direct RDMA.
  (SELECT COUNT(*) FILTER (WHERE path_class = 'network_gdr') / NULLIF(COUNT(*) FILTER (WHERE network <> ''), 0)
   FROM fabric.edge WHERE run_id = $run_id AND connection_index = 0) AS direct_share
