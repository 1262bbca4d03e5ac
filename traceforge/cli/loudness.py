"""How much is said on stderr. In: `--quiet` and `--verbose` of any command. Out: no remarks, or timings by stage.

Without the parser of arguments, since plain questions are answered before that is loaded.
Not handled: CPU time of readers on other machines.
"""

import os
import sys
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceforge.store.stage import OnTable


class Loudness(Enum):
    """What is said beside the data and errors."""

    quiet = "nothing"
    usual = "remarks, and progress on a terminal"
    verbose = "remarks, progress, and timings by stage"


def _clocks() -> tuple[float, float]:
    spent = os.times()
    return time.monotonic(), spent.user + spent.system + spent.children_user + spent.children_system


@dataclass
class Timings:
    """Seconds of each stage, on the clock and of CPU, of this process and of readers that have ended.

    Attributes:
        stages: what each took, in the order in which they began.
    """

    stages: dict[str, tuple[float, float]] = field(default_factory=dict)
    _stage: str = "start"
    _began: tuple[float, float] = field(default_factory=_clocks)

    def turn_to(self, stage: str) -> None:
        """Another stage begins."""
        now = _clocks()
        elapsed, cpu = self.stages.get(self._stage, (0.0, 0.0))
        self.stages[self._stage] = (elapsed + now[0] - self._began[0], cpu + now[1] - self._began[1])
        self._stage, self._began = stage, now

    def say(self) -> None:
        """Print all on stderr."""
        self.turn_to("end")
        for stage, (elapsed, cpu) in self.stages.items():
            print(f"{stage:<10} {elapsed:8.2f} s  {cpu:8.2f} CPU s", file=sys.stderr)


_loudness: ContextVar[Loudness] = ContextVar("_loudness", default=Loudness.usual)
_timings: ContextVar[Timings | None] = ContextVar("_timings", default=None)


def is_quiet() -> bool:
    """Whether nothing but data and errors is said."""
    return _loudness.get() is Loudness.quiet


def speak(loudness: Loudness) -> None:
    """Have what follows said like this."""
    _loudness.set(loudness)
    _timings.set(Timings() if loudness is Loudness.verbose else None)


def turn_to(stage: str) -> None:
    """Another stage of the work begins, where anybody wants to know."""
    timings = _timings.get()
    if timings is not None:
        timings.turn_to(stage)


def watched(on_table: "OnTable | None") -> "OnTable | None":
    """The same call, with the stage of each table noted where anybody wants to know."""
    if _timings.get() is None:
        return on_table

    def turn(table: str, share: float) -> None:
        turn_to(table.partition(".")[0])
        if on_table is not None:
            on_table(table, share)

    return turn


def say_timings() -> None:
    """What each stage took, on stderr, where it was asked for."""
    timings = _timings.get()
    if timings is not None:
        timings.say()
