"""JSON text to typed events, fast. In: the text of whole events. Out: `EventUnit`s of `Event` structs.

Idea: msgspec decodes only the fields that become columns; times stay raw tokens, so no digit is lost. Absent integers
are the smallest int64, so that a column packs without looking at each value (a file that states just that number
reads as if it stated none). What does not fit the types raises and is read by `lenient` instead.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Raw, field

from traceforge.reading.json_values import ABSENT, NO_TOKEN


class Args(msgspec.Struct, gc=False, frozen=True):
    """Those arguments of an event that become columns, in the order in which PyTorch writes them."""

    external_id: int = field(default=ABSENT, name="External id")
    record_function_id: int = field(default=ABSENT, name="Record function id")
    device: int = ABSENT
    stream: int = ABSENT
    correlation: int = ABSENT
    size_bytes: int = field(default=ABSENT, name="bytes")
    memory_bytes: int = field(default=ABSENT, name="Bytes")
    old_external_id: int = field(default=ABSENT, name="external id")
    collective: Raw = field(default=NO_TOKEN, name="Collective name")
    name: Raw = NO_TOKEN
    labels: Raw = NO_TOKEN


NO_ARGS = Args()


class Event(msgspec.Struct, gc=False):
    """One element of `traceEvents`; times are raw tokens in µs."""

    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    pid: int | str | None = None
    tid: int | str | None = None
    ts: Raw = NO_TOKEN
    dur: Raw = NO_TOKEN
    args: Args = NO_ARGS
    id: int | str = ABSENT


class _ArgsText(msgspec.Struct, gc=False):
    args: Raw = NO_TOKEN


_events = msgspec.json.Decoder(list[Event])
_args_texts = msgspec.json.Decoder(list[_ArgsText])
_elements = msgspec.json.Decoder(list[Raw])


def decode_events(text: bytes) -> list[Event]:
    """All elements of a list's text, without its brackets.

    Raises:
        msgspec.ValidationError: sound JSON up to some place, but of other types.
        msgspec.DecodeError, UnicodeDecodeError, RecursionError: no sound JSON.
    """
    return _events.decode(b"[%b]" % text)


def decode_elements(text: bytes) -> list[Raw]:
    """The raw text of all elements of a list's text, without its brackets.

    Raises:
        msgspec.DecodeError, UnicodeDecodeError, RecursionError: no sound JSON.
    """
    return _elements.decode(b"[%b]" % text)


class EventUnit:
    """Consecutive events of a file, some 256 KiB of text, decoded together.

    Attributes:
        events: what was decoded.
        args: arguments of every event, `NO_ARGS` where it has none.
    """

    __slots__ = ("_args_texts", "_first_id", "_ids", "_text", "args", "events")

    def __init__(self, events: list[Event], first_id: int, text: bytes) -> None:
        """Events without a gap; `text` is theirs, from which `args_texts` are taken when asked for."""
        self.events = events
        self.args = [event.args for event in events]
        self._first_id = first_id
        self._ids: list[int] | None = None
        self._text = text
        self._args_texts: Sequence[Raw] | None = None

    @classmethod
    def from_parts(cls, events: list[Event], ids: list[int], args: Sequence[Raw]) -> "EventUnit":
        """Events that were read one by one, with their positions and the raw text of their arguments."""
        unit = cls(events, 0, b"")
        unit._ids, unit._args_texts = ids, args
        return unit

    def event_ids(self) -> npt.NDArray[np.int64]:
        """Position of every event in the file's list of events."""
        if self._ids is None:
            return np.arange(self._first_id, self._first_id + len(self.events))
        return np.array(self._ids, np.int64)

    def args_texts(self) -> Sequence[Raw]:
        """The raw text of each event's `args`, empty where absent; costs a second look at the text."""
        if self._args_texts is None:
            self._args_texts = [element.args for element in _args_texts.decode(b"[%b]" % self._text)]
        return self._args_texts
