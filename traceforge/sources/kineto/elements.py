"""Events one by one, from text that cannot be decoded as a whole. In: bytes. Out: a `Unit`, and how far it reaches.

Idea: an element ends at the first closing brace before a separator for which everything from its beginning decodes; no
damage elsewhere can change that. Where no end fits, the text up to the next element that does decode is lost, and
counted by the number of `"ph"` keys in it. Not handled: an element of more than 8 MiB (skipped and counted).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec import Raw

from traceforge.reading.issue_log import IssueLog
from traceforge.sources.kineto.decode import NO_TOKEN, UNDECODABLE, Event, Unit, decode_elements, is_incomplete
from traceforge.sources.kineto.document import decode_members
from traceforge.sources.kineto.issues import new_log
from traceforge.sources.kineto.lenient import NotAnObjectError, read_event
from traceforge.sources.kineto.text_repair import repair_text

_LARGEST_ELEMENT = 8 * 1024 * 1024
_MOST_ENDS = 64
_LOOK_AHEAD = 4096
_MEMBERS_OF_A_TRACE = frozenset(
    {"traceName", "displayTimeUnit", "baseTimeNanoseconds", "schemaVersion", "deviceProperties", "distributedInfo"}
)
_BLANK = rb"[ \t\r\n]*"
_SEPARATOR = re.compile(rb"[ \t\r\n,]*")
_OBJECT_END = re.compile(rb"\}(?=[ \t\r\n,]*(?:\{|\]|\Z))")
_BRACE = re.compile(rb"\}")
_OTHER_END = re.compile(rb"(?=%b(?:,%b\{|\]|\Z))" % (_BLANK, _BLANK))
_RESUME = re.compile(rb'\{(?=%b")' % _BLANK)
_PHASE_KEY = re.compile(rb'"ph"%b:' % _BLANK)
_BEHIND_LIST_IN_OBJECT = re.compile(rb'%b(?:\}|,%b"|\Z)' % (_BLANK, _BLANK))
_BRACKET = re.compile(rb"\](?=%b[,}]|%b\Z)" % (_BLANK, _BLANK))


@dataclass(frozen=True, slots=True)
class Text:
    """A stretch of a file that begins at an element.

    Attributes:
        data: the bytes.
        offset: place of the first one in the file.
        first_id: position of the first element in the list of events.
        is_last: whether the file ends with it.
        in_object: whether the list of events is a member of an object.
    """

    data: bytes
    offset: int
    first_id: int
    is_last: bool
    in_object: bool


@dataclass(slots=True)
class Walk:
    """What was read of a `Text`.

    Attributes:
        position: bytes used; the rest begins with an element that needs more bytes, or with the closing bracket.
        ended: whether the closing bracket of the list stands at `position`.
        next_id: position in the list of events of the next element.
        cut_off: events lost because the file ends inside them.
    """

    next_id: int
    position: int = 0
    ended: bool = False
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
            walk.keep(*_decode(bytes(element), place, issues))
        except NotAnObjectError:
            issues.add("kineto_not_an_object", at=place, lost_events=1)
            walk.next_id += 1
        except UNDECODABLE:
            issues.add("kineto_undecodable_event", at=place, lost_events=1)
            walk.next_id += 1
    walk.position = len(text.data)
    return walk


def read_damaged(text: Text, issues: IssueLog) -> Walk:
    """Read whatever can be read, up to an element that needs more bytes or the end of the list."""
    walk = Walk(text.first_id)
    while _skip_separator(text, walk, issues):
        if text.data[walk.position] == ord("]"):
            is_end = _is_end_of_list(text, walk.position)
            if is_end is None:
                break
            if is_end:
                walk.ended = True
                break
            issues.add("kineto_damaged_separator", at=_byte(text, walk.position))
            walk.position += 1
        elif not _Element(text, walk, issues).read():
            break
    return walk


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
        issues.add("kineto_damaged_separator", at=_byte(text, start))
    return True


def _is_end_of_list(text: Text, position: int) -> bool | None:
    """Whether a bracket ends the list of events; None if more bytes must tell."""
    behind = text.data[position + 1 : position + 1 + _LOOK_AHEAD].strip(b" \t\r\n")
    if not text.is_last and (behind in (b"", b",") if text.in_object else len(behind) < _LOOK_AHEAD // 2):
        return None
    if text.in_object:
        return _BEHIND_LIST_IN_OBJECT.match(text.data, position + 1) is not None
    return _PHASE_KEY.search(text.data, position + 1) is None


class _Element:
    """Reads the element at a walk's position."""

    def __init__(self, text: Text, walk: Walk, issues: IssueLog) -> None:
        self._text = text
        self._walk = walk
        self._issues = issues
        self._place = f"event {walk.next_id}"

    def read(self) -> bool:
        """Take the element, or count it as lost; False if it needs more bytes."""
        start = self._walk.position
        is_object = self._text.data[start] == ord("{")
        done = self._read_object(start) if is_object else self._read_other(start)
        if done is not None:
            return done or self._skip_damage(start)
        if len(self._text.data) - start > _LARGEST_ELEMENT and not self._text.is_last:
            return self._skip_damage(start)
        return self._text.is_last and self._skip_damage(start, cut_off=True)

    def _read_object(self, start: int) -> bool | None:
        """True if it could be read, False if it is damaged, None if its end is missing."""
        for end in _ends(_OBJECT_END, self._text.data, start, _MOST_ENDS):
            if end is None:
                return False
            try:
                self._take(start, end)
            except UNDECODABLE as error:
                if not is_incomplete(error):
                    return self._read_prefix(start, end)
            else:
                return True
        return None

    def _read_prefix(self, start: int, end: int) -> bool:
        """Whether an object ends before `end`, where something that is no separator follows it."""
        for earlier in _ends(_BRACE, self._text.data[:end], start, _MOST_ENDS):
            if earlier is None:
                return False
            try:
                self._take(start, earlier)
            except UNDECODABLE as error:
                if not is_incomplete(error):
                    return False
            else:
                return True
        return False

    def _take(self, start: int, end: int) -> None:
        self._walk.keep(*_decode(self._text.data[start:end], self._place, self._issues))
        self._walk.position = end

    def _read_other(self, start: int) -> bool | None:
        """The same for elements that are no objects: they are counted."""
        for number, match in enumerate(_OTHER_END.finditer(self._text.data, start + 1)):
            end = match.start()
            if number == _MOST_ENDS:
                return False
            if end == len(self._text.data) and not self._text.is_last:
                return None
            try:
                count = len(decode_elements(repair_text(self._text.data[start:end]).text))
            except UNDECODABLE:
                continue
            self._issues.add("kineto_not_an_object", count, at=self._place, lost_events=count)
            self._walk.next_id += count
            self._walk.position = end
            return True
        return False if self._text.is_last else None

    def _skip_damage(self, start: int, *, cut_off: bool = False) -> bool:
        """Go on at the next element that decodes; False if it needs more bytes."""
        resume = self._next_good(start + 1, cut_off)
        too_long = len(self._text.data) - start > _LARGEST_ELEMENT
        if resume is None and not self._text.is_last and not too_long:
            return False
        self._lose(start, len(self._text.data) if resume is None else resume, cut_off and resume is None)
        return True

    def _lose(self, start: int, end: int, cut_off: bool) -> None:
        """Step over text that cannot be read."""
        lost = self._text.data[start:end]
        count = max(1, sum(1 for _ in _PHASE_KEY.finditer(lost))) if b"{" in lost else 0
        if cut_off:
            self._walk.cut_off += count
        elif count:
            self._issues.add("kineto_undecodable_event", count, at=_byte(self._text, start), lost_events=count)
        else:
            self._issues.add("kineto_damaged_separator", at=_byte(self._text, start))
        self._walk.next_id += count
        self._walk.position = end

    def _next_good(self, start: int, cut_off: bool) -> int | None:
        """Where the next object begins that decodes and looks like an event, or the list ends."""
        for match in _RESUME.finditer(self._text.data, start):
            if self._is_event(match.start()):
                return match.start()
        return _end_behind_damage(self._text, start, cut_off) if self._text.is_last else None

    def _is_event(self, start: int) -> bool:
        for end in _ends(_OBJECT_END, self._text.data, start, _MOST_ENDS):
            if end is None:
                return False
            try:
                event, _ = read_event(self._text.data[start:end], self._place, new_log())
            except UNDECODABLE as error:
                if not is_incomplete(error):
                    return False
            else:
                return event.ph is not None or (event.name is not None and event.ts is not NO_TOKEN)
        return False


def _decode(data: bytes, place: str, issues: IssueLog) -> tuple[Event, Raw]:
    """An element, repaired where that suffices."""
    try:
        return read_event(data, place, issues)
    except UNDECODABLE as error:
        if is_incomplete(error) and b"\\" not in data:
            raise
        repaired = repair_text(data)
        event = read_event(repaired.text, place, issues)
        for code, count in repaired.counts.items():
            issues.add(code, count, at=place)
        return event


def _ends(pattern: re.Pattern[bytes], data: bytes, start: int, most: int) -> Iterator[int | None]:
    """Where an object that begins at `start` may end; None after too many."""
    for number, match in enumerate(pattern.finditer(data, start)):
        if number == most:
            yield None
            return
        yield match.end()


def _end_behind_damage(text: Text, start: int, cut_off: bool) -> int | None:
    """Where the list of events ends: the first bracket from which on the file is sound.

    Where the file may as well end inside an event, what follows the bracket must be members of a trace: `], "a": 1}`
    alone can be the end of that event's arguments.
    """
    for match in _BRACKET.finditer(text.data, start):
        behind = text.data[match.end() :]
        if not text.in_object:
            if not behind.strip() and not cut_off:
                return match.start()
            continue
        try:
            members = decode_members(b'{"":0' + behind)
        except UNDECODABLE:
            continue
        if not cut_off or _MEMBERS_OF_A_TRACE & members.keys():
            return match.start()
    return None
