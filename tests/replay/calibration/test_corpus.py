"""The couplings of a real job: transfers that do not grow with the spread of arrivals, and lateness that lasts.

The job's operations were published with the study of stragglers that ByteDance made of its clusters (OSDI '25): 16
ranks, four stages of a pipeline with four data-parallel ranks each, 44 steps.
"""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from traceforge.replay.calibration.arrival_spread import Collectives, spread_coupling
from traceforge.replay.calibration.measurement import Measurement
from traceforge.replay.calibration.predictability import predictability


@pytest.fixture
def operations(corpus: Path) -> pl.DataFrame:
    """Operations with times in seconds, start_ts and end_ts."""
    path = corpus / "traces" / "ops_timeline" / "straggler_AR" / "trace-AR.parquet"
    frame = pl.read_parquet(path).with_columns(pl.col("start_ts", "duration").cast(pl.Float64))
    return frame.with_columns(end_ts=pl.col("start_ts") + pl.col("duration"))


def measured(operations: pl.DataFrame, op: str, stage: int) -> Measurement:
    """Kappa of one operation of one stage; the instrument is the longest compute of each data-parallel pipeline."""
    is_compute = pl.col("optype").is_in(["forward-compute", "backward-compute"])
    by_stage = operations.filter(is_compute).group_by("stage", "dp_rank", "step").agg(own=pl.col("duration").sum())
    own = by_stage.group_by("dp_rank", "step").agg(pl.col("own").max())
    chosen = operations.filter((pl.col("optype") == op) & (pl.col("stage") == stage) & (pl.col("seq_id") == 0))
    start, end = pl.col("start_ts"), pl.col("end_ts")
    rows = (
        chosen.join(own, on=["dp_rank", "step"])
        .group_by("step")
        .agg(
            transfer=end.max() - start.max(),
            wait=start.max() - start.mean(),
            local=pl.col("own").max() - pl.col("own").mean(),
            skew=end.max() - end.min(),
        )
        .sort("step")
    )
    columns = (1e9 * rows[name].to_numpy() for name in ("transfer", "wait", "local"))
    error = np.full(rows.height, 1e9 * float(np.median(rows["skew"].to_numpy())))
    return spread_coupling(Collectives(rows["step"].to_numpy(), np.zeros(rows.height, dtype=np.int64), *columns, error))


@pytest.mark.parametrize("stage", [1, 2])
def test_reduce_scatters_do_not_grow_with_the_spread(operations: pl.DataFrame, stage: int) -> None:
    found = measured(operations, "grads-reduce-scatter", stage)

    assert found.low is not None
    assert found.high is not None
    assert found.low < 0 < found.high < 0.01


@pytest.mark.parametrize("op", ["params-all-gather", "optimizer-clip-main-grad"])
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_waits_that_the_clocks_do_not_resolve_are_refused(operations: pl.DataFrame, op: str, stage: int) -> None:
    # A plain regression gives slopes between -57 and +41 here.
    found = measured(operations, op, stage)

    assert found.coefficient is None
    assert "three times the uncertainty" in found.refusal


def test_who_waits_in_one_step_waits_in_the_next(operations: pl.DataFrame) -> None:
    is_first = (pl.col("optype") == "grads-reduce-scatter") & (pl.col("stage") == 0) & (pl.col("seq_id") == 0)
    table = operations.filter(is_first).pivot(on="dp_rank", index="step", values="start_ts").sort("step")
    arrival = table.drop("step").to_numpy()

    found = predictability(1e9 * (arrival.max(axis=1, keepdims=True) - arrival), 0.0)

    assert found.low is not None
    assert found.low > 0.9
