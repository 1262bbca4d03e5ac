"""Inputs of operations whose work can be counted. In: arguments of events. Out: frames of raw.operation_input.

Idea: a product, a convolution or an attention follows from the shapes of its inputs; only the events named so
(`Flag.SHAPED`) are looked at, since shapes of all operations would be most of the text of a file.
Not handled: arguments that are no JSON object, or do not list shapes (no row; their number is not counted, as most
traces are recorded without shapes).
"""

import msgspec
import numpy as np
from msgspec import Raw, field

from traceforge.reading.json_values import NO_TOKEN, UNDECODABLE
from traceforge.records import Batch
from traceforge.sources.kineto.decode import EventUnit
from traceforge.sources.kineto.kinds import Flag, FlagArray


class _InputArgs(msgspec.Struct, gc=False):
    shapes: Raw = field(default=NO_TOKEN, name="Input Dims")
    types: Raw = field(default=NO_TOKEN, name="Input type")
    old_types: Raw = field(default=NO_TOKEN, name="Input Types")
    concrete: Raw = field(default=NO_TOKEN, name="Concrete Inputs")


_decoder = msgspec.json.Decoder(_InputArgs)


class OperationInputs:
    """Collects inputs until `flush` makes a frame of them."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, str, str | None, str | None]] = []

    def add(self, unit: EventUnit, flags: FlagArray) -> None:
        """Take the inputs in a unit, whose events have the given `Flag`s."""
        places = np.flatnonzero(flags & Flag.SHAPED).tolist()
        if places:
            texts, event_ids = unit.args_texts(), unit.event_ids()
            for place in places:
                self.add_text(int(event_ids[place]), int(flags[place]), bytes(texts[place]))

    def add_text(self, event_id: int, flags: int, text: bytes) -> None:
        """Take the inputs of one event, which has the given `Flag`s."""
        if not flags & Flag.SHAPED:
            return
        try:
            args = _decoder.decode(text)
        except UNDECODABLE:
            return
        if bytes(args.shapes)[:1] == b"[":
            types = args.types or args.old_types
            self._rows.append((event_id, _text(args.shapes) or "", _text(types), _text(args.concrete)))

    def flush(self) -> list[Batch]:
        """The collected rows, if any."""
        import polars as pl

        if not self._rows:
            return []
        schema = {"event_id": pl.Int64, "shapes": pl.String, "types": pl.String, "concrete": pl.String}
        frame = pl.DataFrame(self._rows, schema=schema, orient="row")
        self._rows = []
        return [Batch("raw.operation_input", frame)]


def _text(token: Raw) -> str | None:
    """A list as written; NULL for anything else."""
    text = bytes(token)
    return text.decode("utf-8", "replace") if text[:1] == b"[" else None
