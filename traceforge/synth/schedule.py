"""In which order pipeline stages work. In: stages, micro-batches and a schedule's name. Out: the turns of each rank.

A virtual stage is a run of layers; rank r of p holds the virtual stages r, r + p, r + 2p … A turn is one pass of one
micro-batch through one of them. `ideal_ends` plays turns where messages take no time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from traceforge.errors import UsageError
from traceforge.synth.program import Work


@dataclass(frozen=True, slots=True)
class Turn:
    """One pass of a micro-batch through a virtual stage."""

    work: Work
    stage: int
    microbatch: int


Order = list[Turn]
"""The turns of one rank, one after the other."""


def turns_of(schedule: str, stages: int, microbatches: int, chunks: int) -> list[Order]:
    """Turns of every rank.

    Raises:
        UsageError: there is no such schedule, or it needs other numbers.
    """
    if schedule not in _SCHEDULES:
        raise UsageError(f"there is no schedule `{schedule}`", hint=f"choose one of: {', '.join(_SCHEDULES)}")
    if min(stages, microbatches, chunks) < 1:
        raise UsageError("stages, microbatches and chunks must be 1 or more")
    if chunks > 1 and schedule != "interleaved":
        raise UsageError(f"the schedule `{schedule}` has one chunk a stage", hint="choose `interleaved`")
    if chunks > 1 and microbatches % stages:
        raise UsageError(f"{microbatches} micro-batches cannot be interleaved on {stages} stages")
    return [_SCHEDULES[schedule](rank, stages, microbatches, chunks) for rank in range(stages)]


def _gpipe(rank: int, _stages: int, microbatches: int, _chunks: int) -> Order:
    forward = [Turn("forward", rank, m) for m in range(microbatches)]
    return forward + [Turn("backward", rank, m) for m in range(microbatches)]


def _one_forward_one_backward(rank: int, stages: int, microbatches: int, _chunks: int) -> Order:
    warm_up = min(stages - rank - 1, microbatches)
    forward = [Turn("forward", rank, m) for m in range(microbatches)]
    backward = [Turn("backward", rank, m) for m in range(microbatches)]
    return _alternating(forward, backward, warm_up)


def _interleaved(rank: int, stages: int, microbatches: int, chunks: int) -> Order:
    passes = microbatches * chunks

    def place(number: int) -> tuple[int, int]:
        """Chunk and micro-batch: the chunk changes every `stages` micro-batches."""
        within = number % (stages * chunks)
        return within // stages, number // (stages * chunks) * stages + number % stages

    forward = [Turn("forward", c * stages + rank, m) for c, m in map(place, range(passes))]
    backward = [Turn("backward", (chunks - 1 - c) * stages + rank, m) for c, m in map(place, range(passes))]
    warm_up = min(2 * (stages - rank - 1) + (chunks - 1) * stages, passes)
    return _alternating(forward, backward, warm_up if chunks > 1 else min(stages - rank - 1, passes))


def _zero_bubble(rank: int, stages: int, microbatches: int, _chunks: int) -> Order:
    """ZB-H1: each rank does the weight part of a micro-batch as many turns later as it has ranks before it."""
    base = _one_forward_one_backward(rank, stages, microbatches, 1)
    order: Order = []
    for turn in base:
        if turn.work == "forward":
            order.append(turn)
            continue
        order.append(Turn("backward_input", rank, turn.microbatch))
        if turn.microbatch >= rank:
            order.append(Turn("backward_weight", rank, turn.microbatch - rank))
    return order + [Turn("backward_weight", rank, m) for m in range(max(0, microbatches - rank), microbatches)]


def _alternating(forward: Order, backward: Order, warm_up: int) -> Order:
    order = forward[:warm_up]
    for one, other in zip(forward[warm_up:], backward, strict=False):
        order += [one, other]
    return order + backward[len(forward) - warm_up :]


_SCHEDULES: Mapping[str, Callable[[int, int, int, int], Order]] = {
    "gpipe": _gpipe,
    "1f1b": _one_forward_one_backward,
    "interleaved": _interleaved,
    "zero_bubble": _zero_bubble,
}


def needed_turn(turn: Turn, last_stage: int) -> Turn | None:
    """The turn of another virtual stage whose result a turn works on."""
    if turn.work == "forward":
        return Turn("forward", turn.stage - 1, turn.microbatch) if turn.stage else None
    if turn.work == "backward_weight" or turn.stage == last_stage:
        return None
    return Turn(turn.work, turn.stage + 1, turn.microbatch)


_LENGTHS: Mapping[Work, float] = {"forward": 1, "backward": 2, "backward_input": 1, "backward_weight": 1}


def ideal_ends(orders: list[Order], last_stage: int) -> dict[Turn, float]:
    """When each turn ends, were all stages equal and messages free: forward takes 1, backward 2.

    Raises:
        UsageError: turns wait for one another for ever.
    """
    ends: dict[Turn, float] = {}
    free, places = [0.0] * len(orders), [0] * len(orders)
    while any(place < len(order) for place, order in zip(places, orders, strict=True)):
        moved = False
        for rank, order in enumerate(orders):
            while places[rank] < len(order):
                turn = order[places[rank]]
                needed = needed_turn(turn, last_stage)
                if needed is not None and needed not in ends:
                    break
                ready = ends[needed] if needed is not None else 0.0
                ends[turn] = free[rank] = max(free[rank], ready) + _LENGTHS[turn.work]
                places[rank] += 1
                moved = True
        if not moved:
            raise UsageError("the turns of the schedule wait for one another")
    return ends
