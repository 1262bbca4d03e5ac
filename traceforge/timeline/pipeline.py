"""A pipeline's mean iteration, and what it would be otherwise. Reads timeline.bubble; fills timeline.pipeline.

Idea: with more micro-batches of the same size the schedule fills and drains as before, and everything else of a
micro-batch is repeated; with equal stages the pipeline is played at the mean duration of each pass.
Not handled: memory, which may forbid either.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from traceforge.store.database import Store
from traceforge.thresholds import timeline as thresholds
from traceforge.timeline.bubble import UsualCourse
from traceforge.timeline.pipeline_run import PipelineRun, read_pipeline_run

_MEANS = """
WITH judged AS (
  -- Before the first recorded iteration nothing drains that the windows would hold; it counts only if it is alone.
  SELECT iteration
  FROM timeline.iteration
  WHERE run_id = $1 AND NOT is_warmup AND NOT is_partial
  QUALIFY ROW_NUMBER() OVER (ORDER BY iteration) > 1 OR COUNT(*) OVER () = 1
),
kind AS (
  SELECT kind, SUM(duration_ns) / COUNT(*) AS mean_ns
  FROM timeline.bubble
  SEMI JOIN judged USING (iteration)
  WHERE run_id = $1
  GROUP BY kind
)
SELECT kind, CAST(ROUND(mean_ns) AS BIGINT) AS mean_ns FROM kind
UNION ALL
SELECT 'iteration', CAST(ROUND(AVG(w.duration_ns)) AS BIGINT)
FROM timeline.rank_iteration AS w
SEMI JOIN timeline.bubble AS b ON b.run_id = w.run_id AND b.iteration = w.iteration AND b.rank = w.rank
SEMI JOIN judged USING (iteration)
WHERE w.run_id = $1
UNION ALL
SELECT 'microbatches', MODE(microbatches) FROM timeline.schedule WHERE run_id = $1
UNION ALL
SELECT 'left_out', CAST(COUNT(*) > 1 AS BIGINT)
FROM timeline.iteration
WHERE run_id = $1 AND NOT is_warmup AND NOT is_partial
"""

_SCHEMA = {
    "run_id": pl.Int32, "microbatches": pl.Int32, "is_first_left_out": pl.Boolean, "iteration_ns": pl.Int64,
    "bubble_ns": pl.Int64, "fill_drain_ns": pl.Int64, "imbalance_ns": pl.Int64, "transfer_ns": pl.Int64,
    "late_peer_ns": pl.Int64, "beside_ns": pl.Int64, "even_saved_ns": pl.Int64, "more_microbatches": pl.Int32,
    "more_iteration_ns": pl.Int64, "more_fill_drain_share": pl.Float64,
}  # fmt: skip


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """One row a run with bubbles."""
    for (run_id,) in store.query("SELECT DISTINCT run_id FROM timeline.bubble ORDER BY run_id").iter_rows():
        run = store.once(read_pipeline_run, int(run_id))
        means = dict(store.query(_MEANS, [run_id]).iter_rows())
        if run is not None and means.get("iteration") and "fill" in means:
            yield pl.DataFrame([_row(int(run_id), run, means)], schema=_SCHEMA, orient="row")


def _row(run_id: int, run: PipelineRun, means: dict[str, int]) -> tuple[object, ...]:
    iteration, microbatches = means["iteration"], means["microbatches"]
    fill_drain = means["fill"] + means["drain"]
    waited = fill_drain + means["imbalance"] + means["transfer"] + means["late_peer"]
    beside = round(float(np.mean([run.usual.before, run.usual.behind, run.usual.after]) * 3))
    many = thresholds.MORE_MICROBATCHES_RATIO * microbatches
    more = more_iteration_ns(iteration, fill_drain, beside, thresholds.MORE_MICROBATCHES_RATIO)
    parts = (means["imbalance"], means["transfer"], means["late_peer"], beside, _even_saved_ns(run))
    return (
        run_id, microbatches, bool(means["left_out"]), iteration, waited, fill_drain,
        *parts, many, more, fill_drain / more,
    )  # fmt: skip


def more_iteration_ns(iteration_ns: int, fill_drain_ns: int, beside_ns: int, times: int) -> int:
    """An iteration of so many times as many micro-batches of the same size."""
    return iteration_ns + (times - 1) * max(0, iteration_ns - fill_drain_ns - beside_ns)


def _even_saved_ns(run: PipelineRun) -> int:
    """How much shorter an iteration is if each pass takes as long on all stages, messages as usual."""
    courses = UsualCourse.of(run).courses
    apart = courses["moved"].duration[-1] - courses["even"].duration[-1]
    return round(float(apart.max()))
