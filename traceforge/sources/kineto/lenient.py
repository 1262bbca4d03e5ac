"""Events whose values have unexpected types. In: the text of one element. Out: an `Event`, as far as it can be read.

Idea: see `reading.lenient`. Not handled: an element that is no object.
"""

import msgspec
from msgspec import Raw

from traceforge.reading.issue_log import IssueLog
from traceforge.reading.json_values import ABSENT, NO_TOKEN, UNDECODABLE
from traceforge.reading.lenient import LenientReader, ReadValue, integer_of, text_of
from traceforge.sources.kineto.decode import NO_ARGS, Args, Event


class NotAnObjectError(ValueError):
    """The text is sound JSON, but no object."""


class _RawArgs(msgspec.Struct):
    args: Raw = NO_TOKEN


_typed_event = msgspec.json.Decoder(Event)
_raw_args = msgspec.json.Decoder(_RawArgs)


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
        args = _raw_args.decode(text).args
    except msgspec.ValidationError as error:
        raise NotAnObjectError(str(error)) from error
    try:
        return _typed_event.decode(text), args
    except msgspec.ValidationError:
        text.decode()
        return _lenient_event(text, LenientReader(issues, place)), args


def _lenient_event(text: bytes, reader: LenientReader) -> Event:
    def args(token: bytes) -> Args:
        try:
            return NO_ARGS if token == b"null" else reader.struct(Args, token, {})
        except UNDECODABLE:
            reader.count_wrong_type()
            return Args()

    def identifier(token: bytes) -> int | str | None:
        if token[:1] in (b"{", b"["):
            reader.count_wrong_type()
        if token[:1] != b'"' and b"." not in token and (number := integer_of(token)) is not None:
            return number
        return text_of(token)

    def flow(token: bytes) -> int | str:
        if token == b"null":
            return ABSENT
        number = integer_of(token)
        return text_of(token) or "" if number is None else number

    readers: dict[object, ReadValue] = {int | str | None: identifier, int | str: flow, Args: args}
    return reader.struct(Event, text, readers)
