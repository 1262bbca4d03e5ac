"""The process of the command line. In: signals, and streams that may be closed or know few characters. Out: order.

Idea: a signal that asks the process to end becomes an exception, so that everything that is open is closed and removed
as after an error; readers in other processes are killed first, so that nothing waits for them. What has not ended
10 s later is ended at once, and the next command sweeps what it left.
Not handled: SIGKILL, after which readers end by themselves (`store.workers`) and the next command sweeps what is left.
"""

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, TextIO, cast

from traceforge.store.signals import ENDING_SIGNALS

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STANDARD_STREAMS = 3
ENDED_AT_ONCE_AFTER_S = 10.0
"""How long a process that was asked to end may tidy up."""


@contextmanager
def prepared() -> Iterator[None]:
    """Have the process ready for whatever it is started with and whatever signals end it."""
    _open_closed_streams()
    if isinstance(sys.stderr, io.TextIOWrapper) and sys.stderr is sys.__stderr__:
        sys.stderr = _forgiving(sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # Where a terminal cannot show a character, an escape is better than an error.
            stream.reconfigure(errors="backslashreplace")
    before = {number: signal.getsignal(number) for number in ENDING_SIGNALS}
    ended_by: list[int] = []

    def end(number: int, frame: FrameType | None) -> NoReturn:
        ended_by.append(number)
        _end(number, frame)

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if ended_by:
            # Of a query DuckDB says that it was interrupted, in the place of what the handler raised.
            raise SystemExit(128 + ended_by[0])


def _open_closed_streams() -> None:
    """Have descriptors 0 to 2 lead somewhere: else the next file that is opened becomes standard output."""
    for descriptor in range(_STANDARD_STREAMS):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdin is None:
        sys.stdin = _nothing("r")
    if sys.stdout is None:
        sys.stdout = _nothing("w")
    if sys.stderr is None:
        sys.stderr = _nothing("w")


class _Remarks(io.FileIO):
    """Standard error. What it does not take, as its disk is full or its reader gone, is dropped: answers need none."""

    def write(self, data: "ReadableBuffer", /) -> int:
        """See `io.FileIO.write`."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def _forgiving(stderr: TextIO) -> TextIO:
    raw = io.BufferedWriter(_Remarks(stderr.fileno(), "w", closefd=False))
    return io.TextIOWrapper(raw, encoding=stderr.encoding, line_buffering=True)


def _nothing(mode: str) -> TextIO:
    return cast(TextIO, Path(os.devnull).open(mode, encoding="utf-8"))


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    import multiprocessing

    for each in ENDING_SIGNALS:
        signal.signal(each, signal.SIG_IGN)  # nothing shall disturb the tidying up
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda *_: os._exit(128 + number))
        signal.setitimer(signal.ITIMER_REAL, ENDED_AT_ONCE_AFTER_S)
    for reader in multiprocessing.active_children():
        reader.kill()
    _say_at_once(
        f"ended by {signal.Signals(number).name}; a database named by --db keeps the files that were read whole, "
        "but none of a --part"
    )
    raise SystemExit(128 + number)


def _say_at_once(line: str) -> None:
    """Print on standard error, also where a signal came while another line was being written to it."""
    try:
        print(line, file=sys.stderr)
    except RuntimeError:  # Python's streams refuse a call from within a call
        with contextlib.suppress(OSError):
            os.write(2, f"\n{line}\n".encode())
