-- One row a message that was matched: who was ready when, and what moving it took.
--
-- Both ranks wait for each other. Where several messages share a kernel, its start and end are those of all of them.
-- Scope: iteration
CREATE OR REPLACE TABLE timeline.message (
  -- Joins meta.run.run_id.
  run_id,
  -- Number of the message within the run.
  message_id,
  -- Joins timeline.collective.collective_id: the calls that meet.
  collective_id,
  -- Iteration in which the sender issued it; NULL outside of all iterations.
  iteration,
  -- Global rank that sends.
  source_rank,
  -- Global rank that receives.
  destination_rank,
  -- Joins timeline.communicator.communicator_id.
  communicator_id,
  -- Bytes; NULL when unknown.
  size_bytes,
  -- Tag; NULL when not recorded.
  tag,
  -- When the sender was ready (its kernel started), aligned clock, ns.
  ready_ns,
  -- When the receiver was ready, aligned clock, ns.
  posted_ns,
  -- When the receiver had it, aligned clock, ns.
  received_ns,
  -- When both were done, aligned clock, ns.
  end_ns,
  -- The rank that the other one waited for: the later of the two; the sender of two that came at once.
  late_rank,
  -- From the first to be ready to the second, or to the first one's end if that is earlier, ns, >= 0.
  wait_ns,
  -- From the second to be ready until the receiver had it, ns, >= 0.
  transfer_ns,
  -- True where the wait is below three clock residuals of the two ranks: it supports no finding.
  below_resolution
) AS
SELECT
  m.run_id, m.message_id, m.meeting_id, s.iteration, m.source_rank, m.destination_rank, m.communicator_id,
  m.size_bytes, m.tag, s.arrival_ns, d.arrival_ns, d.end_ns, GREATEST(s.end_ns, d.end_ns),
  CASE WHEN d.arrival_ns > s.arrival_ns THEN m.destination_rank ELSE m.source_rank END,
  s.wait_ns + d.wait_ns,
  GREATEST(0, d.end_ns - GREATEST(s.arrival_ns, d.arrival_ns)),
  s.wait_below_resolution AND d.wait_below_resolution
FROM align.message AS m
JOIN timeline.arrival AS s
  ON s.run_id = m.run_id AND s.collective_id = m.meeting_id AND s.rank = m.source_rank
JOIN timeline.arrival AS d
  ON d.run_id = m.run_id AND d.collective_id = m.meeting_id AND d.rank = m.destination_rank
ORDER BY m.run_id, m.message_id
