"""The planes of an XSpace. In: the bytes of a file. Out: lines of events with their names, times and correlation.

Idea: a plane's tables of names are walked field by field; the fields of all events of a line are then read at once
(`reading.wire`). Proto3 leaves zeros out: a missing number is 0. Field numbers: xplane.proto of OpenXLA.
Not handled: statistics other than those asked for by name; HLO modules in the metadata.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from traceforge.reading.timeline_rows import LATEST_NS
from traceforge.reading.wire import LENGTH, VARINT, Bytes, Fields, padded, read_fields, walk

Int64s = NDArray[np.int64]
_PLANES, _HOSTNAMES = 1, 4
_PLANE_NAME, _LINES, _EVENT_METADATA, _STAT_METADATA, _PLANE_STATS = 2, 3, 4, 5, 6
_LINE_NAME, _LINE_START, _EVENTS, _LINE_TITLE = 2, 3, 4, 11
_EVENT_NAME, _OFFSET, _DURATION, _EVENT_STATS, _OCCURRENCES = 1, 2, 3, 4, 5
_STAT_NAME, _STAT_UINT, _STAT_INT, _STAT_TEXT, _STAT_REFERENCE = 1, 3, 4, 5, 7
_DETAILS = frozenset(
    {"memcpy_details", "memset_details", "memalloc_details", "memfree_details", "memory_residency_details"}
)
_KEY, _VALUE = 1, 2
_ENTRY_NAME, _ENTRY_TITLE = 2, 4
_PS = 1000


@dataclass(frozen=True, slots=True)
class Line:
    """Events of one line; arrays of shape (events,).

    Attributes:
        name: such as `Stream #16(Kernel)`.
        names: of the events.
        starts_ns, ends_ns: since the start of the profile.
        correlation: what joins a launch to what it launched; 0 where not stated.
        steps: number of the training step that an event is; -1 where it is none.
        details: by place, what copies and memory events state of themselves: name of the statistic and its text.
        sums: events left out, as they stand for many and have no time.
    """

    name: str
    names: list[str]
    starts_ns: Int64s
    ends_ns: Int64s
    correlation: Int64s
    steps: Int64s
    details: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    sums: int = 0


class Plane:
    """One plane, read as far as it is asked.

    Attributes:
        name: such as `/device:GPU:0`.
        odd_starts: lines read whose start no clock shows; it counts as 0.
    """

    def __init__(self, data: bytes, buffer: Bytes, start: int, end: int) -> None:
        """Walk a plane.

        Raises:
            WireDamageError: it is no sound message.
        """
        self._data, self._buffer = data, buffer
        self.name = ""
        self.odd_starts = 0
        self._lines: list[tuple[int, int]] = []
        self._metadata: dict[int, list[tuple[int, int]]] = {_EVENT_METADATA: [], _STAT_METADATA: [], _PLANE_STATS: []}
        for number, wire, _, begin, behind in walk(data, start, end):
            if wire == LENGTH and number == _PLANE_NAME:
                self.name = _text(data[begin:behind])
            elif wire == LENGTH and number == _LINES:
                self._lines.append((begin, behind))
            elif wire == LENGTH and number in self._metadata:
                self._metadata[number].append((begin, behind))

    def line_names(self) -> list[str]:
        """Names of the lines, in their order."""
        return [self._line_head(start, end)[0] for start, end in self._lines]

    def lines(self) -> Iterator[Line]:
        """Its lines with their events.

        Raises:
            WireDamageError: one is no sound message.
        """
        for start, end in self._lines:
            name, start_ns, events = self._line_head(start, end)
            if not is_time(start_ns):
                self.odd_starts += 1
                start_ns = 0
            yield self._line(name, start_ns, np.array(events, np.int64).reshape(-1, 2))

    def stats(self) -> Mapping[str, int | str]:
        """What the plane says of itself, numbers and texts by name."""
        found: dict[str, int | str] = {}
        for start, end in self._metadata[_PLANE_STATS]:
            name = 0
            said: int | str | None = None
            for number, _, value, begin, behind in walk(self._data, start, end):
                if number == _STAT_NAME:
                    name = value
                elif number in (_STAT_UINT, _STAT_INT):
                    said = value
                elif number == _STAT_TEXT:
                    said = _text(self._data[begin:behind])
                elif number == _STAT_REFERENCE:
                    said = self._stat_names.get(value)
            if said is not None:
                found[self._stat_names.get(name, str(name))] = said
        return found

    def _line_head(self, start: int, end: int) -> tuple[str, int, list[tuple[int, int]]]:
        """Name and start of a line, and where its events are."""
        name, title, start_ns = "", "", 0
        events: list[tuple[int, int]] = []
        for number, wire, value, begin, behind in walk(self._data, start, end):
            if number == _EVENTS and wire == LENGTH:
                events.append((begin, behind))
            elif number == _LINE_START and wire == VARINT:
                start_ns = value - (value >> 63 << 64)
            elif number == _LINE_NAME and wire == LENGTH:
                name = _text(self._data[begin:behind])
            elif number == _LINE_TITLE and wire == LENGTH:
                title = _text(self._data[begin:behind])
        return title or name, start_ns, events

    def _line(self, name: str, start_ns: int, places: Int64s) -> Line:
        fields = read_fields(self._buffer, places[:, 0], places[:, 1])
        is_sum = np.zeros(len(places), np.bool_)
        is_sum[fields.owner[fields.number == _OCCURRENCES]] = True
        fields, count = fields.of_messages(~is_sum), int((~is_sum).sum())
        offset_ps, lasts_ps = _column(fields, _OFFSET, count), _column(fields, _DURATION, count)
        # Whole ns at both ends, so that what does not overlap in the file does not overlap here.
        starts = start_ns + offset_ps // _PS
        ends = start_ns + (offset_ps + lasts_ps) // _PS
        named = [self._event_names.get(number, "") for number in _column(fields, _EVENT_NAME, count).tolist()]
        chosen = (fields.number == _EVENT_STATS) & (fields.wire == LENGTH)
        owner = fields.owner[chosen]
        stats = read_fields(self._buffer, fields.start[chosen], fields.end[chosen])
        correlation = self._statistic("correlation_id", owner, stats, np.zeros(count, np.int64))
        steps = self._statistic("step_num", owner, stats, np.full(count, -1, np.int64))
        return Line(name, named, starts, ends, correlation, steps, self._details(owner, stats), int(is_sum.sum()))

    def _statistic(self, name: str, owner: Int64s, stats: Fields, found: Int64s) -> Int64s:
        """A whole number that events state; `found` holds what stands for those that do not.

        Args:
            owner: event of each statistic.
        """
        wanted = next((number for number, said in self._stat_names.items() if said == name), None)
        if wanted is None or not len(owner):
            return found
        values = np.maximum(_column(stats, _STAT_UINT, len(owner)), _column(stats, _STAT_INT, len(owner)))
        own = _column(stats, _STAT_NAME, len(owner)) == wanted
        found[owner[own]] = values[own]
        return found

    def _details(self, owner: Int64s, stats: Fields) -> dict[int, tuple[str, str]]:
        """What events of copies and of memory state of themselves, by the place of the event."""
        wanted = [number for number, said in self._stat_names.items() if said in _DETAILS]
        if not wanted or not len(owner):
            return {}
        names = _column(stats, _STAT_NAME, len(owner))
        own = np.isin(names, wanted)[stats.owner] & np.isin(stats.number, (_STAT_TEXT, _STAT_REFERENCE))
        found: dict[int, tuple[str, str]] = {}
        for place in np.flatnonzero(own).tolist():
            one = int(stats.owner[place])
            if stats.number[place] == _STAT_REFERENCE:
                text = self._stat_names.get(int(stats.value[place]), "")
            else:
                text = _text(self._data[int(stats.start[place]) : int(stats.end[place])])
            found[int(owner[one])] = (self._stat_names[int(names[one])], text)
        return found

    @cached_property
    def _event_names(self) -> dict[int, str]:
        return self._names(_EVENT_METADATA)

    @cached_property
    def _stat_names(self) -> dict[int, str]:
        return self._names(_STAT_METADATA)

    def _names(self, table: int) -> dict[int, str]:
        """The names in a map from numbers to metadata; what is shown goes before what is written."""
        found: dict[int, str] = {}
        for start, end in self._metadata[table]:
            key, name, title = 0, "", ""
            for number, _, value, begin, behind in walk(self._data, start, end):
                if number == _KEY:
                    key = value
                elif number == _VALUE:
                    for inner, wire, _, first, last in walk(self._data, begin, behind):
                        if inner == _ENTRY_NAME and wire == LENGTH:
                            name = _text(self._data[first:last])
                        elif inner == _ENTRY_TITLE and wire == LENGTH and table == _EVENT_METADATA:
                            title = _text(self._data[first:last])
            found[_signed(key)] = title or name
        return found


def is_time(start_ns: int) -> bool:
    """Whether a number may be a moment, ns, to which others can be added."""
    return abs(start_ns) < LATEST_NS


def planes_of(data: bytes) -> tuple[list[Plane], str | None]:
    """The planes of a file, and the name of its host where it states one.

    Raises:
        WireDamageError: it is no sound XSpace.
    """
    buffer = padded(data)
    planes: list[Plane] = []
    host = None
    for number, wire, _, start, end in walk(data, 0, len(data)):
        if number == _PLANES and wire == LENGTH:
            planes.append(Plane(data, buffer, start, end))
        elif number == _HOSTNAMES and wire == LENGTH:
            host = host or _text(data[start:end]) or None
    return planes, host


def _column(fields: Fields, number: int, count: int) -> Int64s:
    """A number of each message, 0 where it is missing."""
    chosen = (fields.number == number) & (fields.wire == VARINT)
    column = np.zeros(count, np.int64)
    column[fields.owner[chosen]] = fields.value[chosen].view(np.int64)
    return column


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
