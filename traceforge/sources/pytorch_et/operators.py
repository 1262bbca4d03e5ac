"""Operators of `c10d`, read by the schema that stands beside them. In: a node's name, schema and inputs. Out: columns.

Idea: the schema names the arguments (`c10d::allgather_(Tensor[][] output_tensors, Tensor[] input_tensors, ...)`), so
what is sent and what is received follows from names, not from a list of operators.
Seen: PyTorch 2.1 to 2.13. Not handled: the group, which is an object without a name; the functional operator above it
names the group. Roots of broadcasts and reductions.
"""

import re

from traceforge.reading.tensors import Tensor
from traceforge.sources.pytorch_et.arguments import Arguments
from traceforge.sources.pytorch_et.positional import integers_in

_SCHEMA = re.compile(r"[\w:.]+\((?P<arguments>.*)\)\s*->", re.DOTALL)
_BETWEEN_ARGUMENTS = re.compile(r",\s*(?![^()]*\))")
_RECEIVES = "recv"


class Operator:
    """A call of an operator.

    Args:
        name: such as `c10d::allreduce_`.
        schema: of the operator; None where it is not stated.
        inputs: of the call.
    """

    def __init__(self, name: str, schema: str | None, inputs: Arguments) -> None:
        self.name = name.rpartition("::")[2].strip("_")
        self._places = argument_places(schema)
        self._values = inputs.values if isinstance(inputs.values, list) else []
        self._tensors = inputs.tensors()

    @property
    def sent(self) -> list[Tensor]:
        """Tensors that the process gives."""
        if self.name.startswith(_RECEIVES):
            return []
        outputs = self._output_places()
        return [tensor for tensor in self._tensors if tensor.argument not in outputs]

    @property
    def received(self) -> list[Tensor]:
        """Tensors that the process gets; those that it gives, where the operator works in place."""
        outputs = self._output_places()
        return [tensor for tensor in self._tensors if not outputs or tensor.argument in outputs]

    def _output_places(self) -> set[int]:
        return {place for name, place in self._places.items() if name.startswith("output")}

    def argument(self, name: str) -> object:
        """The value of an argument; None where the operator has none of that name."""
        place = self._places.get(name)
        return self._values[place] if place is not None and place < len(self._values) else None

    def columns(self) -> dict[str, object]:
        """Columns of raw.chakra_communication that only operators have."""
        flag = self.argument("async_op")
        return {
            "in_split_sizes": integers_in(self.argument("input_split_sizes")),
            "out_split_sizes": integers_in(self.argument("output_split_sizes")),
            "source_rank": _integer(self.argument("src")),
            "destination_rank": _integer(self.argument("dst")),
            "tag": _integer(self.argument("tag")),
            "is_asynchronous": flag if isinstance(flag, bool) else None,
        }


def argument_places(schema: str | None) -> dict[str, int]:
    """Place of each argument of an operator by name; empty where there is no schema."""
    match = _SCHEMA.match(schema or "")
    if match is None:
        return {}
    arguments = [text for text in _BETWEEN_ARGUMENTS.split(match["arguments"]) if text.strip() not in ("", "*")]
    return {text.partition("=")[0].split()[-1]: place for place, text in enumerate(arguments)}


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None
