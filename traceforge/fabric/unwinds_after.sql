-- Whether a thread of NCCL gives up after a line of its log: what it says before is why.
CREATE OR REPLACE MACRO fabric.unwinds_after(
  -- As raw.nccl_record.source_id.
  of_source,
  -- As raw.nccl_record.process_id.
  of_process,
  -- As raw.nccl_record.tid.
  of_thread,
  -- As raw.nccl_record.record_id.
  after_record
) AS EXISTS (
  SELECT 1
  FROM raw.nccl_event AS u
  JOIN raw.nccl_record AS v USING (source_id, record_id)
  WHERE u.kind = 'unwinding' AND u.source_id = of_source AND v.process_id = of_process AND v.tid = of_thread
    AND u.record_id > after_record
)
