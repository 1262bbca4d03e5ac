"""A recorded run as events that can be moved. In: Kineto traces of all ranks. Out: the same traces, with later events.

Idea: a rank's time is stretched at points. Whatever starts at or after a point moves by what is inserted there, on all
threads and streams; whatever is under way gets longer. Collectives of all ranks are the k-th of their name on each
rank. Handled are the layouts of PyTorch 1.8 to 2.13: an object or a bare list, microseconds whole or with decimals.
Not handled: ranks in groups of their own, clocks of several machines.
"""

import gzip
import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

Lane = tuple[str, str]

# Devices of one machine tell the time this differently.
_CLOCKS_DIFFER_NS = 1_000_000


@dataclass(slots=True)
class Event:
    """A timed event, ns on the recording's clock; `moved` are its new bounds, where it does not follow its rank."""

    raw: dict[str, Any]
    start_ns: int
    end_ns: int
    moved: tuple[int, int] | None = None

    @property
    def lane(self) -> Lane:
        """Process and thread, or device and stream."""
        return str(self.raw.get("pid")), str(self.raw.get("tid"))

    @property
    def name(self) -> str:
        """As recorded."""
        return str(self.raw.get("name", ""))

    @property
    def category(self) -> str:
        """In small letters, as newer versions write it."""
        return str(self.raw.get("cat", "")).lower()

    @property
    def is_communication(self) -> bool:
        """Whether it lasts from a rank's arrival at a collective to its end there."""
        if self.category == "kernel":
            return self.name.startswith("nccl")
        return self.category == "user_annotation" and self.name.startswith("gloo:")


@dataclass
class RankRecording:
    """One file.

    Attributes:
        document: the JSON around the events.
        events: timed ones, in the order of the file.
        inserted: points, ns, in order.
        later: by how much what starts at each of them, or after it, has moved, ns.
    """

    rank: int
    name: str
    host: str | None
    document: Any
    events: list[Event]
    inserted: list[int] = field(default_factory=list)
    later: list[int] = field(default_factory=list)

    def insert(self, at_ns: int, duration_ns: int) -> None:
        """Stretch the rank's time at a point; a negative duration shrinks what lies before it."""
        place = bisect_right(self.inserted, at_ns)
        self.inserted.insert(place, at_ns)
        self.later.insert(place, self.later[place - 1] if place else 0)
        self.later[place:] = [ns + duration_ns for ns in self.later[place:]]

    def moved_ns(self, at_ns: int, *, is_end: bool = False) -> int:
        """A time after all insertions; what starts at a point moves, what ends there does not."""
        place = bisect_left(self.inserted, at_ns) if is_end else bisect_right(self.inserted, at_ns)
        return at_ns + (self.later[place - 1] if place else 0)

    @cached_property
    def steps(self) -> list[Event]:
        """Iterations, in order."""
        found = [e for e in self.events if e.name.startswith("ProfilerStep") and e.category == "user_annotation"]
        return sorted(found, key=lambda event: event.start_ns)

    @cached_property
    def collectives(self) -> list[Event]:
        """In order of arrival."""
        return sorted((e for e in self.events if e.is_communication), key=lambda event: event.start_ns)

    @cached_property
    def work(self) -> list[Event]:
        """What the rank does itself: kernels and copies of devices; without any, operations of hosts."""
        device = [e for e in self.events if e.category in ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")]
        chosen = device or [e for e in self.events if e.category in ("cpu_op", "operator")]
        return [event for event in chosen if not event.is_communication]

    @cached_property
    def gaps(self) -> list[tuple[int, int]]:
        """Stretches in which the rank does no work of its own, in order."""
        found: list[tuple[int, int]] = []
        until: int | None = None
        for event in sorted(self.work, key=lambda event: event.start_ns):
            if until is not None and event.start_ns > until:
                found.append((until, event.start_ns))
            until = event.end_ns if until is None else max(until, event.end_ns)
        return found

    def text(self) -> str:
        """The file, with all events where they are now."""
        communication = {(e.lane, e.start_ns): e.moved[0] for e in self.events if e.moved is not None}
        for event in self.events:
            start = event.moved[0] if event.moved else self.moved_ns(event.start_ns)
            end = event.moved[1] if event.moved else max(start, self.moved_ns(event.end_ns, is_end=True))
            if "dur" not in event.raw:
                # A flow binds to the event that starts where it points.
                start = communication.get((event.lane, event.start_ns), start)
            event.raw["ts"] = _as_written(event.raw["ts"], start)
            if "dur" in event.raw:
                event.raw["dur"] = _as_written(event.raw["dur"], end - start)
        return json.dumps(self.document, default=float)


def read(folder: Path) -> list[RankRecording]:
    """All ranks of a recording, by rank."""
    files = sorted(path for path in folder.iterdir() if path.name.endswith((".pt.trace.json.gz", ".pt.trace.json")))
    return sorted(map(_read, files), key=lambda recording: recording.rank)


def _read(path: Path) -> RankRecording:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    document = json.loads(data, parse_float=Decimal)
    raw = document["traceEvents"] if isinstance(document, dict) else document
    head = document if isinstance(document, dict) else {}
    rank = int(head.get("distributedInfo", {}).get("rank", 0))
    events = [
        Event(one, _ns(one["ts"]), _ns(one["ts"]) + _ns(one.get("dur", 0)))
        for one in raw
        if one.get("ph") != "M" and _ns(one.get("ts", 0)) > 0
    ]
    return RankRecording(rank, path.name.removesuffix(".gz"), head.get("host_name"), document, events)


def matched(ranks: Sequence[RankRecording]) -> list[list[Event]]:
    """Each collective's event on every rank, by last arrival.

    They are counted from the last one of their name: profilers of all ranks end with the same step, and begin when
    they are ready.

    Raises:
        ValueError: ranks do not meet in time.
    """
    by_name: list[dict[str, list[Event]]] = []
    for recording in ranks:
        own = defaultdict(list)
        for event in recording.collectives:
            own[event.name].append(event)
        by_name.append(own)
    meetings = []
    for name in by_name[0]:
        shared = min(len(own[name]) for own in by_name)
        meetings += [list(members) for members in zip(*(own[name][-shared:] for own in by_name), strict=True) if shared]
    for members in meetings:
        if max(event.start_ns for event in members) > min(event.end_ns for event in members) + _CLOCKS_DIFFER_NS:
            raise ValueError(f"{members[0].name} does not meet on all ranks")
    return sorted(meetings, key=lambda members: max(event.start_ns for event in members))


def _ns(microseconds: Decimal | int | str) -> int:
    return int(Decimal(microseconds) * 1000)


def _as_written(before: Any, time_ns: int) -> Any:
    """Microseconds, whole where they were whole."""
    return time_ns // 1000 if isinstance(before, int) and time_ns % 1000 == 0 else Decimal(time_ns) / 1000
