-- Whether a log holds nothing but warnings of a process (NCCL_DEBUG=WARN): it cannot show whether NCCL gave up.
CREATE OR REPLACE MACRO fabric.warns_alone(
  -- As raw.nccl_record.source_id.
  of_source,
  -- As raw.nccl_record.process_id.
  of_process
) AS NOT EXISTS (
  SELECT 1
  FROM raw.nccl_record AS o
  WHERE o.source_id = of_source AND o.process_id = of_process AND o.level IS DISTINCT FROM 'WARN'
)
