-- What each NIC carries by NCCL's plan; a static model of the logged connections and calls, no measurement.
SELECT
  nic_load.host,
  nic_load.network,
  nic_load.nic,
  nic_load.name,
  nic_load.ranks,
  nic_load.edge_count,
  nic_load.gdr_edge_count,
  nic_load.edge_share,
  nic_load.send_bytes
FROM fabric.nic_load
WHERE nic_load.run_id = $run_id
ORDER BY nic_load.host, nic_load.network, nic_load.nic
