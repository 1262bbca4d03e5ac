"""Signals that ask the process to end. In: work not to be broken off. Out: it is done, then the signal has effect.

Idea: while the work is done, other handlers stand in the place of the usual ones and only note what came.
Not handled: SIGKILL. Signals reach the main thread alone; in others there is nothing to hold back.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def undisturbed() -> Iterator[None]:
    """Have signals that end the process take effect after what is inside."""
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    is_reached = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in ENDING_SIGNALS if is_reached}
    heeded = {number: handler for number, handler in before.items() if handler not in (None, signal.SIG_IGN)}
    try:
        for number in heeded:
            signal.signal(number, note)
        yield
    finally:
        for number, handler in heeded.items():
            signal.signal(number, handler)
        for number in came[:1]:
            signal.raise_signal(number)
