"""What time it is. In: the machine's clocks. Out: monotonic ns, and readings that tie them to the epoch.

Rows carry monotonic times, which no one sets. Readings are taken again and again, so that a reader can see whether the
wall clock was set meanwhile. Not handled: clocks of other hosts, which collectives tie together later.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

Clock = Callable[[], int]
_TRIES = 5


class Anchor(NamedTuple):
    """The same moment on both clocks, ns."""

    monotonic_ns: int
    epoch_ns: int


def read_anchor(monotonic_ns: Clock = time.monotonic_ns, epoch_ns: Clock = time.time_ns) -> Anchor:
    """Both clocks at one moment: the closest of some tries, as the process may be interrupted between two readings."""
    tries = [(monotonic_ns(), epoch_ns(), monotonic_ns()) for _ in range(_TRIES)]
    before, epoch, after = min(tries, key=lambda one: one[2] - one[0])
    return Anchor((before + after) // 2, epoch)
