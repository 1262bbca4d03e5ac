-- The verdict in words: one row a run.
-- Scope: run
-- Reads: fabric.measured, timeline.schedule, timeline.pipeline, timeline.stage_load, timeline.link_load, operation.stage_work, operation.stage_saving, attribute.verdict_state, attribute.finding, attribute.bound, attribute.bottleneck, timeline.gap, raw.event, align.name_class, align.clock_piece, graph.volume, graph.absent_rank, graph.divergence, graph.message_pair, meta.analysis, meta.issue, meta.source, timeline.phase, timeline.iteration, timeline.segment, timeline.mesh, align.rank, align.call, attribute.delay, attribute.excess, attribute.configuration, fabric.finding, fabric.hang, attribute.host_need, attribute.host_time, attribute.starvation, attribute.pace
CREATE OR REPLACE TABLE attribute.verdict (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- finding, nothing_significant or cannot_be_known; nothing_significant as well, with low confidence, where what was found
  -- may be chance, files are cut short, or ranks were not recorded.
  kind VARCHAR NOT NULL,
  -- The answer in one sentence.
  headline VARCHAR NOT NULL,
  -- What it rests on: how much was judged, and how much time lies above the reference.
  explanation VARCHAR NOT NULL,
  -- high, medium or low: of the finding, or that there is none; high where it is certain that it cannot be known.
  confidence VARCHAR NOT NULL,
  -- What to do next.
  next_step VARCHAR NOT NULL,
  -- Time above the reference as a share of the mean judged iteration; NULL where none was judged.
  delay_share DOUBLE,
  -- Whether a stage computes so much more than the others, or messages between two hosts always take so much longer, that
  -- evening out would save time. It may be by design or by a fault.
  is_unbalanced BOOLEAN NOT NULL,
  -- Whether the headline names what all ranks lose alike: nobody is to blame for it.
  is_common BOOLEAN NOT NULL
)
