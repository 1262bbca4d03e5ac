"""Recorded jobs on clocks that the test turns. In: what each rank does. Out: files as a job writes them.

Ranks are played one after another in one process; a collective ends for all of them `TRANSFER_NS` after the last one
came.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.live.device import readings
from traceforge.live.limits import PacingLimits
from traceforge.live.pacing import Pacer
from traceforge.live.recorder import Recorder, start
from traceforge.replay.policy_file import ChosenPolicy

MS = 1_000_000
TRANSFER_NS = MS // 2


@dataclass
class HandClock:
    """A monotonic clock that stands until it is turned."""

    now_ns: int = 1_000 * MS

    def turn(self, by_ns: int) -> None:
        self.now_ns += by_ns

    def __call__(self) -> int:
        return self.now_ns


def recorder(folder: Path | None, clock: Callable[[], int], rank: int = 0, ranks: int = 1) -> Recorder:
    """A recorder that sees no environment."""
    return start(folder, environment={}, rank=rank, world_size=ranks, clock_ns=clock)


def record_job(
    folder: Path,
    *,
    ranks: int = 2,
    steps: int = 12,
    calls: int = 2,
    late_ns: Mapping[int, int] | None = None,
    killed: bool = False,
    policy: ChosenPolicy | None = None,
    limits: PacingLimits | None = None,
    spoils: float = 0.0,
    clocks_mhz: Sequence[int] = (),
) -> list[Path]:
    """Record a job whose rank r computes `late_ns[r]` longer than its peers in each forward pass.

    Args:
        policy: of a hook in each rank, in which a delay turns the rank's clock.
        spoils: how much longer transfers take, a share of the spread of arrivals: a coupling that pacing could use.
        clocks_mhz: of the ranks' devices, on bus 80 + rank (hexadecimal), which are read after each step.
        killed: the processes end without closing their files, after a last flush.
    """
    draw = Random(1)  # noqa: S311  # no secret
    clocks = [HandClock() for _ in range(ranks)]
    recorders = [
        start(
            folder,
            environment={},
            rank=rank,
            world_size=ranks,
            clock_ns=clock,
            hooks=[
                *([] if policy is None else [Pacer(policy, limits or PacingLimits(), clock.turn)]),
                *(readings(one, 0x80 + rank) for one in clocks_mhz[rank : rank + 1]),
            ],
        )
        for rank, clock in enumerate(clocks)
    ]
    with ExitStack() as running:
        if not killed:
            for one in recorders:
                running.enter_context(one)
        for _ in range(steps):
            for rank, (one, clock) in enumerate(zip(recorders, clocks, strict=True)):
                with one.phase("data_loading"):
                    clock.now_ns += MS // 4
                with one.phase("forward"):
                    clock.now_ns += 3 * MS + draw.randrange(MS // 10) + (late_ns or {}).get(rank, 0)
            for _ in range(calls):
                _all_reduce(recorders, clocks, draw, spoils)
            for one, clock in zip(recorders, clocks, strict=True):
                with one.phase("Optimizer.step#SGD.step"):
                    clock.now_ns += MS // 2
                one.step()
                for read in one.writer.before_flush if one.writer else ():
                    read()
        for one in recorders if killed else ():
            assert one.writer is not None
            one.writer.flush()
    return sorted(folder.glob("*.live"))


def _all_reduce(recorders: list[Recorder], clocks: list[HandClock], draw: Random, spoils: float) -> None:
    meetings = []
    for one, clock in zip(recorders, clocks, strict=True):
        with one.phase("backward"):
            clock.now_ns += MS + draw.randrange(MS // 20)
        meetings.append(one.collective("all_reduce", size_bytes=1 << 20))
    last = max(clock.now_ns for clock in clocks)
    end = last + TRANSFER_NS + round(spoils * (last - min(clock.now_ns for clock in clocks)))
    for meeting, clock in zip(meetings, clocks, strict=True):
        clock.now_ns = end
        meeting.end()
