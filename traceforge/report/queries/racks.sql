-- Hosts whose rack is stated.
SELECT host, rack FROM align.rack WHERE run_id = $run_id ORDER BY host
