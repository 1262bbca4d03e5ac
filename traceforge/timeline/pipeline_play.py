"""A pipeline played forward. In: `PipelineProgram`, how long everything takes. Out: `Course`: when stages are idle.

Replicas of a pipeline are played side by side, as the last axis of all arrays, iterations one right after the other.
Where stages meet in a collective behind their last turn, all go on when the last one is there.
Not handled: replicas that wait for each other, hosts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.timeline.pipeline_program import PipelineProgram, Place, PlayStep

Times = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Loads:
    """How long everything takes, ns.

    Attributes:
        turns: of each stage, shape (iterations, turns, replicas).
        arriving: what the message takes that each needs, shapes likewise.
        before, behind, after: work before the first turn, behind the last one, and after stages have met; shape
            (iterations, stages, replicas).
    """

    turns: Sequence[Times]
    arriving: Sequence[Times]
    before: Times
    behind: Times
    after: Times


@dataclass(frozen=True, slots=True)
class Course:
    """What follows, ns; shapes (iterations, stages, replicas).

    Attributes:
        fill: idle time until the first backward turn, once the first stage has begun the iteration.
        drain: all other idle time.
        duration: of the iteration of each stage.
    """

    fill: Times
    drain: Times
    duration: Times

    @property
    def idle(self) -> Times:
        """Both."""
        return self.fill + self.drain


def play(program: PipelineProgram, loads: Loads) -> Course:
    """Play all iterations."""
    player = _Player(program, loads)
    for i in range(len(loads.before)):
        player.play(i)
    return Course(player.fill, player.drain, player.duration)


class _Player:
    """The state between iterations: when each stage, and each stream of exchanges, is free."""

    def __init__(self, program: PipelineProgram, loads: Loads) -> None:
        self.program, self.loads = program, loads
        self.fill, self.drain, self.duration = (np.zeros_like(loads.before) for _ in range(3))
        self._free = np.zeros_like(loads.before[0])
        self.streams: dict[tuple[int, int], Times] = {}
        self.sides: dict[Place, list[PlayStep]] = {}
        for stage, exchanges in enumerate(program.exchanges):
            for number, exchange in enumerate(exchanges):
                for message in exchange.messages:
                    self.sides.setdefault(message, []).append(PlayStep("begin", Place(stage, number)))

    def play(self, i: int) -> None:
        """One iteration."""
        program, loads, began = self.program, self.loads, self._free
        free = _Iteration(self, i, began + loads.before[i]).steps() + loads.behind[i]
        if program.meets:
            met = free.max(axis=0)
            self.drain[i] += met - free
            free = np.broadcast_to(met, free.shape)
        self._free = free + loads.after[i]
        self.duration[i] = self._free - began


class _Iteration:
    """One iteration in the making."""

    def __init__(self, player: _Player, i: int, free: Times) -> None:
        self._player, self._i = player, i
        self._ready, self._free = free, free.copy()
        self._ends: dict[PlayStep, Times] = {}
        self._arrived: dict[Place, Times] = {}
        self._begun, self._waited = np.zeros_like(free), np.zeros_like(free)

    def steps(self) -> Times:
        """Play all steps; when each stage is free then."""
        for step in self._player.program.order:
            match step.kind:
                case "turn":
                    self._turn(step)
                case "begin":
                    self._begin(step)
                case "message":
                    sides = [self._ends[one] for one in self._player.sides[step.place]]
                    stage, number = step.place
                    self._ends[step] = np.max(sides, axis=0) + self._player.loads.arriving[stage][self._i, number]
                case _:
                    self._end(step)
        self._move_to_drain()
        return self._free

    def _turn(self, step: PlayStep) -> None:
        stage, number = step.place
        player, free = self._player, self._free[stage]
        begin = np.maximum(free, self._arrived.get(step.place, free))
        waited = begin - free
        if number == 0:
            self._begun[stage], self._waited[stage] = begin, waited
        fills = number <= player.program.first_backward(stage)
        (player.fill if fills else player.drain)[self._i, stage] += waited
        self._free[stage] = begin + player.loads.turns[stage][self._i, number]
        self._ends[step] = self._free[stage].copy()

    def _begin(self, step: PlayStep) -> None:
        stage, number = step.place
        exchange = self._player.program.exchanges[stage][number]
        behind = exchange.behind
        ready = self._ends[PlayStep("turn", Place(stage, behind - 1))] if behind else self._ready[stage]
        self._ends[step] = np.maximum(ready, self._player.streams.get((stage, exchange.stream), ready))

    def _end(self, step: PlayStep) -> None:
        stage, number = step.place
        exchange = self._player.program.exchanges[stage][number]
        moved = [self._ends[PlayStep("message", message)] for message in exchange.messages]
        end = np.max([self._ends[PlayStep("begin", step.place)], *moved], axis=0)
        self._player.streams[stage, exchange.stream] = end
        self._arrived |= {message: end for message in exchange.messages if message.stage == stage}

    def _move_to_drain(self) -> None:
        """What a stage waits before the first one has begun: the iteration before is still draining."""
        early = np.clip(self._begun.min(axis=0) - (self._begun - self._waited), 0, self._waited)
        self._player.fill[self._i] -= early
        self._player.drain[self._i] += early
