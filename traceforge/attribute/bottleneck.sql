-- Where a mean iteration goes, from what the hardware could do to what was measured: one row a rank and part.
--
-- Parts do not overlap: those of a rank sum to its mean used iteration (operation.judged_iteration) to the ns. Rank NULL
-- is the job: the mean over ranks, which sums to the mean iteration of the job where clocks are aligned. It needs no other
-- ranks, and sees what is always slow for everyone, to which delays above the usual are blind.
-- Scope: run
-- Reads: operation.judged_iteration, operation.kernel, operation.device, timeline.rank_iteration, timeline.iteration, timeline.segment, timeline.gap, timeline.bubble_phase, align.rank, align.clock, attribute.exposed_transfer
CREATE OR REPLACE TABLE attribute.bottleneck (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Global rank; NULL for the job.
  rank INTEGER,
  -- 1 for the largest avoidable part, then the others of these, then those that are not avoidable or not known to be.
  place INTEGER NOT NULL,
  -- Part: ideal (arithmetic at the device's peak), compute_bound, memory_bound (kernels above it, by their roofline),
  -- small_kernels (too short to fill a device), unmodelled_kernels (their work or the device's peak is not known),
  -- host_compute (no device), communication_at_line_rate (exposed transfer as long as its links need, where their rate is
  -- known), communication_bound (the rest of it), imbalance_bound (waiting for later ranks),
  -- pipeline_bubble (waiting for other stages of a pipeline, and messages between them; timeline.bubble says why),
  -- copy_bound, input_bound, launch_bound (the host is late with launching), synchronisation_bound, device_queue (held up
  -- on the device), allocator, garbage_collection, checkpoint, system_call, mpi_call, idle, stagger (the rank's own step is
  -- shorter than the job's), unexplained, or another cause of timeline.gap.
  bound VARCHAR NOT NULL,
  -- Whether it can be avoided: not the ideal, and not what is not known to exceed it.
  is_avoidable BOOLEAN NOT NULL,
  -- Mean time of an iteration, ns; NULL where it cannot be told from the other parts (its time is in these).
  duration_ns_per_iteration BIGINT,
  -- Share of the mean iteration, 0..1; NULL as above.
  share DOUBLE,
  -- What the number rests on, or why it is not measured.
  basis VARCHAR NOT NULL
)
