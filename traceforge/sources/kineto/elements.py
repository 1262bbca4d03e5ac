"""Events one by one, from text that cannot be decoded as a whole. In: bytes. Out: a `Unit`, and how far it reaches.

Idea: step from element to element; where one cannot be read, the text up to the next that can is lost, and counted by
the number of `"ph"` keys in it. Elements that are no objects are counted, too.
Not handled: an element of more than 16 MiB (skipped and counted).
"""

import re
from dataclasses import dataclass, field

from msgspec import Raw

from traceforge.sources.kineto.decode import UNDECODABLE, Event, Unit, decode_elements
from traceforge.sources.kineto.document import EVENTS_KEY, decode_members
from traceforge.sources.kineto.issues import IssueLog
from traceforge.sources.kineto.lenient import NotAnObjectError
from traceforge.sources.kineto.objects import DamagedError, decode_repaired, find_event, next_event
from traceforge.sources.kineto.text_repair import repair_text

_LARGEST_ELEMENT = 16 * 1024 * 1024
_OVERLAP = 64 * 1024
_MOST_ENDS = 64
_LOOK_AHEAD = 4096
_MEMBERS_OF_A_TRACE = frozenset(
    {"traceName", "displayTimeUnit", "baseTimeNanoseconds", "schemaVersion", "deviceProperties", "distributedInfo"}
)
_SEPARATOR = re.compile(rb"[ \t\r\n,]*")
_BLANK = rb"[ \t\r\n]*"
_OTHER_END = re.compile(rb"(?=%b(?:,%b\{|\]|\Z))" % (_BLANK, _BLANK))
_PHASE_KEY = re.compile(rb'"ph"%b:' % _BLANK)
_BEHIND_LIST_IN_OBJECT = re.compile(rb'%b(?:\}|,%b"|\Z)' % (_BLANK, _BLANK))
_BRACKET = re.compile(rb"\](?=%b[,}]|%b\Z)" % (_BLANK, _BLANK))


@dataclass(frozen=True, slots=True)
class Text:
    """A stretch of a file that begins at an element, unless `in_damage`.

    Attributes:
        data: the bytes.
        offset: place of the first one in the file.
        first_id: position of the first element in the list of events.
        is_last: whether the file ends with it.
        in_object: whether the list of events is a member of an object.
        in_damage: whether it begins somewhere inside an element that was given up.
    """

    data: bytes
    offset: int
    first_id: int
    is_last: bool
    in_object: bool
    in_damage: bool = False


@dataclass(slots=True)
class Walk:
    """What was read of a `Text`.

    Attributes:
        position: bytes used; the rest begins with an element (or in damage), or with the closing bracket.
        ended: whether the closing bracket of the list stands at `position`.
        next_id: position in the list of events of the next element.
        in_damage: whether the rest begins somewhere inside an element that was given up.
        cut_off: events lost because the file ends inside them.
    """

    next_id: int
    position: int = 0
    ended: bool = False
    in_damage: bool = False
    cut_off: int = 0
    events: list[Event] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    args: list[Raw] = field(default_factory=list)

    def keep(self, event: Event, args: Raw) -> None:
        """Take an event."""
        self.events.append(event)
        self.args.append(args)
        self.ids.append(self.next_id)
        self.next_id += 1

    def unit(self) -> Unit:
        """All events taken."""
        return Unit.from_parts(self.events, self.ids, self.args)


def read_each(text: Text, issues: IssueLog) -> Walk:
    """Read sound JSON whose values have unexpected types.

    Raises:
        msgspec.DecodeError, UnicodeDecodeError, RecursionError: it is no sound JSON.
    """
    walk = Walk(text.first_id)
    for element in decode_elements(text.data):
        place = f"event {walk.next_id}"
        try:
            walk.keep(*decode_repaired(bytes(element), place, issues))
        except NotAnObjectError:
            issues.add("kineto_not_an_object", at=place, lost_events=1)
            walk.next_id += 1
        except UNDECODABLE:
            issues.add("kineto_undecodable_event", at=place, lost_events=1)
            walk.next_id += 1
    walk.position = len(text.data)
    return walk


def read_damaged(text: Text, most_elements: int, issues: IssueLog) -> Walk:
    """Read a number of elements, or up to one that needs more bytes, or to the end of the list."""
    return _Walking(text, issues).run(most_elements)


class _Walking:
    def __init__(self, text: Text, issues: IssueLog) -> None:
        self._text = text
        self._data = text.data
        self._issues = issues
        self._walk = Walk(text.first_id, in_damage=text.in_damage)

    def run(self, most_elements: int) -> Walk:
        walk = self._walk
        if walk.in_damage:
            self._leave_damage()
        for _ in range(most_elements):
            if walk.in_damage or not self._skip_separator():
                break
            if self._data[walk.position] == ord("]"):
                is_end = self._is_end_of_list(walk.position)
                walk.ended = is_end is True
                if is_end is not False:
                    break
                self._issues.add("kineto_damaged_separator", at=self._byte(walk.position))
                walk.position += 1
            elif not self._read_element():
                break
        return walk

    def _byte(self, position: int) -> str:
        return f"byte {self._text.offset + position}"

    def _skip_separator(self) -> bool:
        """Move to the next element or bracket; False if the text ends before."""
        walk, start = self._walk, self._walk.position
        match = _SEPARATOR.match(self._data, start)
        walk.position = match.end() if match else start
        if walk.position == len(self._data):
            return False
        commas = self._data.count(b",", start, walk.position)
        closes = self._data[walk.position] == ord("]")
        if commas > 1 or (closes and commas) or (start > 0 and not closes and not commas):
            self._issues.add("kineto_damaged_separator", at=self._byte(start))
        return True

    def _is_end_of_list(self, position: int) -> bool | None:
        """Whether a bracket ends the list of events; None if more bytes must tell."""
        behind = self._data[position + 1 : position + 1 + _LOOK_AHEAD].strip(b" \t\r\n")
        in_object = self._text.in_object
        if not self._text.is_last and (behind in (b"", b",") if in_object else len(behind) < _LOOK_AHEAD // 2):
            return None
        if in_object:
            return _BEHIND_LIST_IN_OBJECT.match(self._data, position + 1) is not None
        return _PHASE_KEY.search(self._data, position + 1) is None

    def _read_element(self) -> bool:
        """Take the next element, or count it as lost; False if it needs more bytes."""
        start = self._walk.position
        try:
            is_read = self._read_object(start) if self._data[start] == ord("{") else self._read_other(start)
        except DamagedError:
            return self._skip_damage(start, cut_off=False)
        if is_read:
            return True
        if self._text.is_last or len(self._data) - start > _LARGEST_ELEMENT:
            return self._skip_damage(start, cut_off=self._text.is_last)
        return False

    def _read_object(self, start: int) -> bool:
        """False if its end is missing."""
        found = find_event(self._data, start, f"event {self._walk.next_id}", self._issues)
        if found is None:
            return False
        self._walk.keep(found.event, found.args)
        self._walk.position = found.end
        return True

    def _read_other(self, start: int) -> bool:
        """Count elements that are no objects; False if their end is missing."""
        for number, match in enumerate(_OTHER_END.finditer(self._data, start + 1)):
            if number == _MOST_ENDS:
                raise DamagedError("no end fits")
            if match.start() == len(self._data) and not self._text.is_last:
                return self._count_others(start, self._data.rfind(b",", start + 1))
            if self._count_others(start, match.start()):
                return True
        if self._text.is_last:
            raise DamagedError("no end fits")
        return False

    def _count_others(self, start: int, end: int) -> bool:
        try:
            count = len(decode_elements(repair_text(self._data[start : max(start, end)]).text))
        except UNDECODABLE:
            return False
        if count:
            place = f"event {self._walk.next_id}"
            self._issues.add("kineto_not_an_object", count, at=place, lost_events=count)
            self._walk.next_id += count
            self._walk.position = end
        return count > 0

    def _skip_damage(self, start: int, *, cut_off: bool) -> bool:
        """Go on at the next element that can be read; False if it needs more bytes."""
        resume = self._next_good(start + 1, cut_off)
        is_last, too_long = self._text.is_last, len(self._data) - start > _LARGEST_ELEMENT
        if resume is None and not is_last and not too_long:
            return False
        self._walk.in_damage = resume is None and not is_last
        lost = self._data[start:resume]
        count = max(1, _count_phases(lost)) if b"{" in lost else 0
        if cut_off and resume is None:
            self._walk.cut_off += count
            self._walk.next_id += count
        elif count:
            self._lose(count, start)
        else:
            self._issues.add("kineto_damaged_separator", at=self._byte(start))
        self._walk.position = len(self._data) if resume is None else resume
        return True

    def _leave_damage(self) -> None:
        """Skip the rest of an element that was given up, as far as it reaches."""
        resume = self._next_good(0, cut_off=False)
        if resume is not None or self._text.is_last:
            self._walk.in_damage = False
            self._walk.position = len(self._data) if resume is None else resume
        else:
            self._walk.position = max(0, len(self._data) - _OVERLAP)
        self._lose(_count_phases(self._data[: self._walk.position]), 0)

    def _lose(self, count: int, position: int) -> None:
        self._issues.add("kineto_undecodable_event", count, at=self._byte(position), lost_events=count)
        self._walk.next_id += count

    def _next_good(self, start: int, cut_off: bool) -> int | None:
        """Where the next event begins that can be read, or the list ends."""
        resume = next_event(self._data, start)
        if resume is None and self._text.is_last:
            return _end_behind_damage(self._text, start, cut_off)
        return resume


def _count_phases(data: bytes) -> int:
    return sum(1 for _ in _PHASE_KEY.finditer(data))


def _end_behind_damage(text: Text, start: int, cut_off: bool) -> int | None:
    """Where the list of events ends: the first bracket from which on the file is sound.

    Where the file may as well end inside an event, what follows the bracket must be members of a trace: `], "a": 1}`
    alone can be the end of that event's arguments.
    """
    for number, match in enumerate(_BRACKET.finditer(text.data, start)):
        behind = text.data[match.end() :]
        if number == _LOOK_AHEAD:
            break
        if not text.in_object:
            if not behind.strip() and not cut_off:
                return match.start()
            continue
        try:
            members = decode_members(b'{"":0' + behind)
        except UNDECODABLE:
            continue
        if EVENTS_KEY in members or not cut_off or _MEMBERS_OF_A_TRACE & members.keys():
            return match.start()
    return None
