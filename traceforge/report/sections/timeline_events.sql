-- Work of devices, launches and host operations of some ranks around the iterations shown in detail.
SELECT
  own.rank,
  own.iteration,
  recorded.source_id,
  event.kind_id,
  event.raw_start_ns,
  event.duration_ns,
  COALESCE(event.correlation, -1) AS correlation,
  COALESCE(event.stream, -1) AS stream
FROM timeline.rank_iteration AS own
JOIN align.step AS step
  ON step.run_id = own.run_id
  AND step.rank = own.rank
  AND step.iteration = own.iteration
JOIN align.rank AS recorded
  ON recorded.run_id = own.run_id
  AND recorded.rank = own.rank
JOIN raw.occurrence AS event
  ON event.source_id = recorded.source_id
  AND event.raw_start_ns >= step.raw_start_ns - own.duration_ns
  AND event.raw_start_ns - own.duration_ns < step.raw_start_ns + own.duration_ns
JOIN raw.event_kind AS kind
  ON kind.source_id = event.source_id
  AND kind.kind_id = event.kind_id
  AND kind.phase = 'X'
WHERE own.run_id = $run_id
  AND own.iteration IN ($iterations)
  AND own.rank IN ($ranks)
  AND event.duration_ns > 0
ORDER BY own.rank, own.iteration, event.raw_start_ns, event.event_id
