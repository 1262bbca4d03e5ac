"""The process of the command line. In: signals, and streams that may be closed or know few characters. Out: order.

Idea: a signal that asks the process to end becomes an exception, so that everything that is open is closed and removed
as after an error; readers in other processes are killed first, so that nothing waits for them.
Not handled: SIGKILL, after which readers end by themselves (`store.workers`) and the next command sweeps what is left.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn, TextIO, cast

_STANDARD_STREAMS = 3


_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def prepared() -> Iterator[None]:
    """Have the process ready for whatever it is started with and whatever signals end it."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # Where a terminal cannot show a character, an escape is better than an error.
            stream.reconfigure(errors="backslashreplace")
    before = {number: signal.getsignal(number) for number in _SIGNALS}
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


def _nothing(mode: str) -> TextIO:
    return cast(TextIO, Path(os.devnull).open(mode, encoding="utf-8"))


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    import multiprocessing

    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)  # nothing shall disturb the tidying up
    for reader in multiprocessing.active_children():
        reader.kill()
    print(f"ended by {signal.Signals(number).name}; files that were read whole are kept", file=sys.stderr)
    raise SystemExit(128 + number)
