"""JSON text to typed events, fast. In: the text of whole events. Out: `Unit`s of `Event` structs.

Idea: msgspec decodes only the fields that become columns; times stay raw tokens, so no digit is lost. Absent integers
are the smallest int64, so that a column packs without looking at each value (a file that states just that number
reads as if it stated none). What does not fit the types raises and is read by `lenient` instead.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Raw, field

ABSENT = -(2**63)
NO_TOKEN = Raw(b"")
UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding damaged text raises; `msgspec.ValidationError` means sound JSON of other types."""


class Args(msgspec.Struct, gc=False):
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


class Event(msgspec.Struct, gc=False):
    """One element of `traceEvents`; times are raw tokens in µs."""

    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    pid: int | str | None = None
    tid: int | str | None = None
    ts: Raw = NO_TOKEN
    dur: Raw = NO_TOKEN
    args: Args | None = None
    id: int | str = ABSENT


class _ArgsText(msgspec.Struct, gc=False):
    args: Raw = NO_TOKEN


_events = msgspec.json.Decoder(list[Event])
_args_texts = msgspec.json.Decoder(list[_ArgsText])
_elements = msgspec.json.Decoder(list[Raw])


class Unit:
    """Consecutive events of a file, a few hundred KiB of text, decoded together.

    Attributes:
        events: what was decoded.
        first_id: position in the list of events of the first element of the unit.
        ids: positions of the events where some elements between them were lost; else None.
        length: number of list elements the unit stands for, lost ones included.
    """

    __slots__ = ("_args", "_text", "events", "first_id", "ids", "length")

    def __init__(self, events: list[Event], first_id: int, text: bytes) -> None:
        self.events = events
        self.first_id = first_id
        self.ids: list[int] | None = None
        self.length = len(events)
        self._text = text
        self._args: Sequence[Raw] | None = None

    @classmethod
    def from_parts(cls, events: list[Event], ids: list[int], args: Sequence[Raw], length: int, first_id: int) -> "Unit":
        """A unit of events that were read one by one, with the raw text of their arguments."""
        unit = cls(events, first_id, b"")
        unit.ids, unit.length, unit._args = ids, length, args
        return unit

    def event_ids(self) -> npt.NDArray[np.int64]:
        """Position of every event in the file's list of events."""
        if self.ids is None:
            return np.arange(self.first_id, self.first_id + len(self.events))
        return np.array(self.ids, np.int64)

    def args_texts(self) -> Sequence[Raw]:
        """The raw text of each event's `args`, empty where absent; costs a second look at the text."""
        if self._args is None:
            self._args = [element.args for element in _args_texts.decode(self._text)]
        return self._args
