-- Whether an annotation is one of those that were taken for steps.
--
-- Its number may differ; of an inference engine's batch any size, but not whether it is zero (see align.step.annotation).
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
