"""Bytes to units. In: the bytes behind the opening bracket of the list of events. Out: `EventUnit`s, then the rest.

Idea: cut at the last `}` `,` `{` of what was read and decode. From a true boundary, text that decodes as whole elements
ends at a true boundary: a cut inside a string leaves it open, a cut at deeper nesting leaves brackets open. So a wrong
guess shows itself, and the cut before it is tried. Layout and white space do not matter. Text that does not decode at
any cut is repaired, or else read element by element.
Units are small (256 KiB), so that the objects decoded from them stay in the processor's cache.
"""

import re
from collections.abc import Iterator

import msgspec

from traceforge.reading.issue_log import IssueLog
from traceforge.reading.json_repair import repair_text
from traceforge.reading.json_values import UNDECODABLE, is_incomplete
from traceforge.reading.stream import ByteStream
from traceforge.sources.kineto.decode import EventUnit, decode_events
from traceforge.sources.kineto.document import EVENTS_KEY, Members, decode_members, read_members
from traceforge.sources.kineto.elements import LARGEST_ELEMENT, Text, Walk, events_in, read_damaged, read_each
from traceforge.sources.kineto.native import NativeColumns, ScannedUnit
from traceforge.sources.kineto.opening import Opening

UNIT_BYTES = 256 * 1024
AnyUnit = EventUnit | ScannedUnit
_BOUNDARY = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*(?=\{)")
_STEPS_BACK = (0, 0, 1024, 8 * 1024, 64 * 1024)
_BLANK = b" \t\r\n"
_EVENTS_KEY = f'"{EVENTS_KEY}"'.encode()
_LARGEST_REST = 64 * 1024 * 1024


class Splitter:
    """Reads all events of a file and what stands behind them.

    Args:
        stream: positioned behind `opening`.
        opening: what was read of the file so far.
        unit_bytes: how much text to decode at a time.
        native: reads units that are plain; without it, `decode` reads all.

    Attributes:
        members: members of the object behind the list of events, once all units were read.
    """

    def __init__(
        self,
        stream: ByteStream,
        opening: Opening,
        issues: IssueLog,
        unit_bytes: int = UNIT_BYTES,
        native: NativeColumns | None = None,
    ) -> None:
        self._stream = stream
        self._native = native
        self._in_object = opening.is_object
        self._issues = issues
        self._unit_bytes = unit_bytes
        self._text = opening.rest
        self._next_id = 0
        self._goal = unit_bytes
        self._is_last = False
        self._is_truncated = False
        self._behind_large = False
        self.members: Members = {}

    def units(self) -> Iterator[AnyUnit]:
        """All events of the file, in order."""
        ended = False
        while not ended:
            self._fill()
            if self._is_last:
                break
            unit = self._cut()
            if unit is None:
                unit, ended = self._walk()
            yield unit
        if ended:
            self._drain()
            yield from self._read_rest()
        else:
            yield from self._finish()
        if self._stream.damage and not self._is_truncated:
            place = f"byte {self._stream.position}"
            self._issues.add("damaged_compression", at=place, because=self._stream.damage)

    def _fill(self) -> None:
        """Read until there is enough text for a unit, or no more."""
        pieces = [self._text]
        size = len(self._text)
        while size < self._goal:
            piece = self._stream.read(self._goal - size)
            if not piece:
                self._is_last = True
                break
            pieces.append(piece)
            size += len(piece)
        self._text = b"".join(pieces)
        self._goal = self._unit_bytes

    def _cut(self) -> AnyUnit | None:
        """A unit up to one of the last boundaries; None if none of them is sound."""
        end = len(self._text)
        if end > LARGEST_ELEMENT:
            return None  # an element among these is too large
        for step_back in _STEPS_BACK:
            boundary = _last_boundary(self._text, end - step_back)
            if boundary is None:
                return None
            end = boundary.start() + 1
            try:
                unit = self._decode(self._text[:end])
            except UNDECODABLE as error:
                if is_incomplete(error):
                    continue
                return None
            self._text = self._text[boundary.end() :]
            return unit
        return None

    def _decode(self, text: bytes) -> AnyUnit:
        """Whole elements, repaired where that suffices."""
        if self._native is not None and (scanned := self._native.read(text, self._next_id)):
            self._next_id += scanned.count
            return scanned
        try:
            return self._typed(text)
        except msgspec.ValidationError:
            pass
        except UNDECODABLE as error:
            # Half a surrogate pair reads as if the text ended there; any other early end cannot be repaired.
            if is_incomplete(error) and b"\\u" not in text:
                raise
            repaired = repair_text(text)
            if not repaired.counts:
                raise
            unit = self._decode_sound(repaired.text)
            for code, count in repaired.counts.items():
                self._issues.add(code, count, at=f"byte {self._offset()}")
            return unit
        return self._each(text)

    def _decode_sound(self, text: bytes) -> EventUnit:
        try:
            return self._typed(text)
        except msgspec.ValidationError:
            return self._each(text)

    def _typed(self, text: bytes) -> EventUnit:
        unit = EventUnit(decode_events(text), self._next_id, text)
        self._next_id += len(unit.events)
        return unit

    def _each(self, text: bytes) -> EventUnit:
        return self._take(read_each(self._stretch(text), self._issues))

    def _take(self, walk: Walk) -> EventUnit:
        self._next_id = walk.next_id
        return walk.unit()

    def _stretch(self, text: bytes) -> Text:
        return Text(text, self._offset(), self._next_id, self._is_last, self._in_object, self._behind_large)

    def _offset(self) -> int:
        return self._stream.position - len(self._text)

    def _walk(self) -> tuple[EventUnit, bool]:
        """Events one by one, and whether the list ended; wants more text for an element that has no end."""
        walk = read_damaged(self._stretch(self._text), self._issues)
        self._behind_large = walk.behind_large
        self._text = self._text[walk.position :]
        if not walk.position:
            self._goal = 2 * max(len(self._text), self._unit_bytes)
        if self._is_last and not walk.ended:
            self._count_truncation(walk.cut_off)
        return self._take(walk), walk.ended

    def _finish(self) -> Iterator[AnyUnit]:
        """The last events and the members behind them."""
        try:
            yield self._finish_sound()
        except UNDECODABLE:
            unit, ended = self._walk()
            yield unit
            if ended:
                yield from self._read_rest()

    def _finish_sound(self) -> AnyUnit:
        """The last events, if the file is sound up to its end.

        Raises:
            msgspec.DecodeError, UnicodeDecodeError, RecursionError: it is not.
        """
        if len(self._text) > LARGEST_ELEMENT:
            raise msgspec.DecodeError("an element may be too large")
        if not self._in_object:
            return self._decode(_without_bracket(self._text))
        if self._text.count(_EVENTS_KEY):
            raise msgspec.DecodeError("a second list of events")
        members = decode_members(b"{%b:[%b" % (_EVENTS_KEY, self._text))
        events = bytes(members.pop(EVENTS_KEY))
        self.members = members
        return self._decode(events[1:-1])

    def _drain(self) -> None:
        """Read the file to its end; of a very long rest only the beginning is kept."""
        pieces, size = [self._text], len(self._text)
        while piece := self._stream.read(self._unit_bytes):
            size += len(piece)
            if size <= _LARGEST_REST:
                pieces.append(piece)
            else:
                self._leave(piece)
        self._text, self._is_last = b"".join(pieces), True

    def _read_rest(self) -> Iterator[AnyUnit]:
        """The members behind the list of events, whose closing bracket begins the text."""
        behind: bytes | None = self._text[1:]
        if self._in_object:
            self.members, behind = read_members(b'{"":0%b' % self._text[1:], self._issues)
            self.members.pop("", None)
            if events := bytes(self.members.pop(EVENTS_KEY, b"")):
                yield self._each(events[1:-1])
        if behind is None:
            self._count_truncation(0)
        elif behind := behind.strip(_BLANK):
            self._leave(behind)

    def _leave(self, behind: bytes) -> None:
        """Count bytes behind the trace, just read from the stream, and the events of another trace in them."""
        place = f"byte {self._stream.position - len(behind)}"
        self._issues.add("trailing_data", len(behind), at=place, lost_events=events_in(behind))

    def _count_truncation(self, lost_events: int) -> None:
        self._is_truncated = True
        self._issues.add(
            "truncated",
            at=f"byte {self._stream.position}",
            lost_events=lost_events,
            because=self._stream.damage,
        )


def _without_bracket(text: bytes) -> bytes:
    """The elements of a list, given what follows its opening bracket.

    Raises:
        msgspec.DecodeError: the list is not closed at the end.
    """
    elements = text.rstrip(_BLANK)
    if not elements.endswith(b"]"):
        raise msgspec.DecodeError("the list is not closed")
    return elements[:-1]


def _last_boundary(text: bytes, end: int) -> re.Match[bytes] | None:
    """The last place before `end` where an object ends and another follows."""
    place = end
    while (place := text.rfind(b"}", 0, max(0, place))) >= 0:
        if boundary := _BOUNDARY.match(text, place):
            return boundary
    return None
