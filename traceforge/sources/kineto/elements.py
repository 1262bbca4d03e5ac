"""Events one by one, from text that cannot be decoded as a whole. In: bytes. Out: an `EventUnit`, and its extent.

Idea: an element ends where JSON's grammar says so, and no damage elsewhere can change that. Text that is sound up to
the end of the file is one event cut off; text that is beyond repair is lost up to the next object that decodes and
looks like an event, and counted by the number of `"ph"` keys in it. Not handled: an element of more than 64 MiB
(skipped and counted).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec
from msgspec import Raw

from traceforge.reading.issue_log import IssueLog
from traceforge.reading.json_repair import repair_text
from traceforge.reading.json_values import NO_TOKEN, UNDECODABLE, ValueEnds
from traceforge.sources.kineto.decode import Event, EventUnit, decode_elements
from traceforge.sources.kineto.document import decode_members
from traceforge.sources.kineto.issues import new_log
from traceforge.sources.kineto.lenient import NotAnObjectError, read_event

LARGEST_ELEMENT = 64 * 1024 * 1024
_LOOK_AHEAD = 4096
_STEP_INTO_NESTING = 500  # bytes; text that is nested too deeply goes on so for at least twice as many
_MEMBERS_OF_A_TRACE = frozenset(
    {
        "baseTimeNanoseconds",
        "deviceProperties",
        "displayTimeUnit",
        "distributedInfo",
        "metadata",
        "otherData",
        "schemaVersion",
        "stackFrames",
        "traceName",
    }
)
_BLANK = rb"[ \t\r\n]*"
_BLANK_AND_COMMA = b" \t\r\n,"
_SEPARATOR = re.compile(rb"[ \t\r\n,]*")
_BETWEEN_ELEMENTS = b" \t\r\n,[{"
_RESUME = re.compile(rb'\{(?=%b")' % _BLANK)
_PHASE_KEY = re.compile(rb'"ph"%b:' % _BLANK)
_BEHIND_ELEMENT = re.compile(rb"%b(?:[,\]]|\Z)" % _BLANK)
_BEHIND_LIST_IN_OBJECT = re.compile(rb'%b(?:\}|,%b"|\Z)' % (_BLANK, _BLANK))
_BRACKET = re.compile(rb"\](?=%b[,}]|%b\Z)" % (_BLANK, _BLANK))
_SECOND_LIST = re.compile(rb"\][ \t\r\n,]*\[?")


@dataclass(frozen=True, slots=True)
class Text:
    """A stretch of a file that begins at an element.

    Attributes:
        data: the bytes.
        offset: place of the first one in the file.
        first_id: position of the first element in the list of events.
        is_last: whether the file ends with it.
        in_object: whether the list of events is a member of an object.
        behind_large: whether it begins inside an element that was too large and is counted already.
    """

    data: bytes
    offset: int
    first_id: int
    is_last: bool
    in_object: bool
    behind_large: bool = False


@dataclass(slots=True)
class Walk:
    """What was read of a `Text`.

    Attributes:
        position: bytes used; the rest begins with an element that needs more bytes, or with the closing bracket.
        ended: whether the closing bracket of the list stands at `position`.
        next_id: position in the list of events of the next element.
        cut_off: events lost because the file ends inside them.
        behind_large: whether it ends inside an element that is too large.
    """

    next_id: int
    position: int = 0
    ended: bool = False
    cut_off: int = 0
    behind_large: bool = False
    events: list[Event] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    args: list[Raw] = field(default_factory=list)

    def keep(self, event: Event, args: Raw) -> None:
        """Take an event."""
        self.behind_large = False
        self.events.append(event)
        self.args.append(args)
        self.ids.append(self.next_id)
        self.next_id += 1

    def unit(self) -> EventUnit:
        """All events taken."""
        return EventUnit.from_parts(self.events, self.ids, self.args)


def read_each(text: Text, issues: IssueLog) -> Walk:
    """Read sound JSON whose values have unexpected types.

    Raises:
        msgspec.DecodeError, UnicodeDecodeError, RecursionError: it is no sound JSON.
    """
    walk = Walk(text.first_id)
    for element in decode_elements(text.data):
        place = f"event {walk.next_id}"
        try:
            walk.keep(*_decode(bytes(element), place, issues))
        except NotAnObjectError:
            issues.add("not_an_object", at=place, lost_events=1)
            walk.next_id += 1
        except UNDECODABLE:
            issues.add("undecodable_event", at=place, lost_events=1)
            walk.next_id += 1
    walk.position = len(text.data)
    return walk


def read_damaged(text: Text, issues: IssueLog) -> Walk:
    """Read whatever can be read, up to an element that needs more bytes or the end of the list."""
    walk = Walk(text.first_id, behind_large=text.behind_large)
    ends = ValueEnds(text.data)
    while _skip_separator(text, walk, issues):
        if text.data[walk.position] == ord("]"):
            is_end = _is_end_of_list(text, walk.position)
            walk.ended = is_end is True
            if is_end is not False:
                break
            issues.add("damaged_separator", at=_byte(text, walk.position))
            if match := _SECOND_LIST.match(text.data, walk.position):
                walk.position = match.end()
        elif not _Element(text, walk, issues, ends).read():
            break
    return walk


def events_in(text: bytes) -> int:
    """Number of events in text that is not read, by their `"ph"` keys."""
    return sum(1 for _ in _PHASE_KEY.finditer(text))


def _byte(text: Text, position: int) -> str:
    return f"byte {text.offset + position}"


def _skip_separator(text: Text, walk: Walk, issues: IssueLog) -> bool:
    """Move to the next element or bracket; False if the text ends before."""
    match = _SEPARATOR.match(text.data, walk.position)
    commas = text.data.count(b",", walk.position, match.end()) if match else 0
    start, walk.position = walk.position, match.end() if match else walk.position
    if walk.position == len(text.data):
        return False
    closes = text.data[walk.position] == ord("]")
    if commas > 1 or (closes and commas) or (start > 0 and not closes and not commas):
        issues.add("damaged_separator", at=_byte(text, start))
    return True


def _is_end_of_list(text: Text, position: int) -> bool | None:
    """Whether a bracket ends the list of events; None if that takes more bytes."""
    behind = text.data[position + 1 : position + 1 + _LOOK_AHEAD].strip(b" \t\r\n")
    if not text.is_last and (behind in (b"", b",") if text.in_object else len(behind) < _LOOK_AHEAD // 2):
        return None
    if text.in_object:
        return _BEHIND_LIST_IN_OBJECT.match(text.data, position + 1) is not None
    return _PHASE_KEY.search(text.data, position + 1) is None


class _Element:
    """Reads the element at a walk's position."""

    def __init__(self, text: Text, walk: Walk, issues: IssueLog, ends: ValueEnds) -> None:
        self._text = text
        self._walk = walk
        self._issues = issues
        self._ends = ends
        self._start = walk.position
        self._place = f"event {walk.next_id}"

    def read(self) -> bool:
        """Take the element, or count it as lost; False if it needs more bytes."""
        try:
            end = self._read_object() if self._text.data[self._start] == ord("{") else self._read_other()
        except UNDECODABLE:
            return self._skip_damage()
        if end is not None:
            self._walk.position = end
            return True
        return self._must_end() and self._skip_unfinished()

    def _must_end(self) -> bool:
        return self._text.is_last or len(self._text.data) - self._start > LARGEST_ELEMENT

    def _read_object(self) -> int | None:
        end = self._ends.end(self._start)
        if end is not None and end - self._start > LARGEST_ELEMENT:
            self._count_large()
        elif end is not None:
            self._walk.keep(*_decode(self._text.data[self._start : end], self._place, self._issues))
        return end

    def _read_other(self) -> int | None:
        """Step over an element that is no object."""
        end = self._ends.end(self._start)
        if end is None or (end == len(self._text.data) and not self._text.is_last):
            return None
        if not _BEHIND_ELEMENT.match(self._text.data, end):
            raise msgspec.DecodeError("something else follows without a comma")
        self._issues.add("not_an_object", at=self._place, lost_events=1)
        self._walk.next_id += 1
        return end

    def _skip_damage(self) -> bool:
        """Go on at the next event; False if it needs more bytes."""
        for place, found in self._objects_behind():
            if found is None and not self._must_end():
                return False
            is_cut_off = found is None and _PHASE_KEY.search(self._text.data, place) is not None
            if is_cut_off or (found and _may_be_event(found)):
                return self._lose(place)
        if self._walk.behind_large and not self._text.is_last:
            # No event begins here, unless the text is cut off in its first characters.
            place = self._text.data.rfind(b"{", max(self._start + 1, len(self._text.data) - _LOOK_AHEAD))
            return self._lose(len(self._text.data) if place < 0 else place)
        if not self._must_end():
            return False
        return self._lose(_end_behind_damage(self._text, self._start + 1) or len(self._text.data))

    def _skip_unfinished(self) -> bool:
        """Step over an element without an end: to the end of the text, or to what can only be another event."""
        for place, found in self._objects_behind():
            if found and found.ph and found.name and found.ts is not NO_TOKEN:
                return self._lose(place)
        if not self._walk.behind_large and self._text.is_last:
            self._walk.cut_off += 1
            self._walk.next_id += 1
        elif not self._walk.behind_large:
            self._count_large()
        self._walk.behind_large = not self._text.is_last
        self._walk.position = len(self._text.data)
        return True

    def _count_large(self) -> None:
        self._issues.add("oversized_event", at=_byte(self._text, self._start), lost_events=1)
        self._walk.next_id += 1

    def _objects_behind(self) -> Iterator[tuple[int, Event | None]]:
        """Places behind the beginning of the element where objects begin, None for one that the text cuts off."""
        place = self._start + 1
        while match := _RESUME.search(self._text.data, place):
            place = match.start() + 1
            try:
                found = self._event_at(match.start())
            except RecursionError:
                place += _STEP_INTO_NESTING
            except UNDECODABLE:
                continue
            else:
                yield match.start(), found

    def _event_at(self, start: int) -> Event | None:
        """The object at a place; None if the text ends inside it.

        Raises:
            msgspec.DecodeError, RecursionError: there is none, or it is damaged beyond repair.
        """
        end = self._ends.end(start)
        return None if end is None else _decode(self._text.data[start:end], self._place, new_log())[0]

    def _lose(self, end: int) -> bool:
        """Step over text that cannot be read."""
        lost = self._text.data[self._start : end]
        if self._walk.behind_large:
            # The rest of an element that is counted already, without the comma behind it.
            self._walk.behind_large = end == len(self._text.data)
            self._walk.position = end if self._walk.behind_large else self._start + len(lost.rstrip(_BLANK_AND_COMMA))
            return True
        is_event = b"{" in lost and lost.strip(_BETWEEN_ELEMENTS)
        count = max(1, events_in(lost)) if is_event else 0
        code = "undecodable_event" if count else "damaged_separator"
        self._issues.add(code, max(1, count), at=_byte(self._text, self._start), lost_events=count)
        self._walk.next_id += count
        self._walk.position = end
        return True


def _may_be_event(found: Event) -> bool:
    return found.ph is not None or (found.name is not None and found.ts is not NO_TOKEN)


def _decode(data: bytes, place: str, issues: IssueLog) -> tuple[Event, Raw]:
    """An element, repaired where that suffices."""
    try:
        return read_event(data, place, issues)
    except UNDECODABLE:
        repaired = repair_text(data)
        event = read_event(repaired.text, place, issues)
        for code, count in repaired.counts.items():
            issues.add(code, count, at=place)
        return event


def _end_behind_damage(text: Text, start: int) -> int | None:
    """Where the list of events ends: the first bracket from which on the file is sound.

    What follows it must be members of a trace: `], "a": 1}` can as well be the end of an event's arguments.
    """
    for match in _BRACKET.finditer(text.data, start):
        behind = text.data[match.end() :]
        if not text.in_object:
            if not behind.strip():
                return match.start()
            continue
        try:
            members = decode_members(b'{"":0' + behind)
        except UNDECODABLE:
            continue
        if members.keys() == {""} or _MEMBERS_OF_A_TRACE & members.keys():
            return match.start()
    return None
