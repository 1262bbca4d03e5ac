"""From the queue to the file. In: rows, names, clock readings. Out: frames, appended once a second by an own thread.

Idea: a flush writes whole frames and hands them to the operating system, so that what a killed process had flushed is
readable; nothing is buffered, which a forked process would write once more. Rows are taken some at a time, so that the
interpreter is never held for long. Whatever fails ends the recording with a warning, never the training.
Not handled: a machine that loses power.
"""

import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import BinaryIO

from traceforge.live.clock import Anchor, read_anchor
from traceforge.live.layout import MAGIC, Row, facts_frame, rows_frame
from traceforge.live.names import Names
from traceforge.live.queue import RowQueue

FLUSH_S = 1.0
LONGEST_END_S = 10.0
"""A driver that does not answer must not keep the training program from its end."""
_AT_ONCE = 256
_FRAME_ROWS = 8_192


class LogWriter:
    """Writes a file until it is closed.

    Args:
        file: opened for appending bytes, without a buffer.
        opening: facts of the first frame.
        closing: facts of the last one, asked when it is written.
        anchor: reads the clocks.

    Attributes:
        before_flush: called by the thread once a second, before it writes.
    """

    def __init__(
        self,
        file: BinaryIO,
        opening: Mapping[str, object],
        closing: Callable[[], Mapping[str, object]] = dict,
        anchor: Callable[[], Anchor] = read_anchor,
    ) -> None:
        self.queue = RowQueue()
        self.names = Names()
        self._file = file
        self._closing = closing
        self._told: list[Mapping[str, object]] = []
        self.before_flush: list[Callable[[], None]] = []
        self._anchor = anchor
        self._ending = threading.Event()
        self._writing = threading.Lock()
        self._process = os.getpid()
        self._thread: threading.Thread | None = None
        self._write(lambda: MAGIC + facts_frame({**opening, "clock": [self._anchor()]}))

    def start(self) -> None:
        """Flush once a second from now on."""
        self._thread = threading.Thread(target=self._run, name="traceforge.live", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.wait(FLUSH_S):
            for act in self.before_flush:
                act()
            self.flush()

    def tell(self, facts: Mapping[str, object]) -> None:
        """Facts that are known only now; they are written with the next rows."""
        self._told.append(facts)

    def flush(self) -> None:
        """Write all that is waiting."""
        with self._writing:
            self._write_waiting()

    def _write_waiting(self) -> None:
        while rows := self._waiting():
            self._write(partial(self._frames, rows))

    def _frames(self, rows: Sequence[Row]) -> bytes:
        new = self.names.take_new()
        facts: dict[str, object] = {"clock": [self._anchor()], "dropped": self.queue.dropped}
        if new:
            facts["names"] = new
        while self._told:
            facts.update(self._told.pop(0))
        return facts_frame(facts) + rows_frame(rows)

    def _waiting(self) -> list[Row]:
        rows: list[Row] = []
        while len(rows) < _FRAME_ROWS and (some := self.queue.take(_AT_ONCE)):
            rows += some
            time.sleep(0)
        return rows

    def close(self) -> None:
        """Write what is left and say that nothing is missing; does nothing in a forked process."""
        if self._file.closed or os.getpid() != self._process:
            return
        self._ending.set()
        if self._thread is not None:
            self._thread.join(LONGEST_END_S)
        self.flush()
        self._write(lambda: facts_frame({**self._closing(), "dropped": self.queue.dropped, "ended": True}))
        self._file.close()

    def _write(self, frames: Callable[[], bytes]) -> None:
        if self._file.closed:
            return
        try:
            rest = memoryview(frames())
            while rest:
                rest = rest[self._file.write(rest) :]
        except Exception as error:  # noqa: BLE001  # whatever it is, the training program must go on
            with suppress(OSError):
                self._file.close()
            warnings.warn(f"traceforge.live stops recording: {error}", RuntimeWarning, stacklevel=2)
