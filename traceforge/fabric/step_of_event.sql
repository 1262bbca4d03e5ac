-- What to do about an event of NCCL's log that several findings tell; NULL for others.
CREATE OR REPLACE MACRO fabric.step_of_event(
  -- As raw.nccl_event.kind.
  event_kind
) AS CASE event_kind
  WHEN 'shared_memory' THEN 'See whether the host, or the container, has enough shared memory (/dev/shm, --shm-size).'
END
