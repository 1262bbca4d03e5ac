-- A mean iteration of the pipeline, its schedule, and what more micro-batches or equal stages would make of it.
WITH schedule AS (
  SELECT MODE(schedule) AS schedule, MODE(stages) AS stages, MODE(chunks) AS chunks
  FROM timeline.schedule
  WHERE run_id = $run_id
)
SELECT
  s.schedule, s.stages, s.chunks, l.layout,
  p.microbatches AS all_microbatches, p.iteration_ns AS pipeline_iteration_ns, p.is_first_left_out, p.bubble_ns, p.fill_drain_ns,
  p.imbalance_ns, p.transfer_ns AS message_ns, p.late_peer_ns, p.even_saved_ns, p.more_microbatches,
  p.more_fill_drain_share
FROM timeline.pipeline AS p
CROSS JOIN schedule AS s
LEFT JOIN timeline.layout AS l USING (run_id)
WHERE p.run_id = $run_id
