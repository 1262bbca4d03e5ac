"""What reading one file may cost. In: limits of memory and CPU time. Out: an error of that file once it exceeds them.

Idea: a thread looks at the process some times a second and raises in the thread that reads, wherever that is; so a
reader needs no checks of its own, and an input that its author made to be endless ends as an issue of its file. Where
the reader is a process of its own and does not come back from a library, that process ends, which costs this file alone
(see `spool`). Not handled: a library that does not come back in the process of the command itself; systems without
/proc, where memory is not limited.
"""

import contextlib
import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from traceforge.errors import InputUnusableError
from traceforge.records import ReadLimits

_PAUSE_S = 0.1
_PATIENCE_S = 10.0
_MIB = 1024 * 1024
_STATM = Path("/proc/self/statm")
_EXIT_CODE = 70
_CHANCES = 100


class _LimitReached(BaseException):
    """Raised inside a reader, none of whose `except Exception` may catch it."""


@contextmanager
def within(limits: ReadLimits, path: Path) -> Iterator[None]:
    """Read a file inside; it ends at the limits.

    Raises:
        InputUnusableError: a limit is reached.
    """
    watch = _Watch(limits, threading.get_ident())
    thread = threading.Thread(target=watch.run, daemon=True)
    thread.start()
    try:
        yield
    except _LimitReached:
        raise _error(watch.reached or "it reached a limit", path) from None
    finally:
        # One that was raised just now and not seen yet must not strike what follows: it strikes in this loop. To take
        # it back by raising nothing leaves CPython 3.11 looking for it for good, which slows all that follows and never
        # ends under a debugger.
        with contextlib.suppress(_LimitReached):
            watch.stop()
            thread.join()
        with contextlib.suppress(_LimitReached):
            for _ in range(_CHANCES):
                pass


class _Watch:
    """Looks at the process until it is stopped or a limit is reached.

    Attributes:
        reader: identifier of the thread that reads.
        reached: which limit, in words; None as long as there is none.
    """

    def __init__(self, limits: ReadLimits, reader: int) -> None:
        self._limits = limits
        self._began_s = _cpu_seconds(reader)
        self._began_bytes = _memory_bytes()
        self._lock = threading.Lock()
        self._done = threading.Event()
        self.reader = reader
        self.reached: str | None = None

    def run(self, end_process: Callable[[int], None] = os._exit) -> None:
        """Watch; raises in the reader, and again while that does not end it."""
        reached_at: float | None = None
        while not self._done.wait(_PAUSE_S):
            self.reached = self.reached or self._limit_reached()
            if self.reached is None:
                continue
            reached_at = reached_at or time.monotonic()
            with self._lock:
                if not self._done.is_set():
                    _raise_in(self.reader, _LimitReached)
            if self._limits.may_end_process and time.monotonic() - reached_at > _PATIENCE_S:
                end_process(_EXIT_CODE)

    def stop(self) -> None:
        """End the watch; nothing is raised afterwards."""
        with self._lock:
            self._done.set()

    def _limit_reached(self) -> str | None:
        seconds = _cpu_seconds(self.reader) - self._began_s
        if seconds > self._limits.cpu_seconds:
            return f"reading it took more than {self._limits.cpu_seconds:g} s of CPU time"
        if _memory_bytes() - self._began_bytes > self._limits.memory_bytes:
            return f"reading it took more than {self._limits.memory_bytes / _MIB:,.0f} MiB of memory"
        return None


def _raise_in(thread: int, kind: type[BaseException]) -> None:
    """Have a thread raise once it runs Python again."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))


def _cpu_seconds(thread: int) -> float:
    """What a living thread used; the whole process where systems do not say."""
    if hasattr(time, "pthread_getcpuclockid"):
        return time.clock_gettime(time.pthread_getcpuclockid(thread))
    return time.process_time()


def _memory_bytes() -> int:
    try:
        return int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _error(what: str, path: Path) -> InputUnusableError:
    hint = "if the file is yours and sound, allow more: --file-seconds, --file-memory-mib"
    return InputUnusableError(f"{what}, the limit of one file", where=str(path), hint=hint)
