"""What stages of a pipeline do in what order. In: turns and exchanges of each stage. Out: `PipelineProgram`.

A turn begins when the turn before it on its rank has ended and what it needs of another stage has arrived. Messages
move in exchanges: one begins when all turns launched before it, and what is before it on its stream, have ended; it
ends with the last of its messages, each of which needs both sides. Not handled: work beside the turns.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple


class PipelineTurn(NamedTuple):
    """A pass of a micro-batch through a virtual stage."""

    direction: str
    chunk: int
    microbatch: int


class Place(NamedTuple):
    """A turn of a program: the stage, and its number there."""

    stage: int
    number: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a rank sends and receives in one kernel.

    Attributes:
        stream: exchanges of one stream follow one another.
        behind: how many of the rank's turns were launched before.
        messages: the turns that need what is sent or received.
    """

    stream: int
    behind: int
    messages: tuple[Place, ...]


class PlayStep(NamedTuple):
    """Something to be played: a turn, the begin or the end of an exchange (numbers of its stage), or a message."""

    kind: str
    place: Place


@dataclass(frozen=True, slots=True)
class PipelineProgram:
    """The turns of an iteration.

    Attributes:
        turns: of each stage, in order.
        needed: turn of another stage that a turn waits for, by place.
        exchanges: of each stage, in order.
        order: all steps, none before one that it needs.
        meets: whether stages meet in a collective behind their last turn.
    """

    turns: Sequence[Sequence[PipelineTurn]]
    needed: Mapping[Place, Place]
    exchanges: Sequence[Sequence[Exchange]]
    order: Sequence[PlayStep]
    meets: bool

    def first_backward(self, stage: int) -> int:
        """Number of the first backward turn of a stage; that of its turns where there is none."""
        turns = self.turns[stage]
        return next((n for n, turn in enumerate(turns) if turn.direction.startswith("backward")), len(turns))


def needed_turns(turns: Sequence[Sequence[PipelineTurn]], *, is_v_shaped: bool) -> dict[Place, Place] | None:
    """The turn of another stage that each turn waits for, or None where nobody does it."""
    count = len(turns)
    virtual = [[_virtual(stage, turn.chunk, count, is_v_shaped) for turn in own] for stage, own in enumerate(turns)]
    place = {
        (_kind(turn.direction), at, turn.microbatch): Place(stage, number)
        for stage, own in enumerate(turns)
        for number, (turn, at) in enumerate(zip(own, virtual[stage], strict=True))
        if turn.direction != "backward_weight"
    }
    last = max((at for own in virtual for at in own), default=0)
    needed: dict[Place, Place] = {}
    for (kind, at, microbatch), own in place.items():
        before = at - 1 if kind == "forward" else at + 1
        if not 0 <= before <= last:
            continue
        source = place.get((kind, before, microbatch))
        if source is None:
            return None
        if source.stage != own.stage:
            needed[own] = source
    return needed


def one_by_one(turns: Sequence[Sequence[PipelineTurn]], needed: Mapping[Place, Place]) -> list[list[Exchange]]:
    """Exchanges of one message each that hold up nothing else: received as early as can be, sent behind its turn."""
    found: list[list[Exchange]] = [[] for _ in turns]
    for number, (place, source) in enumerate(needed.items()):
        found[source.stage].append(Exchange(number, source.number + 1, (place,)))
        found[place.stage].append(Exchange(number, 0, (place,)))
    return found


def program_of(
    turns: Sequence[Sequence[PipelineTurn]],
    needed: Mapping[Place, Place],
    exchanges: Sequence[Sequence[Exchange]],
    *,
    meets: bool,
) -> PipelineProgram | None:
    """A program, or None where it would wait for itself for ever."""
    order = _order(turns, needed, exchanges)
    return None if order is None else PipelineProgram(turns, needed, exchanges, order, meets)


def _kind(direction: str) -> str:
    return "forward" if direction == "forward" else "backward"


def _virtual(stage: int, chunk: int, stages: int, is_v_shaped: bool) -> int:
    """Number of a virtual stage; on a way forth and back every other chunk goes from the last rank to the first."""
    return chunk * stages + (stages - 1 - stage if is_v_shaped and chunk % 2 else stage)


def _order(
    turns: Sequence[Sequence[PipelineTurn]], needed: Mapping[Place, Place], exchanges: Sequence[Sequence[Exchange]]
) -> list[PlayStep] | None:
    sorter: TopologicalSorter[PlayStep] = TopologicalSorter()
    for stage, own in enumerate(turns):
        for number in range(len(own)):
            sorter.add(PlayStep("turn", Place(stage, number)), *_turn_step(stage, number))
    for stage, exchanging in enumerate(exchanges):
        before: dict[int, int] = {}
        for number, exchange in enumerate(exchanging):
            place = Place(stage, number)
            sorter.add(PlayStep("begin", place), *_turn_step(stage, exchange.behind))
            sorter.add(PlayStep("end", place), PlayStep("begin", place))
            if exchange.stream in before:
                sorter.add(PlayStep("begin", place), PlayStep("end", Place(stage, before[exchange.stream])))
            before[exchange.stream] = number
            for message in exchange.messages:
                sorter.add(PlayStep("message", message), PlayStep("begin", place))
                sorter.add(PlayStep("end", place), PlayStep("message", message))
                if message.stage == stage:
                    sorter.add(PlayStep("turn", message), PlayStep("end", place))
    carried = Counter(message for exchanging in exchanges for one in exchanging for message in one.messages)
    if any(carried[place] != len(("sent", "received")) for place in needed):
        return None
    try:
        return list(sorter.static_order())
    except CycleError:
        return None


def _turn_step(stage: int, count: int) -> list[PlayStep]:
    """The last of so many turns."""
    return [PlayStep("turn", Place(stage, count - 1))] if count else []
