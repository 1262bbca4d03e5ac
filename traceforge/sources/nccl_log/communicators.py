"""Which communicator a record is about. In: records of a process and thread. Out: handles, and raw.nccl_communicator.

Idea: a handle is one rank's communicator object from its first record to its end; its id is the number of that record,
so it does not depend on how the file is read. Records that print no pointer belong to the init that runs in their
thread. Until 2.17 there is no START line: there a thread's first ring or tree opens a handle, and COMPLETE names it.
Memory is bounded: records of communicators beyond `MOST_COMMUNICATORS` are kept without theirs.
Not handled: which communicator a connection made after init belongs to, where several fit (left NULL).
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

MOST_COMMUNICATORS = 131_072

Key = tuple[int | None, int]
"""Process and pointer."""

Segment = tuple[Key, int]
"""A life of a pointer: how many entries of its history precede."""


@dataclass(slots=True, eq=False)
class LoggedCommunicator:
    """One rank's side of a communicator.

    Attributes:
        handle_id: number of its first record.
        process_id: process that holds it.
        facts: columns of raw.nccl_communicator known so far.
        is_complete: whether its init ended.
    """

    handle_id: int
    process_id: int | None
    facts: dict[str, object] = field(default_factory=dict)
    is_complete: bool = False

    def learn(self, facts: Mapping[str, object]) -> None:
        """Add what is not known yet."""
        for name, value in facts.items():
            if value is not None:
                self.facts.setdefault(name, value)

    def end_init(self, record_id: int) -> None:
        """Take note that its init ended, unless that is known."""
        self.learn({"complete_record_id": record_id})
        self.is_complete = True

    def row(self) -> dict[str, object]:
        """Its row in raw.nccl_communicator."""
        return {"handle_id": self.handle_id, "process_id": self.process_id, **self.facts}

    def fits(self, facts: Mapping[str, object]) -> bool:
        """Whether its rank and number of ranks do not contradict some facts."""
        return all(
            facts.get(name) is None or self.facts.get(name, facts[name]) == facts[name]
            for name in ("rank", "rank_count")
        )


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """Where a record stands: its number, process and thread."""

    record_id: int
    process_id: int | None
    tid: int | None


class Communicators:
    """The handles of one file.

    Attributes:
        history: by process and pointer, from which record on it means which handle; None after its end.
        left_out_count: how often something was said of a communicator beyond those that are kept.
    """

    def __init__(self) -> None:
        self.history: dict[Key, list[tuple[int, int | None]]] = {}
        self._open: dict[Key, LoggedCommunicator] = {}
        self._current: dict[tuple[int | None, int | None], LoggedCommunicator] = {}
        self._of_process: dict[int | None, dict[LoggedCommunicator, None]] = {}
        self._count = 0
        self.left_out_count = 0
        self._announcing: set[int | None] = set()
        self._ended: list[LoggedCommunicator] = []
        self._orphans: list[tuple[Segment, RecordPlace, dict[str, object]]] = []

    def start(self, place: RecordPlace, pointer: int | None, facts: Mapping[str, object]) -> None:
        """An init begins."""
        self._announcing.add(place.process_id)
        if (handle := self._new(place, pointer)) is not None:
            handle.learn({**facts, "start_record_id": place.record_id})

    def complete(self, place: RecordPlace, pointer: int | None, facts: Mapping[str, object]) -> None:
        """An init ends."""
        handle = self._open.get((place.process_id, pointer)) if pointer is not None else None
        if handle is None or handle.is_complete:
            handle = self._unnamed(place, pointer) or self._new(place, pointer)
        if handle is None:
            return
        handle.learn(facts)
        handle.end_init(place.record_id)

    def close(self, place: RecordPlace, pointer: int | None, reason: str, facts: Mapping[str, object]) -> None:
        """A communicator is destroyed, aborted or revoked."""
        ending = {**facts, "close_record_id": place.record_id, "close_reason": reason}
        handle: LoggedCommunicator | None
        if pointer is None:
            handle = self._new(place, None)
        elif (place.process_id, pointer) in self._open:
            handle = self._open[place.process_id, pointer]
        else:
            if len(self._orphans) < MOST_COMMUNICATORS:
                self._orphans.append((self.segment((place.process_id, pointer), place.record_id), place, ending))
            else:
                self.left_out_count += 1
            return
        if handle is not None:
            handle.learn(ending)
            self._end(handle, place.record_id)

    def describe(
        self, place: RecordPlace, pointer: int | None, facts: Mapping[str, object]
    ) -> LoggedCommunicator | None:
        """A record says something of a communicator; returns its handle where it is known."""
        handle: LoggedCommunicator | None
        if pointer is not None:
            handle = self._open.get((place.process_id, pointer)) or self._new(place, pointer)
        else:
            handle = self.during_init(place, opens=False) or self._latest(place, facts)
        if handle is not None:
            handle.learn(facts)
        return handle

    def during_init(self, place: RecordPlace, *, opens: bool) -> LoggedCommunicator | None:
        """The handle whose init runs in this thread.

        Args:
            place: where the record stands.
            opens: whether such a record occurs in inits only, so that it may begin one where none is announced.
        """
        current = self._current.get((place.process_id, place.tid))
        if current is not None and not current.is_complete:
            return current
        if opens and place.process_id is not None and place.process_id not in self._announcing:
            return self._new(place, None)
        return None

    def at(self, place: RecordPlace, pointer: int) -> LoggedCommunicator | None:
        """The living handle of a pointer."""
        return self._open.get((place.process_id, pointer))

    def only(self, process_id: int | None, rank: int, largest_rank: int) -> LoggedCommunicator | None:
        """The handle of a rank in a process, where just one has so many ranks."""
        fitting = [
            handle
            for handle in self._of_process.get(process_id, ())
            if handle.facts.get("rank") == rank and _rank_count(handle) > largest_rank
        ]
        return fitting[0] if len(fitting) == 1 else None

    def segment(self, key: Key, record_id: int) -> Segment:
        """Which life of a pointer a record falls into."""
        return key, bisect_right(self.history.get(key, []), record_id, key=lambda life: life[0])

    def living(self, segment: Segment) -> int | None:
        """The announced handle of a life of a pointer; None where no record announced one."""
        key, number = segment
        return self.history[key][number - 1][1] if number else None

    def take_ended(self) -> Iterator[LoggedCommunicator]:
        """Handles about which no more will be said; each once."""
        ended, self._ended = self._ended, []
        yield from ended

    def take_rest(self, implied: Mapping[Segment, LoggedCommunicator]) -> Iterator[LoggedCommunicator]:
        """All other handles, at the end of the file.

        Args:
            implied: handles known only from calls, by life of their pointer; what was said at their end is added.
        """
        yield from self.take_ended()
        for handles in self._of_process.values():
            yield from handles
        for segment, place, ending in self._orphans:
            handle = implied.get(segment) or LoggedCommunicator(
                place.record_id, place.process_id, {"comm_pointer": segment[0][1]}
            )
            handle.learn(ending)
            if segment not in implied:
                yield handle
        yield from implied.values()

    def _new(self, place: RecordPlace, pointer: int | None) -> LoggedCommunicator | None:
        """A handle that begins; None where there are too many already."""
        if self._count >= MOST_COMMUNICATORS:
            self.left_out_count += 1
            self._current.pop((place.process_id, place.tid), None)
            return None
        self._count += 1
        handle = LoggedCommunicator(place.record_id, place.process_id)
        self._current[place.process_id, place.tid] = handle
        self._of_process.setdefault(place.process_id, {})[handle] = None
        self._name(handle, place.record_id, pointer)
        return handle

    def _unnamed(self, place: RecordPlace, pointer: int | None) -> LoggedCommunicator | None:
        """The handle of this thread's init, which no record named so far; it is named now."""
        current = self._current.get((place.process_id, place.tid))
        if current is None or current.is_complete or "comm_pointer" in current.facts:
            return None
        self._name(current, place.record_id, pointer)
        return current

    def _name(self, handle: LoggedCommunicator, record_id: int, pointer: int | None) -> None:
        if pointer is None:
            return
        key = (handle.process_id, pointer)
        if key in self._open:
            self._open[key].learn({"close_reason": "reused"})
            self._retire(self._open[key])
        handle.facts["comm_pointer"] = pointer
        self._open[key] = handle
        self.history.setdefault(key, []).append((record_id, handle.handle_id))

    def _end(self, handle: LoggedCommunicator, record_id: int) -> None:
        pointer = handle.facts.get("comm_pointer")
        if isinstance(pointer, int):
            del self._open[handle.process_id, pointer]
            self.history[handle.process_id, pointer].append((record_id + 1, None))
        self._retire(handle)

    def _retire(self, handle: LoggedCommunicator) -> None:
        handle.is_complete = True
        del self._of_process[handle.process_id][handle]
        self._ended.append(handle)

    def _latest(self, place: RecordPlace, facts: Mapping[str, object]) -> LoggedCommunicator | None:
        current = self._current.get((place.process_id, place.tid))
        return current if current is not None and current.fits(facts) else None


def _rank_count(handle: LoggedCommunicator) -> int:
    count = handle.facts.get("rank_count")
    return count if isinstance(count, int) else 0
