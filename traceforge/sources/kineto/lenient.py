"""Events whose values have unexpected types. In: the text of one element. Out: an `Event`, as far as it can be read.

Idea: every field is first taken as raw text and then read on its own, so that a bad value costs only itself.
Integers may stand in quotes (decimal or 0x) or carry a zero fraction. Not handled: an element that is no object.
"""

import re

import msgspec
from msgspec import Raw, field

from traceforge.reading.issue_log import IssueLog
from traceforge.sources.kineto.decode import ABSENT, NO_ARGS, NO_TOKEN, UNDECODABLE, Args, Event

_INTEGER = re.compile(rb'("?)\s*([+-]?[0-9]{1,40})(?:\.0{0,20})?\s*\1')
_HEXADECIMAL = re.compile(rb'"\s*0[xX]([0-9a-fA-F]{1,40})\s*"')


class NotAnObjectError(ValueError):
    """The text is sound JSON, but no object."""


class _RawArgs(msgspec.Struct):
    external_id: Raw = field(default=NO_TOKEN, name="External id")
    record_function_id: Raw = field(default=NO_TOKEN, name="Record function id")
    device: Raw = NO_TOKEN
    stream: Raw = NO_TOKEN
    correlation: Raw = NO_TOKEN
    size_bytes: Raw = field(default=NO_TOKEN, name="bytes")
    memory_bytes: Raw = field(default=NO_TOKEN, name="Bytes")
    old_external_id: Raw = field(default=NO_TOKEN, name="external id")
    collective: Raw = field(default=NO_TOKEN, name="Collective name")
    name: Raw = NO_TOKEN
    labels: Raw = NO_TOKEN


class _RawEvent(msgspec.Struct):
    ph: Raw = NO_TOKEN
    cat: Raw = NO_TOKEN
    name: Raw = NO_TOKEN
    pid: Raw = NO_TOKEN
    tid: Raw = NO_TOKEN
    ts: Raw = NO_TOKEN
    dur: Raw = NO_TOKEN
    args: Raw = NO_TOKEN
    id: Raw = NO_TOKEN


_typed_event = msgspec.json.Decoder(Event)
_raw_event = msgspec.json.Decoder(_RawEvent)
_raw_args = msgspec.json.Decoder(_RawArgs)
_text = msgspec.json.Decoder(str)


def read_event(text: bytes, place: str, issues: IssueLog) -> tuple[Event, Raw]:
    """One element and the raw text of its arguments.

    Args:
        text: one JSON value.
        place: where it stands, for `issues`.
        issues: counts values of unexpected types.

    Raises:
        NotAnObjectError: it is sound JSON, but no object.
        msgspec.DecodeError, UnicodeDecodeError, RecursionError: it is no sound JSON.
    """
    try:
        raw = _raw_event.decode(text)
    except msgspec.ValidationError as error:
        raise NotAnObjectError(str(error)) from error
    try:
        return _typed_event.decode(text), raw.args
    except msgspec.ValidationError:
        text.decode()
        return _Reading(place, issues).event(raw), raw.args


def text_of(raw: bytes) -> str | None:
    """A JSON value as text: a string's content, anything else as written; None for null and absent values."""
    if raw in (b"", b"null"):
        return None
    try:
        return _text.decode(raw)
    except UNDECODABLE:
        return raw.decode("utf-8", "replace").strip('"')


def integer_of(raw: bytes) -> int | None:
    """A JSON value as an integer of any size; None where it is none.

    Accepts a number with or without a zero fraction, in quotes or not, and 0x numbers in quotes.
    """
    if match := _INTEGER.fullmatch(raw):
        return int(match[2])
    if match := _HEXADECIMAL.fullmatch(raw):
        return int(match[1], 16)
    return None


class _Reading:
    """Reads the fields of one event and counts those of unexpected types."""

    def __init__(self, place: str, issues: IssueLog) -> None:
        self._place = place
        self._issues = issues

    def event(self, raw: _RawEvent) -> Event:
        return Event(
            ph=self._text(raw.ph),
            cat=self._text(raw.cat),
            name=self._text(raw.name),
            pid=self._identifier(raw.pid),
            tid=self._identifier(raw.tid),
            ts=raw.ts,
            dur=raw.dur,
            args=self._args(raw.args),
            id=self._flow(raw.id),
        )

    def _args(self, raw: Raw) -> Args:
        text = bytes(raw)
        if text in (b"", b"null"):
            return NO_ARGS
        try:
            args = _raw_args.decode(text)
        except UNDECODABLE:
            self._wrong_type()
            return Args()
        return Args(
            external_id=self._integer(args.external_id),
            record_function_id=self._integer(args.record_function_id),
            device=self._integer(args.device),
            stream=self._integer(args.stream),
            correlation=self._integer(args.correlation),
            size_bytes=self._integer(args.size_bytes),
            memory_bytes=self._integer(args.memory_bytes),
            old_external_id=self._integer(args.old_external_id),
            collective=args.collective,
            name=args.name,
            labels=args.labels,
        )

    def _text(self, raw: Raw) -> str | None:
        token = bytes(raw)
        if token and token != b"null" and token[:1] != b'"':
            self._wrong_type()
        return text_of(token)

    def _identifier(self, raw: Raw) -> int | str | None:
        token = bytes(raw)
        if token[:1] in (b"{", b"["):
            self._wrong_type()
        if token[:1] != b'"' and (number := integer_of(token)) is not None and b"." not in token:
            return number
        return text_of(token)

    def _flow(self, raw: Raw) -> int | str:
        token = bytes(raw)
        if token in (b"", b"null"):
            return ABSENT
        number = integer_of(token)
        return text_of(token) or "" if number is None else number

    def _integer(self, raw: Raw) -> int:
        token = bytes(raw)
        if token in (b"", b"null"):
            return ABSENT
        number = integer_of(token)
        if number is None:
            self._wrong_type()
            return ABSENT
        return number

    def _wrong_type(self) -> None:
        self._issues.add("kineto_wrong_type", at=self._place)
