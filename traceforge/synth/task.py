"""What runs on a stream, and whom it meets. In: a load. Out: when a task ends, as soon as that can be known."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.synth.load import Load
from traceforge.synth.program import ProgramOperation

Times = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Coupling:
    """How waiting slows other work down.

    Attributes:
        kappa: extra transfer over the mean wait of a collective's ranks.
        eta_wait: extra time of compute while a collective of the same device waits, over its time alone.
        eta_transfer: the same while it transfers.
    """

    kappa: float = 0.0
    eta_wait: float = 0.0
    eta_transfer: float = 0.0

    def end_of_compute(self, start: Times, duration: Times, beside: Sequence["StreamTask"]) -> Times:
        """End of compute that starts at `start`, slower while communication runs beside it."""
        if not (self.eta_wait or self.eta_transfer):
            return start + duration
        now, remaining = start, duration
        pace = (1.0, 1 / (1 + self.eta_wait), 1 / (1 + self.eta_transfer))
        for task in beside:
            if task.start is None or task.last_arrival is None or task.end is None:
                # It meets somebody who is not there yet; what that slows down is left out.
                continue
            for bound, rate in zip((task.start, task.last_arrival, task.end), pace, strict=True):
                done = np.minimum(remaining, np.maximum(0, bound - now) * rate)
                now, remaining = now + done / rate, remaining - done
        return now + remaining


@dataclass(slots=True, eq=False)
class StreamTask:
    """What a host has given to a stream; times by rank of the role, None as long as they are not known.

    Attributes:
        place: number of its operation.
        issued: when the host lets it start.
        after: tasks that it follows.
        last_arrival: of those that it meets, when the last was there.
        beside: communication that was given before, which may slow it down.
    """

    place: int
    operation: ProgramOperation
    issued: Times
    after: tuple["StreamTask", ...]
    start: Times | None = None
    last_arrival: Times | None = None
    end: Times | None = None
    beside: tuple["StreamTask", ...] = ()

    def begin(self) -> bool:
        """Start it if all that it follows is done; whether it has started."""
        if self.start is None:
            ready = self.issued
            for task in self.after:
                if task.end is None:
                    return False
                ready = np.maximum(ready, task.end)
            self.start, self.after = ready, ()
        return True


class Meetings:
    """Both sides of each message of the current iteration, and collectives of several roles."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._arrivals: dict[tuple[str, bool], Times] = {}
        self._gathered: dict[str, Times] = {}

    def gather(self, meeting: str, ranks: NDArray[np.int64], start: Times) -> Times | None:
        """Ranks of one role have come; when each rank of all roles did, or None as long as that is not known."""
        arrivals = self._gathered.setdefault(meeting, np.full(self._load.host_ns.shape[2], np.nan))
        arrivals[ranks] = start
        return None if np.isnan(arrivals).any() else arrivals

    def arrive(self, message: str, start: Times, *, sends: bool) -> None:
        """One side is there from `start` on."""
        self._arrivals[message, sends] = start

    def last_arrival(self, message: str) -> Times | None:
        """When both sides are there; None as long as that is not known."""
        sent, received = self._arrivals.get((message, True)), self._arrivals.get((message, False))
        return None if sent is None or received is None else np.maximum(sent, received)

    def transfer_ns(self, i: int, message: str) -> Times:
        """What a message takes once both sides are there."""
        duration: Times = self._load.message_ns[message][i]
        return duration

    def forget(self) -> None:
        """An iteration is over."""
        self._arrivals.clear()
        self._gathered.clear()
