"""What one process did when. In: begins and ends, as they happen. Out: rows in the queue; waits for the pacing hook.

Idea: all that costs time happens when a name is new; afterwards a stretch is two readings of a clock and one append.
Stretches are context managers, so that they also end where the program raises.
Not handled: two threads that begin collectives of one group at once, which no group allows.
"""

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from traceforge.live.clock import Clock
from traceforge.live.layout import Row, RowKind
from traceforge.live.names import Key, Names
from traceforge.live.queue import RowQueue

WORLD = "world"
"""Name of the group of all ranks, where a program names none."""


class NamedStretch:
    """A named stretch of one thread."""

    __slots__ = ("_name", "_start_ns", "_tracks")

    def __init__(self, tracks: "Tracks", name: int) -> None:
        self._tracks = tracks
        self._name = name

    def __enter__(self) -> Self:
        self._start_ns = self._tracks.clock_ns()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._tracks.end_phase(self._name, self._start_ns)


class OpenCollective:
    """A rank's part in one collective: it begins when the rank calls it, and ends when the rank has its result."""

    __slots__ = ("_name", "_returned_ns", "_sequence", "_start_ns", "_thread", "_tracks")

    def __init__(self, tracks: "Tracks", name: int, sequence: int) -> None:
        self._tracks = tracks
        self._name = name
        self._sequence = sequence
        self._returned_ns = -1
        self._thread = tracks.thread()
        self._start_ns = tracks.clock_ns()

    def returned(self) -> None:
        """The call is back on its thread, and the result comes later: call `end` then."""
        self._returned_ns = self._tracks.clock_ns()

    def end(self) -> None:
        """The result is there."""
        self._tracks.end_collective(self._name, self._sequence, self._start_ns, self._returned_ns, self._thread)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.end()


class Tracks:
    """Rows of one process.

    Attributes:
        clock_ns: monotonic.
        world_size: number of ranks; None where nobody says it.
        met: number of the name and duration of each collective since the last `take_met`; None where nobody asks.
    """

    def __init__(self, queue: RowQueue, names: Names, clock_ns: Clock, *, world_size: int | None = None) -> None:
        self.clock_ns = clock_ns
        self.met: list[tuple[int, int]] | None = None
        self._queue = queue
        self._names = names
        self.world_size = world_size
        self._sequences: dict[str, int] = {}
        self._threads = {threading.get_ident(): 0}
        self._step_start_ns = clock_ns()
        self._step = 0

    @property
    def step(self) -> int:
        """Number of the step that is under way, from 0."""
        return self._step

    def end_step(self) -> tuple[int, int]:
        """End a step and begin the next; when it began and ended."""
        start, end = self._step_start_ns, self.clock_ns()
        self._queue.put((RowKind.STEP, 0, start, end, self._step, 0, 0))
        self._step_start_ns = end
        self._step += 1
        return start, end

    def name(self, key: Key) -> int:
        """The number of what recurs."""
        return self._names.number(key)

    def phase(self, name: str) -> NamedStretch:
        """A stretch of this thread that has a name."""
        return NamedStretch(self, self._names.number(("phase", name)))

    def end_phase(self, name: int, start_ns: int) -> None:
        """A stretch ends now."""
        self._queue.put((RowKind.PHASE, name, start_ns, self.clock_ns(), self.thread(), 0, 0))

    def add_phase(self, name: str, start_ns: int, end_ns: int, thread: int | None = None) -> None:
        """A stretch that is known with both ends."""
        number = self._names.number(("phase", name))
        self._queue.put((RowKind.PHASE, number, start_ns, end_ns, self.thread(thread), 0, 0))

    def meeting(
        self,
        op: str,
        group: str = WORLD,
        *,
        ranks: Sequence[int] | None = None,
        size_bytes: int | None = None,
        elements: tuple[int | None, int | None] | None = None,
        dtype: str | None = None,
        peer: int | None = None,
    ) -> OpenCollective:
        """Begin a collective now.

        Args:
            op: such as `all_reduce`.
            group: name of the group, the same on all its ranks.
            ranks: its members; none where it is all ranks.
            size_bytes: of the tensor, where `elements` are not stated.
            elements: sent and received.
            dtype: of an element, as PyTorch's profiler writes it.
            peer: global rank at the other end of a send or receive.
        """
        sent, received, kind = (*elements, dtype) if elements is not None else (size_bytes, size_bytes, "byte")
        members = None if ranks is None else tuple(ranks)
        return self.begin(self._names.number(("collective", op, group, members, sent, received, kind, peer)), group)

    def begin(self, name: int, group: str) -> OpenCollective:
        """Begin a collective whose kind is known by its number."""
        sequence = self._sequences.get(group, 0)
        self._sequences[group] = sequence + 1
        return OpenCollective(self, name, sequence)

    def end_collective(self, name: int, sequence: int, start_ns: int, returned_ns: int, thread: int) -> None:
        """A collective ends now; -1 where its call returns only now."""
        end = self.clock_ns()
        held = (end if returned_ns < 0 else returned_ns) - start_ns
        self._queue.put((RowKind.COLLECTIVE, name, start_ns, end, sequence, held, thread))
        if self.met is not None:
            self.met.append((name, end - start_ns))

    def take_met(self) -> list[tuple[int, int]]:
        """Collectives since the last call; from the first call on they are kept."""
        met, self.met = self.met or [], []
        return met

    def add(self, row: Row) -> None:
        """A row that is complete."""
        self._queue.put(row)

    def thread(self, identifier: int | None = None) -> int:
        """Number of a thread: 0 the one that began the recording."""
        key = threading.get_ident() if identifier is None else identifier
        return self._threads.setdefault(key, len(self._threads))
