"""Why stages of a pipeline idle. Reads turns, messages and segments; fills timeline.bubble.

Idea: the pipeline's own turns are played forward at ever more real durations, and each kind is what it adds:

    fill, drain   passes as long on each stage, messages of no time
    imbalance     each stage at its usual durations, hosts as prompt as the usual one
    transfer      messages at their usual durations, and what those of the iteration add where they take longer
    launch        measured: the device has nothing to do although its input was sent
    late_peer     the rest of what was measured

Not handled: pipelines of which a stage was not recorded, iterations in which ranks take turns in another order.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from traceforge.store.database import Store
from traceforge.timeline.pipeline_play import Course, Loads, play
from traceforge.timeline.pipeline_program import PipelineProgram
from traceforge.timeline.pipeline_run import PipelineRun, read_pipeline_run

_SCHEMA = {"run_id": pl.Int32, "iteration": pl.Int32, "rank": pl.Int32, "kind": pl.String, "duration_ns": pl.Int64}
_KINDS = ("fill", "drain", "imbalance", "transfer", "launch", "late_peer")
# The first iteration differs from all others, which are alike: the first, one that follows it, and the rest.
PLAYED = len(("first", "second", "any other"))


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """Six rows an iteration of a rank whose pipeline is known."""
    for (run_id,) in store.query("SELECT DISTINCT run_id FROM timeline.microbatch ORDER BY run_id").iter_rows():
        run = store.once(read_pipeline_run, int(run_id))
        if run is not None:
            yield (
                _rows(run)
                .with_columns(run_id=pl.lit(run_id))
                .select(pl.col(name).cast(kind) for name, kind in _SCHEMA.items())
            )


def _rows(run: PipelineRun) -> pl.DataFrame:
    usual = UsualCourse.of(run)
    there = np.minimum(np.arange(len(run.iterations)), PLAYED - 1)
    slow = slowed_by_messages(run)
    frames = []
    for stage, ranks in enumerate(run.ranks):
        for replica, rank in enumerate(ranks):
            own = run.times[rank]
            parts = {name: np.rint(one.idle[there, stage, 0]).astype(np.int64) for name, one in usual.courses.items()}
            fill = np.rint(usual.courses["equal"].fill[there, stage, 0]).astype(np.int64)
            amounts = [
                fill,
                parts["equal"] - fill,
                parts["unmoved"] - parts["equal"],
                parts["moved"] - parts["unmoved"] + np.rint(slow[:, stage, replica]).astype(np.int64),
                own.launch,
            ]
            amounts.append(own.spare - np.sum(amounts, axis=0))
            frames += [
                pl.DataFrame({"iteration": run.iterations, "duration_ns": amount}).with_columns(
                    rank=pl.lit(rank), kind=pl.lit(kind)
                )
                for kind, amount in zip(_KINDS, amounts, strict=True)
            ]
    return pl.concat(frames).sort("iteration", "rank", maintain_order=True)


@dataclass(frozen=True, slots=True)
class UsualCourse:
    """The pipeline at usual durations: `moved`; messages free: `unmoved`; stages equal: `even`; both: `equal`."""

    courses: Mapping[str, Course]

    @staticmethod
    def of(run: PipelineRun) -> "UsualCourse":
        """Of a run."""
        usual = replace(run.usual, turns=run.prompt_turns)
        even = replace(usual, turns=equalised(run.program, usual.turns))
        played = {"equal": _free(even), "even": even, "unmoved": _free(usual), "moved": usual}
        return UsualCourse({name: play(run.program, repeated(loads, PLAYED)) for name, loads in played.items()})


def equalised(program: PipelineProgram, turns: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Durations of which each is that of its direction on the mean virtual stage."""
    lengths: dict[str, list[float]] = {}
    for own, times in zip(program.turns, turns, strict=True):
        for number, turn in enumerate(own):
            lengths.setdefault(turn.direction, []).append(float(times[0, number, 0]))
    mean = {direction: float(np.mean(found)) for direction, found in lengths.items()}
    return [np.array([[[mean[turn.direction]] for turn in own]]) for own in program.turns]


def _free(loads: Loads) -> Loads:
    """With messages of no time."""
    return replace(loads, arriving=[np.zeros_like(times) for times in loads.arriving])


def repeated(loads: Loads, iterations: int) -> Loads:
    """As many iterations that are like the first one."""

    def again(times: np.ndarray) -> np.ndarray:
        return np.repeat(times[:1], iterations, axis=0)

    sides = (again(one) for one in (loads.before, loads.behind, loads.after))
    return Loads([again(one) for one in loads.turns], [again(one) for one in loads.arriving], *sides)


def slowed_by_messages(run: PipelineRun) -> np.ndarray:
    """What messages add by taking longer than usual, ns; shape (iterations, stages, replicas)."""
    pairs = zip(run.usual.arriving, run.loads.turns, strict=True)
    usual = replace(run.loads, arriving=[np.broadcast_to(one, times.shape) for one, times in pairs])
    result: np.ndarray = play(run.program, run.loads).idle - play(run.program, usual).idle
    return result
