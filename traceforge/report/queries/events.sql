-- Events in the ingested files, and those that are not stored because of an issue.
SELECT
  (
    SELECT CAST(COALESCE(SUM(event_count), 0) AS BIGINT) FROM meta.source WHERE run_id = $run_id
  ) AS events,
  (
    SELECT CAST(COALESCE(SUM(lost_events), 0) AS BIGINT) FROM meta.issue WHERE run_id = $run_id
  ) AS lost_events
