"""How far readers have come. In: bytes consumed, counted in workers. Out: totals that a progress bar can show.

Idea: each worker writes its count and its memory to a small file in its spool folder, and a thread of the asking
process sums them; so it works with any executor that shares the file system. Not handled: Windows reports no memory.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_FILE_NAME = "meter"
_STEP_BYTES = 1024 * 1024
_PAUSE_S = 0.2
_KIB = 1 if sys.platform == "darwin" else 1024

OnProgress = Callable[[int, int], None]
"""Called with the bytes of input consumed so far, and the memory at its highest, bytes, of all readers."""


class Meter:
    """Counts the bytes that one reader consumed; travels to its worker.

    Args:
        folder: the reader's spool folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE_NAME
        self._count = 0
        self._written = -_STEP_BYTES

    def __call__(self, count: int) -> None:
        """Note that `count` more bytes were consumed."""
        self._count += count
        if self._count - self._written >= _STEP_BYTES:
            self._written = self._count
            self._path.parent.mkdir(exist_ok=True)
            self._path.write_text(f"{self._count} {os.getpid()} {_peak_memory_bytes()}", encoding="ascii")


def _peak_memory_bytes() -> int:
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB


def read_meters(spool: Path) -> tuple[int, int]:
    """Bytes consumed by all readers that spool below a folder, and the memory of their processes, bytes."""
    consumed, memory = 0, {os.getpid(): _peak_memory_bytes()}
    for file in spool.glob(f"*/{_FILE_NAME}"):
        try:
            count, pid, peak = map(int, file.read_text(encoding="ascii").split())
        except (OSError, ValueError):
            continue  # being written just now
        consumed += count
        memory[pid] = max(peak, memory.get(pid, 0))
    return consumed, sum(memory.values())


@contextmanager
def watched(spool: Path, on_progress: OnProgress | None) -> Iterator[None]:
    """Report the progress of all readers while the block runs, several times a second."""
    if on_progress is None:
        yield
        return
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_PAUSE_S):
            on_progress(*read_meters(spool))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
