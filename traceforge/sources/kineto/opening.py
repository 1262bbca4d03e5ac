"""Where the list of events begins. In: the first bytes of a file. Out: the members before the list, and what follows.

Idea: `"traceEvents": [` is the right place if and only if the text before it, closed by `]}`, is a sound object.
A file that begins with `[` is a list of events itself. Not handled: UTF-16 (refused by name) and UTF-32.
"""

import re
from dataclasses import dataclass, field

from traceforge.errors import InputUnusableError, NotATraceError
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.json_repair import repair_text
from traceforge.reading.json_values import UNDECODABLE, is_incomplete
from traceforge.reading.stream import ByteStream
from traceforge.sources.kineto.document import EVENTS_KEY, Members, bounded, decode_members, first_members

_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_BLANK = b" \t\r\n"
_LIST = re.compile(rb'"traceEvents"[ \t\r\n]*:[ \t\r\n]*\[')
_CLOSED = b"]}"
_LARGEST_HEAD = 128 * 1024 * 1024
_RECORD_HINT = "export it again with torch.profiler's export_chrome_trace or tensorboard_trace_handler"


@dataclass(frozen=True, slots=True)
class Opening:
    """The beginning of a file.

    Attributes:
        is_object: whether the list of events is a member of an object, not the whole file.
        members: the members that stand before the list.
        rest: bytes behind the opening bracket that were read already.
    """

    is_object: bool
    members: Members = field(default_factory=dict)
    rest: bytes = b""


def read_opening(stream: ByteStream, piece_bytes: int, where: str, issues: IssueLog) -> Opening:
    """Read up to the list of events.

    Raises:
        InputUnusableError: the file is empty, UTF-16, or ends before the list begins.
        NotATraceError: it is no JSON object or list, or an object without a list of events.
    """
    head = b""
    while not (text := head.removeprefix(_BOM).lstrip(_BLANK)) or len(head) <= len(_BOM):
        piece = stream.read(piece_bytes)
        if not piece:
            break
        head += piece
    if not text:
        raise _nothing_there(stream, where)
    if text[:1] == b"[":
        return Opening(is_object=False, rest=text[1:])
    if text[:2] in _UTF_16:
        raise InputUnusableError(
            "the text is UTF-16; a trace is UTF-8", where=where, hint="convert it: iconv -f UTF-16 -t UTF-8"
        )
    if text[:1] != b"{":
        raise NotATraceError("not JSON: it begins with neither { nor [", where=where, hint=_RECORD_HINT)
    return _read_object(text, stream, piece_bytes, where, issues)


def _read_object(start: bytes, stream: ByteStream, piece_bytes: int, where: str, issues: IssueLog) -> Opening:
    text, searched = bytearray(start), 0
    while True:
        while match := _LIST.search(text, searched):
            end = searched = match.end()
            rest, text[end:] = bytes(memoryview(text)[end:]), _CLOSED  # in place: the head may be large
            members = _members_before(text, issues)
            if members is not None:
                return Opening(is_object=True, members=bounded(members, issues), rest=rest)
            text[end:] = rest
        searched = max(searched, len(text) - 1024)
        piece = stream.read(piece_bytes)
        if not piece or len(text) > _LARGEST_HEAD:
            raise _no_list(stream, bool(piece), where)
        text += piece


def _members_before(text: bytearray, issues: IssueLog) -> Members | None:
    """The members before a list of events, closed behind it; None if the list belongs to something nested."""
    try:
        members = decode_members(text)
    except UNDECODABLE:
        try:
            members = decode_members(repair_text(bytes(text)).text)
        except UNDECODABLE as error:
            if is_incomplete(error):
                return None
            members = first_members(bytes(text.removesuffix(_CLOSED)))
        issues.add("unreadable_metadata", at="byte 0")
    members.pop(EVENTS_KEY, None)
    return members


def _nothing_there(stream: ByteStream, where: str) -> InputUnusableError:
    if stream.damage:
        return InputUnusableError(
            f"nothing can be decompressed: {stream.damage}",
            where=where,
            hint="copy the file again from where it was written",
        )
    return InputUnusableError(
        "the file is empty", where=where, hint="the profiler was probably stopped before it wrote; record again"
    )


def _no_list(stream: ByteStream, more: bool, where: str) -> InputUnusableError:
    if stream.damage:
        return InputUnusableError(
            f"the file is damaged before its list of events: {stream.damage}",
            where=where,
            hint="copy the file again from where it was written",
        )
    if more:
        return NotATraceError(f"no list of events in the first {_LARGEST_HEAD} bytes", where=where, hint=_RECORD_HINT)
    return NotATraceError(
        f"no list of events: the file ends at byte {stream.position} without `traceEvents`",
        where=where,
        hint=_RECORD_HINT,
    )
