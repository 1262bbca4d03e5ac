"""Retries of PyTorch's caching allocator. In: its count, once a step. Out: a mark in each step in which it grew.

Idea: a retry means that memory ran out and that the cache was given back to the driver, for which the device waits.
When in the step that was is not known, so that the mark lasts one nanosecond at its end, on a track of its own: it
claims no time. Not handled: several devices of one process (the current one is asked).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traceforge.live.recorder import Recorder

_TRACK = -1
"""In the place of a thread's identifier, of which none is negative."""


class AllocatorRetries:
    """Watches the allocator of the current device."""

    def __init__(self, torch: Any) -> None:
        self._cuda = torch.cuda
        self._seen = 0

    def install(self, recorder: "Recorder") -> Callable[[], None]:
        """Look now and after each step."""
        self._seen = self._count()

        def look(_number: int, _start_ns: int, end_ns: int) -> None:
            before, self._seen = self._seen, self._count()
            if self._seen > before:
                name = f"allocator_retries +{self._seen - before}"
                recorder.tracks.add_phase(name, end_ns - 1, end_ns, _TRACK)

        recorder.after_step(look)
        return _nothing

    def _count(self) -> int:
        """Retries so far; 0 before CUDA is initialised, which nobody does for that."""
        if not self._cuda.is_initialized():
            return 0
        return int(self._cuda.memory_stats_as_nested_dict().get("num_alloc_retries", 0))


def _nothing() -> None:
    """Nothing was exchanged."""
