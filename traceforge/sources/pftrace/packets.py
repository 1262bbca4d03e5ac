"""Packets of a Perfetto trace. In: bytes. Out: fields of all packets, names by number, tracks.

Idea: packets are found one behind the other; the fields of all are then read at once (`reading.wire`). What follows
damage is lost, what precedes it is kept. Field numbers: Perfetto's trace_packet.proto and its GPU extensions.
Not handled: numbers that a trace gives to another name in mid-trace, or in another sequence; they are counted.
"""

from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traceforge.reading.wire import LENGTH, VARINT, Bytes, Fields, WireDamageError, padded, read_fields, walk

Int64s = NDArray[np.int64]
TIMESTAMP, TRACK_EVENT, INTERNED, COUNTER, RENDER_STAGE, TRACK = 8, 11, 12, 52, 53, 60
_PACKET, _CLOCK_SNAPSHOT, _CLOCKS, _CLOCK_ID, _CLOCK_TIME = 1, 6, 1, 1, 2
_REALTIME, _BOOTTIME = 1, 6
_CATEGORIES, _NAMES, _SPECIFICATIONS, _KERNELS = 1, 2, 24, 1000
_IID, _NAME = 1, 2
_UUID, _PROCESS, _THREAD = 1, 3, 4
_PID, _TID, _THREAD_NAME, _PROCESS_NAME = 1, 2, 5, 6
_MOST_FIRST_PACKET = 128
RENAMED = "name of a number that the trace gives to several"


@dataclass(frozen=True, slots=True)
class NamedTrack:
    """A process or a thread: as `raw.track` names it."""

    pid: int = 0
    tid: int | None = None
    name: str = ""


@dataclass(slots=True)
class TraceNames:
    """What numbers of a trace stand for; `renamed` of them for several names, which are then none."""

    categories: dict[int, str] = field(default_factory=dict)
    events: dict[int, str] = field(default_factory=dict)
    specifications: dict[int, str] = field(default_factory=dict)
    kernels: dict[int, str] = field(default_factory=dict)
    tracks: dict[int, NamedTrack] = field(default_factory=dict)
    renamed: int = 0


@dataclass(frozen=True, slots=True)
class Packets:
    """All packets of a trace.

    Attributes:
        fields: of the packets.
        count: number of packets.
        damaged: packets that are no sound messages.
        lost_bytes: behind damage between packets.
    """

    data: bytes
    buffer: Bytes
    fields: Fields
    count: int
    damaged: int
    lost_bytes: int

    def times_ns(self) -> Int64s:
        """Time stamp of each packet; 0 where it has none."""
        return numbers(self.fields, TIMESTAMP, self.count)

    def payloads(self, number: int) -> tuple[Int64s, Int64s, Int64s]:
        """Packet, beginning and end of each payload of a kind, in the order of packets."""
        chosen = (self.fields.number == number) & (self.fields.wire == LENGTH)
        owner = self.fields.owner[chosen]
        order = np.argsort(owner, kind="stable")
        return owner[order], self.fields.start[chosen][order], self.fields.end[chosen][order]


def begins_with_equal_clocks(head: bytes) -> bool:
    """Whether the first packet is a snapshot of BOOTTIME and REALTIME that show the same."""
    try:
        number, wire, _, start, end = next(walk(head, 0, len(head)))
        if number != _PACKET or wire != LENGTH or end - start > _MOST_FIRST_PACKET:
            return False
        for inner, kind, _, first, last in walk(head, start, end):
            if inner == _CLOCK_SNAPSHOT and kind == LENGTH:
                clocks = dict(
                    _clock(head, begin, behind)
                    for one, _, _, begin, behind in walk(head, first, last)
                    if one == _CLOCKS
                )
                return set(clocks) == {_BOOTTIME, _REALTIME} and len(set(clocks.values())) == 1
    except (WireDamageError, StopIteration):
        pass
    return False


def _clock(data: bytes, start: int, end: int) -> tuple[int, int]:
    said = {number: value for number, _, value, _, _ in walk(data, start, end)}
    return said.get(_CLOCK_ID, 0), said.get(_CLOCK_TIME, 0)


def packets_of(data: bytes) -> Packets:
    """The packets of a trace, as far as they are whole."""
    places: list[tuple[int, int]] = []
    end = 0
    try:
        for number, wire, _, start, behind in walk(data, 0, len(data)):
            end = behind
            if number == _PACKET and wire == LENGTH:
                places.append((start, behind))
    except WireDamageError:
        pass
    found = np.array(places, np.int64).reshape(-1, 2)
    buffer = padded(data)
    fields = read_fields(buffer, found[:, 0], found[:, 1])
    damaged = int(fields.damaged.sum())
    return Packets(data, buffer, fields, len(places), damaged, len(data) - end)


def names_of(packets: Packets) -> TraceNames:
    """Names and tracks; what is no sound message is left out."""
    names = TraceNames()
    tables = {
        _CATEGORIES: names.categories, _NAMES: names.events, _SPECIFICATIONS: names.specifications,
        _KERNELS: names.kernels,
    }  # fmt: skip
    data = packets.data
    for _, start, end in zip(*packets.payloads(INTERNED), strict=True):
        for number, wire, _, first, last in sound_fields(data, int(start), int(end)):
            if number in tables and wire == LENGTH:
                iid, text = _named(data, first, last)
                if tables[number].setdefault(iid, text) not in (text, RENAMED):
                    tables[number][iid] = RENAMED
                    names.renamed += 1
    for _, start, end in zip(*packets.payloads(TRACK), strict=True):
        uuid, track = _track(data, int(start), int(end))
        names.tracks[uuid] = track
    return names


def _named(data: bytes, start: int, end: int) -> tuple[int, str]:
    """Number and name of an interned entry: its last text, since kernels have theirs in a field of their own."""
    iid, text = 0, ""
    for number, wire, value, first, last in sound_fields(data, start, end):
        if number == _IID and wire == VARINT:
            iid = value
        elif wire == LENGTH:
            text = data[first:last].decode("utf-8", "replace")
    return iid, text


def _track(data: bytes, start: int, end: int) -> tuple[int, NamedTrack]:
    uuid, pid, tid, name = 0, 0, None, ""
    for number, wire, value, first, last in sound_fields(data, start, end):
        if number == _UUID and wire == VARINT:
            uuid = value
        elif number in (_PROCESS, _THREAD) and wire == LENGTH:
            for inner, _, said, begin, behind in sound_fields(data, first, last):
                if inner == _PID:
                    pid = _signed(said)
                elif inner == _TID and number == _THREAD:
                    tid = _signed(said)
                elif inner == (_PROCESS_NAME if number == _PROCESS else _THREAD_NAME):
                    name = data[begin:behind].decode("utf-8", "replace")
    return uuid, NamedTrack(pid, tid, name)


def sound_fields(data: bytes, start: int, end: int) -> list[tuple[int, int, int, int, int]]:
    """Fields of a message up to its damage."""
    found: list[tuple[int, int, int, int, int]] = []
    with suppress(WireDamageError):
        found.extend(walk(data, start, end))  # keeps what comes before damage
    return found


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def numbers(fields: Fields, number: int, count: int) -> Int64s:
    """A number of each message, 0 where it is missing; the last where there are several."""
    chosen = (fields.number == number) & (fields.wire == VARINT)
    column = np.zeros(count, np.int64)
    column[fields.owner[chosen]] = fields.value[chosen].view(np.int64)
    return column
