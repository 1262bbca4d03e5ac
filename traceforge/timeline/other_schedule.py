"""What a pipeline would take in another order of its passes. Reads timeline.pipeline; fills timeline.other_schedule.

Idea: the turns of the other schedule are played at the run's own usual durations, as the recorded ones are, and the two
are compared. Interleaved: the layers of each stage are dealt in chunks that take equally long. ZB-H1 (Zero Bubble,
ICLR 2024): half of each backward pass, the weights' part, comes later. In both, messages hold up only what needs them.
Not handled: memory; runs that have several chunks or split backward passes already; replicas that wait for each other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from traceforge.store.database import Store
from traceforge.timeline.bubble import PLAYED, repeated
from traceforge.timeline.pipeline_play import Loads, play
from traceforge.timeline.pipeline_program import (
    PipelineProgram,
    PipelineTurn,
    Place,
    needed_turns,
    one_by_one,
    program_of,
)
from traceforge.timeline.pipeline_run import PipelineRun, read_pipeline_run

Order = list[PipelineTurn]

_SCHEDULES = """
SELECT run_id, MODE(stages) AS stages, MODE(microbatches) AS microbatches
FROM timeline.schedule
SEMI JOIN timeline.pipeline USING (run_id)
GROUP BY run_id
HAVING BOOL_AND(schedule IN ('gpipe', '1f1b') AND chunks = 1) AND MODE(stages) > 1
ORDER BY run_id
"""
_CHUNKS = (2, 4)
_SCHEMA = {
    "run_id": pl.Int32, "schedule": pl.String, "chunks": pl.Int32, "iteration_ns": pl.Int64, "saved_ns": pl.Int64,
}  # fmt: skip


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """One row a run and schedule that would suit it."""
    for run_id, stages, microbatches in store.rows(_SCHEDULES):
        run = store.once(read_pipeline_run, int(run_id))
        if run is None or len(run.program.turns) != stages or not _goes_back(run):
            continue
        recorded_ns = _played_ns(run, run.program.turns, 1)
        for schedule, chunks, orders in other_orders(stages, microbatches):
            taken_ns = _played_ns(run, orders, chunks)
            if recorded_ns is not None and taken_ns is not None:
                row = (run_id, schedule, chunks, taken_ns, recorded_ns - taken_ns)
                yield pl.DataFrame([row], schema=_SCHEMA, orient="row")


def _goes_back(run: PipelineRun) -> bool:
    """Whether all stages have forward and backward passes: a trace may not show which operations are of which."""
    return all({"forward", "backward"} <= {turn.direction for turn in own} for own in run.program.turns)


def other_orders(stages: int, microbatches: int) -> Iterator[tuple[str, int, list[Order]]]:
    """Schedules that suit so many stages and micro-batches: name, chunks of a stage, and the turns of each stage."""
    yield "zb_h1", 1, [_zero_bubble(stage, stages, microbatches) for stage in range(stages)]
    # Micro-batches go round in groups of as many as there are stages.
    for chunks in _CHUNKS if microbatches % stages == 0 else ():
        yield "interleaved", chunks, [_interleaved(stage, stages, microbatches, chunks) for stage in range(stages)]


def _interleaved(stage: int, stages: int, microbatches: int, chunks: int) -> Order:
    """Megatron-LM's order (SC21): groups of micro-batches go through chunk after chunk."""
    groups = [range(first, first + stages) for first in range(0, microbatches, stages)]
    forward = [PipelineTurn("forward", chunk, one) for group in groups for chunk in range(chunks) for one in group]
    backward = [
        PipelineTurn("backward", chunk, one) for group in groups for chunk in reversed(range(chunks)) for one in group
    ]
    ahead = min(2 * (stages - stage - 1) + (chunks - 1) * stages, len(forward))
    return _in_turns(forward, backward, ahead)


def _zero_bubble(stage: int, stages: int, microbatches: int) -> Order:
    """1F1B in which the weights' part of each backward pass waits for as many others as stages come before."""
    forward = [PipelineTurn("forward", 0, one) for one in range(microbatches)]
    inputs = [PipelineTurn("backward_input", 0, one) for one in range(microbatches)]
    order = _in_turns(forward, inputs, min(stages - stage - 1, microbatches))
    weights = [PipelineTurn("backward_weight", 0, one) for one in range(microbatches)]
    found: Order = []
    for turn in order:
        found.append(turn)
        if turn.direction == "backward_input" and turn.microbatch >= stage:
            found.append(weights[turn.microbatch - stage])
    return found + weights[max(0, microbatches - stage) :]


def _in_turns(forward: Order, backward: Order, ahead: int) -> Order:
    """Some forward passes, then one of each in turn, then what is left."""
    paired = [turn for pair in zip(forward[ahead:], backward, strict=False) for turn in pair]
    return forward[:ahead] + paired + backward[len(forward) - ahead :]


def _played_ns(run: PipelineRun, orders: Sequence[Sequence[PipelineTurn]], chunks: int) -> int | None:
    """An iteration at the run's usual durations, in these orders; None where they wait for themselves."""
    needed = needed_turns(orders, is_v_shaped=False)
    if needed is None:
        return None
    program = program_of(orders, needed, one_by_one(orders, needed), meets=run.program.meets)
    if program is None:
        return None
    course = play(program, repeated(_loads(run, program, chunks), PLAYED))
    return round(float(course.duration[-1].max()))


def _loads(run: PipelineRun, program: PipelineProgram, chunks: int) -> Loads:
    """Usual durations of the passes of another program with so many chunks a stage."""
    passes = [_by_direction(run, stage, chunks) for stage in range(len(program.turns))]
    turns = [np.array([[[passes[stage][turn.direction]] for turn in own]]) for stage, own in enumerate(program.turns)]
    ways = _messages(run)
    usual = float(np.mean(list(ways.values()))) if ways else 0.0
    arriving = [
        np.array([[[_message(program, ways, usual, Place(stage, number))] for number in range(len(own))]])
        for stage, own in enumerate(program.turns)
    ]
    return replace(run.usual, turns=turns, arriving=arriving)


def _by_direction(run: PipelineRun, stage: int, chunks: int) -> dict[str, float]:
    """What a pass takes on a stage; of a backward pass half is its input's part."""
    found: dict[str, float] = {}
    for turn, length in zip(run.program.turns[stage], run.usual.turns[stage][0, :, 0].tolist(), strict=True):
        found[turn.direction] = length / chunks
    half = found.get("backward", 0.0) / 2
    return {**found, "backward_input": half, "backward_weight": half}


def _messages(run: PipelineRun) -> dict[tuple[int, int], float]:
    """What a message takes by source and destination."""
    return {
        (source.stage, place.stage): float(run.usual.arriving[place.stage][0, place.number, 0])
        for place, source in run.program.needed.items()
    }


def _message(program: PipelineProgram, ways: dict[tuple[int, int], float], usual: float, place: Place) -> float:
    source = program.needed.get(place)
    return 0.0 if source is None else ways.get((source.stage, place.stage), usual)
