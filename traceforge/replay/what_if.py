"""What if something of the job were different. Reads graph.*, timeline.*, replay.calibration; fills replay.what_if.

Each edit is tried alone with settings that suit the run (`Edit.usual`); `traceforge replay --what-if` tries others, and
several together. Nobody is delayed. Couplings that were measured are in it: with a straggler goes the spread it made.
Where none was measured, transfers are taken not to change with the spread of arrivals.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import polars as pl

from traceforge.replay.edit import CannotTell, Edit, Job, edits
from traceforge.replay.engine import Arm, Replay, measured, replay_arms
from traceforge.replay.interval import Interval, ratio_interval
from traceforge.replay.places import Places, load_places
from traceforge.replay.replay_input import ReplayInput, load_replay_input
from traceforge.replay.settings import Settings, format_settings
from traceforge.store.database import Store

_SCHEMA = {
    "run_id": pl.Int32,
    "edit": pl.String,
    "parameters": pl.String,
    "throughput_ratio": pl.Float64,
    "throughput_ratio_low": pl.Float64,
    "throughput_ratio_high": pl.Float64,
    "iteration_ns": pl.Int64,
    "saved_ns_per_iteration": pl.Int64,
    "reason": pl.String,
}


@dataclass(frozen=True, slots=True)
class WhatIf:
    """One row of replay.what_if; see there for the fields."""

    run_id: int
    edit: str
    parameters: str
    throughput_ratio: float | None
    throughput_ratio_low: float | None
    throughput_ratio_high: float | None
    iteration_ns: int | None
    saved_ns_per_iteration: int | None
    reason: str


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, edit with settings that suit it)."""
    result: list[dict[str, object]] = []
    for run_id in store.query("SELECT run_id FROM meta.run ORDER BY run_id")["run_id"]:
        run = store.once(load_replay_input, run_id)
        if run is None:
            continue
        places = load_places(store, run_id, run.model)
        job = job_of(run, places)
        usual = [(edit, settings) for edit in edits().values() for settings in edit.usual(job)]
        result += [asdict(try_edits(run, job, [one])) for one in usual]
    return pl.DataFrame(result, schema=_SCHEMA)


def job_of(run: ReplayInput, places: Places) -> Job:
    """The run before any edit."""
    return Job(run.model, places, run.recorded)


def try_edits(run: ReplayInput, job: Job, chosen: Sequence[tuple[Edit, Settings]]) -> WhatIf:
    """The run with some edits made one after another.

    Raises:
        UsageError: settings name something that is not in the run.
    """
    name = "+".join(edit.name for edit, _ in chosen)
    parameters = ";".join(format_settings(settings) for _, settings in chosen)
    try:
        for edit, settings in chosen:
            job = edit.apply(job, settings)
    except CannotTell as told:
        return WhatIf(run.run_id, name, parameters, None, None, None, None, None, str(told))
    known = run.known
    ends = (known.low, known.point, known.high)
    distinct = list(dict.fromkeys(ends))
    arms = [Arm(couplings=couplings) for couplings in distinct]
    found = replay_arms(job.model, measured(job.model), arms, recorded=job.recorded)
    low, point, high = (found[distinct.index(end)] for end in ends)
    steps = _Steps(run, job.samples_share)
    interval = steps.interval(low, point, high)
    ratio = job.samples_share * run.elapsed_ns / max(run.elapsed_of(point), 1)
    was, is_now = steps.mean_ns(run.model.end_ns), steps.mean_ns(point.end_ns)
    low_end, high_end = min(interval.low, ratio), max(interval.high, ratio)
    return WhatIf(
        run.run_id,
        name,
        parameters,
        ratio,
        low_end,
        high_end,
        is_now,
        was - is_now,
        " ".join(edit.description for edit, _ in chosen),
    )


@dataclass(frozen=True, slots=True)
class _Steps:
    run: ReplayInput
    samples_share: float

    def mean_ns(self, end_ns: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]") -> int:
        return round(float(self.run.steps_ns(end_ns).mean()))

    def interval(self, low: Replay, point: Replay, high: Replay) -> Interval:
        recorded = self.run.steps_ns(self.run.model.end_ns).astype(np.float64)
        replayed = np.stack([self.run.steps_ns(arm.end_ns) for arm in (low, point, high)]).astype(np.float64)
        found = ratio_interval(recorded, replayed)
        return Interval(found.low * self.samples_share, found.high * self.samples_share)
