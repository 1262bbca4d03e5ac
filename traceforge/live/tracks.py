"""What one process did when. In: begins and ends, as they happen. Out: rows in the queue; waits for the pacing hook.

Idea: all that costs time happens when a name is new; afterwards a stretch is two readings of a clock and one append.
Stretches are context managers, so that they also end where the program raises.
Not handled: two threads that begin collectives of one group at once, which no group allows.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import count
from threading import get_ident
from types import TracebackType
from typing import NamedTuple, Self

from traceforge.live.clock import Clock
from traceforge.live.layout import Row, RowKind
from traceforge.live.names import Key, Names
from traceforge.live.queue import RowQueue

WORLD = "world"
"""Name of the group of all ranks, where a program names none."""
_STEP, _PHASE, _COLLECTIVE = int(RowKind.STEP), int(RowKind.PHASE), int(RowKind.COLLECTIVE)


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


class KnownCollective(NamedTuple):
    """What recurs in a collective: the number of its name, and what counts the collectives of its group."""

    name: int
    next_sequence: Callable[[], int]
    on_device: bool = False


class OpenCollective:
    """A rank's part in one collective: it begins when the rank calls it, and ends when the rank has its result."""

    __slots__ = ("_name", "_returned_ns", "_sequence", "_start_ns", "_thread", "_tracks")

    def __init__(
        self, tracks: "Tracks", name: int, sequence: int, start_ns: int, thread: int, returned_ns: int = -1
    ) -> None:
        self._tracks = tracks
        self._name = name
        self._sequence = sequence
        self._start_ns = start_ns
        self._thread = thread
        self._returned_ns = returned_ns

    def returned(self) -> None:
        """The call is back on its thread, and the result comes later: call `end` then."""
        self._returned_ns = self._tracks.clock_ns()

    def end(self, _result: object = None) -> None:
        """The result is there; a future may call this."""
        end_ns = self._tracks.clock_ns()
        returned_ns = end_ns if self._returned_ns < 0 else self._returned_ns
        self._tracks.add_collective(self._name, self._sequence, self._start_ns, returned_ns, end_ns, self._thread)

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
        step: number of the step that is under way, from 0.
        threads: their numbers by identifier: 0 the one that began the recording.
        met: number of the name and duration of each collective since the last `take_met`; None where nobody asks.
    """

    def __init__(self, queue: RowQueue, names: Names, clock_ns: Clock, *, world_size: int | None = None) -> None:
        self.clock_ns = clock_ns
        self.met: list[tuple[int, int]] | None = None
        self._queue = queue
        self._names = names
        self.world_size = world_size
        self._sequences: dict[object, Callable[[], int]] = {}
        self.threads: defaultdict[int, int] = defaultdict(count(1).__next__, {get_ident(): 0})
        self._step_start_ns = clock_ns()
        self.step = 0

    def end_step(self) -> tuple[int, int]:
        """End a step and begin the next; when it began and ended."""
        start, end = self._step_start_ns, self.clock_ns()
        self._queue.put((_STEP, 0, start, end, self.step, 0, 0))
        self._step_start_ns = end
        self.step += 1
        return start, end

    def name(self, key: Key) -> int:
        """The number of what recurs."""
        return self._names.number(key)

    def phase(self, name: str) -> NamedStretch:
        """A stretch of this thread that has a name."""
        return NamedStretch(self, self._names.number(("phase", name)))

    def end_phase(self, name: int, start_ns: int) -> None:
        """A stretch ends now."""
        end_ns = self.clock_ns()
        self._queue.put((_PHASE, name, start_ns, end_ns, self.threads[get_ident()], 0, 0))

    def add_phase(self, name: str, start_ns: int, end_ns: int, thread: int | None = None) -> None:
        """A stretch that is known with both ends."""
        number = self._names.number(("phase", name))
        own = self.threads[get_ident() if thread is None else thread]
        self._queue.put((_PHASE, number, start_ns, end_ns, own, 0, 0))

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
        return self.begin(self.kind(op, group, members, sent, received, kind, peer))

    def kind(self, op: str, group: str, *rest: object) -> KnownCollective:
        """What collectives of one key have in common: members, elements sent and received, their type, and the peer.

        The messages of two ranks are counted apart, for the others of the group do not see them.
        """
        counted = group if rest[-1] is None else (group, op, rest[-1])
        number = self._names.number(("collective", op, group, *rest))
        return KnownCollective(number, self._sequences.setdefault(counted, count().__next__))

    def begin(self, kind: KnownCollective) -> OpenCollective:
        """Begin a collective of a kind that is known."""
        name, next_sequence, _ = kind
        return OpenCollective(self, name, next_sequence(), self.clock_ns(), self.threads[get_ident()])

    def add_collective(
        self, name: int, sequence: int, start_ns: int, returned_ns: int, end_ns: int, thread: int
    ) -> None:
        """A collective that has its result, and whose call was back at `returned_ns`; `thread` is a number of ours."""
        self._queue.put((_COLLECTIVE, name, start_ns, end_ns, sequence, returned_ns - start_ns, thread))
        if self.met is not None:
            self.met.append((name, end_ns - start_ns))

    def take_met(self) -> list[tuple[int, int]]:
        """Collectives since the last call; from the first call on they are kept."""
        met, self.met = self.met or [], []
        return met

    def add(self, row: Row) -> None:
        """A row that is complete."""
        self._queue.put(row)
