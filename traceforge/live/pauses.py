"""When the interpreter collects garbage. In: callbacks of `gc`. Out: phases of the thread that had to wait.

A collection may begin inside any other line of the recorder, so the callback only appends to a list of its own.
Not handled: collections that another interpreter of the process makes.
"""

import gc
import threading
from collections import deque
from collections.abc import Mapping

from traceforge.live.clock import Clock
from traceforge.live.tracks import Tracks

_MOST_WAITING = 4_096
_SHORTEST_NS = 20_000
"""Collections that take less come many a step and explain nothing."""


class GarbagePauses:
    """Listens from `start` to `stop`; `hand_over` is for the thread that trains."""

    def __init__(self, clock_ns: Clock) -> None:
        self._clock_ns = clock_ns
        self._start_ns = 0
        self._found: deque[tuple[int, int, int]] = deque(maxlen=_MOST_WAITING)

    def start(self) -> None:
        """Begin to listen."""
        gc.callbacks.append(self._heard)

    def stop(self) -> None:
        """Listen no more."""
        if self._heard in gc.callbacks:
            gc.callbacks.remove(self._heard)

    def hand_over(self, tracks: Tracks) -> None:
        """Add what was heard since the last call."""
        while self._found:
            start, end, thread = self._found.popleft()
            tracks.add_phase("gc.collect", start, end, thread)

    def _heard(self, phase: str, _info: Mapping[str, int]) -> None:
        if phase == "start":
            self._start_ns = self._clock_ns()
            return
        end = self._clock_ns()
        if end - self._start_ns >= _SHORTEST_NS:
            self._found.append((self._start_ns, end, threading.get_ident()))
