"""Inputs of operations whose work can be counted. In: JSON texts of arguments. Out: frames of raw.operation_input.

Idea: the work of a product, a convolution or an attention follows from the shapes of its inputs, and the bytes of what
does little arithmetic or was generated do, too; only these events are looked at, since shapes of all operations would
be most of the text of a file.
Not handled: arguments that are no JSON object, or do not list shapes (no row; their number is not counted, as most
traces are recorded without shapes).
"""

import re

import msgspec
from msgspec import Raw, field

from traceforge.reading.data_operations import family_of
from traceforge.reading.json_values import NO_TOKEN, UNDECODABLE
from traceforge.records import Batch

_SHAPED = re.compile(
    r"mm(?:_|$|\b)|gemm|linear|matmul|conv|attention|attn|flash|mha|fused_experts|f8f8|bf16bf16"
    r"|^triton_(?:poi|red|per|tem)_",
    re.IGNORECASE,
)
_OPERATIONS = frozenset({"cpu_op", "Operator"})


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

    @staticmethod
    def is_wanted(phase: str | None, category: str | None, name: str | None) -> bool:
        """Whether an event is an operation whose work follows from its inputs."""
        if phase != "X" or category not in _OPERATIONS or name is None:
            return False
        return family_of(name) is not None or _SHAPED.search(name) is not None

    def add_text(self, event_id: int, text: bytes) -> None:
        """Take the inputs of one event that is wanted."""
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
