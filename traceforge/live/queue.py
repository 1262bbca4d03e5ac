"""Rows on their way from the training threads to the file. In: tuples. Out: the same, some at a time.

Idea: appending to a deque is one atomic step of the interpreter, so that the training thread takes no lock. A full
queue drops what comes and counts it. Not handled: several readers.
"""

from collections import deque

from traceforge.live.layout import Row

CAPACITY = 65_536
"""Rows that wait at most: some 20 MB."""


class RowQueue:
    """A bounded queue.

    Attributes:
        dropped: rows that found it full.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._rows: deque[Row] = deque()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, row: Row) -> None:
        """Append a row, or count it where there is no room."""
        if len(self._rows) < self._capacity:
            self._rows.append(row)
        else:
            self.dropped += 1

    def take(self, most: int) -> list[Row]:
        """The next rows, at most so many."""
        rows = self._rows
        return [rows.popleft() for _ in range(min(most, len(rows)))]
