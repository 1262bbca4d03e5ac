-- Whether an annotation is one of those that were taken for steps.
--
-- Their numbers differ; in the name of an inference engine's batch only whether a size is zero matters.
CREATE OR REPLACE MACRO align.is_step_name(
  -- Name of an annotation.
  name,
  -- align.step.annotation of its rank.
  step
) AS step IN (
  name,
  REGEXP_REPLACE(name, '[0-9]+', '#'),
  REGEXP_REPLACE(REGEXP_REPLACE(name, '[0-9]*[1-9][0-9]*', '#', 'g'), '0+', '0', 'g')
)
