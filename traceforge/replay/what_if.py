"""What if something of the job were different. Reads graph.*, timeline.*, replay.calibration; fills replay.what_if.

Each edit is tried alone with settings that suit the run (`Edit.usual`); `traceforge replay --what-if` tries others, and
several together. Nobody is delayed. Couplings that were measured are in it: with a straggler goes the spread it made.
Where none was measured, transfers are assumed not to change with the spread of arrivals.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import exp, log

import polars as pl

from traceforge.replay.edit import Edit, EditedJob, InsufficientData, edits
from traceforge.replay.engine import Arm, Replay, measured, replay_arms
from traceforge.replay.places import Places, load_places
from traceforge.replay.replay_input import ReplayInput, load_replay_input
from traceforge.replay.settings import Settings, format_settings
from traceforge.stats import Interval
from traceforge.store.database import Store
from traceforge.thresholds import replay as thresholds

_PIPELINES = """
SELECT run_id, microbatches, iteration_ns, even_saved_ns, more_microbatches, more_iteration_ns
FROM timeline.pipeline
ORDER BY run_id
"""
_MORE_MICROBATCHES = (
    "More micro-batches of the same size, so that the batch grows: fill and drain stay as long, all else of a "
    "micro-batch comes once more. Memory may forbid it; smaller micro-batches of the same batch would compute less "
    "densely."
)
_EVEN_STAGES = (
    "Every pass takes as long on each stage as on the mean one, messages as usual: layers moved in parts of any size, "
    "played without noise. Memory may forbid it."
)
_OTHER_SCHEDULES = """
SELECT o.run_id, o.schedule, o.chunks, p.iteration_ns, o.saved_ns
FROM timeline.other_schedule AS o
JOIN timeline.pipeline AS p USING (run_id)
ORDER BY o.run_id, o.schedule, o.chunks
"""
_SCHEDULES = {
    "interleaved": "The layers of each stage in chunks of equal length that micro-batches go through in turn, messages"
    " as long as usual but more of them, played without noise. Memory may forbid it.",
    "zb_h1": "Half of each backward pass, the weights' part, comes later and fills gaps (Zero Bubble), played without"
    " noise. That it is half is assumed.",
}
_NOT_SPLIT = "Members of collectives have no trace, so that transfers cannot be separated from waiting for these."


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
    for run_id in store.run_ids():
        run = store.once(load_replay_input, run_id)
        if run is None:
            continue
        job = job_of(run, load_places(store, run_id, run.model))
        usual = [(edit, settings) for edit in edits().values() for settings in edit.usual(job)]
        result += [asdict(try_edits(run, job, [one])) for one in usual]
    result += [asdict(one) for one in of_pipelines(store)]
    return pl.DataFrame(result, infer_schema_length=None)


def of_pipelines(store: Store) -> list[WhatIf]:
    """What other settings of a pipeline would make of it, one course of which has no interval."""
    found = []
    for run_id, microbatches, iteration_ns, saved_ns, more, more_ns in store.query(_PIPELINES).iter_rows():
        ratio = more / microbatches * iteration_ns / more_ns
        longer_ns = iteration_ns - more_ns
        settings = f"microbatches={more}"
        found.append(
            WhatIf(run_id, "more_microbatches", settings, ratio, None, None, more_ns, longer_ns, _MORE_MICROBATCHES)
        )
        even_ns = iteration_ns - saved_ns
        ratio = iteration_ns / even_ns
        found.append(WhatIf(run_id, "even_stages", "", ratio, None, None, even_ns, saved_ns, _EVEN_STAGES))
    for run_id, schedule, chunks, iteration_ns, saved_ns in store.rows(_OTHER_SCHEDULES):
        taken_ns = iteration_ns - saved_ns
        settings, reason = f"schedule={schedule},chunks={chunks}", _SCHEDULES[schedule]
        ratio = iteration_ns / taken_ns
        found.append(WhatIf(run_id, "other_schedule", settings, ratio, None, None, taken_ns, saved_ns, reason))
    return found


def job_of(run: ReplayInput, places: Places) -> EditedJob:
    """The run before any edit."""
    return EditedJob(run.model, places, run.recorded, couplings=run.known.point)


def try_edits(run: ReplayInput, job: EditedJob, chosen: Sequence[tuple[Edit, Settings]]) -> WhatIf:
    """The run with some edits made one after another.

    Raises:
        UsageError: settings name something that is not in the run.
    """
    name = "+".join(edit.name for edit, _ in chosen)
    parameters = ";".join(format_settings(settings) for _, settings in chosen)
    try:
        edited, others = _edited(run, job, chosen)
    except InsufficientData as missing:
        return WhatIf(run.run_id, name, parameters, None, None, None, None, None, str(missing))
    ends = (run.known.low, run.known.point, run.known.high)
    distinct = list(dict.fromkeys(ends))
    arms = [Arm(couplings=couplings) for couplings in distinct]
    found = replay_arms(edited.model, measured(edited.model), arms, recorded=edited.recorded)
    low, point, high = (found[distinct.index(end)] for end in ends)
    times = run.ratio_interval(low, point, high)
    faster = run.elapsed_ns / max(run.elapsed_of(point), 1)
    as_well = [faster, *(run.elapsed_ns / max(run.elapsed_of(_replayed(run, one)), 1) for one in others)]
    interval = _with_model_error(times, faster, as_well)
    share = edited.samples_share
    was, is_now = (round(float(run.steps_ns(end_ns).mean())) for end_ns in (run.model.end_ns, point.end_ns))
    return WhatIf(
        run.run_id,
        name,
        parameters,
        share * faster,
        share * interval.low,
        share * interval.high,
        is_now,
        was - is_now,
        " ".join(edit.description for edit, _ in chosen),
    )


def _edited(
    run: ReplayInput, job: EditedJob, chosen: Sequence[tuple[Edit, Settings]]
) -> tuple[EditedJob, list[EditedJob]]:
    """The run with all edits, and what it may be as well: one edit with other settings that suit the run no less."""
    done, others = job, list[EditedJob]()
    for edit, settings in chosen:
        if edit.changes_transfers and not run.is_split:
            raise InsufficientData(_NOT_SPLIT)
        others = [edit.apply(one, settings) for one in others]
        others += [edit.apply(done, other) for other in edit.others(done, settings)]
        done = edit.apply(done, settings)
    return done, others


def _replayed(run: ReplayInput, job: EditedJob) -> Replay:
    couplings = run.known.point
    return replay_arms(job.model, measured(job.model), [Arm(couplings=couplings)], recorded=job.recorded)[0]


def _with_model_error(times: Interval, faster: float, as_well: Sequence[float]) -> Interval:
    """An interval of recorded over replayed time, with what parameters and the model may be off by.

    Args:
        times: with the error of the couplings and of the steps.
        faster: the value.
        as_well: the value, and what it is with other settings that suit the run no less.
    """
    error = exp(thresholds.LEAST_MODEL_ERROR + thresholds.MODEL_ERROR_OF_CHANGE * abs(log(faster)))
    low, high = min(times.low, faster) / faster, max(times.high, faster) / faster
    return Interval(min(as_well) * low / error, max(as_well) * high * error)
