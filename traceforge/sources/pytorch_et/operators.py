"""Operators of `c10d`, read by the schema that stands beside them. In: a node and its inputs. Out: columns.

Idea: the schema names the arguments (`c10d::allgather_(Tensor[][] output_tensors, Tensor[] input_tensors, …)`), so what
is sent and what is received follows from names, not from a list of operators.
Seen: PyTorch 2.1 to 2.13. Not handled: the group, which is an object without a name; the functional operator above it
names the group.
"""

import re

from traceforge.sources.pytorch_et.arguments import Arguments
from traceforge.sources.pytorch_et.positional import integers_in
from traceforge.sources.pytorch_et.tensors import Tensor

_SCHEMA = re.compile(r"^[\w:.]+\((.*)\) ?->", re.DOTALL)
_ARGUMENT = re.compile(r"([\w.\[\]?]+(?:\([^()]*\))?[\[\]?]*)\s+(\w+)\s*(?:=[^,]*)?(?:,|$)")


def argument_places(schema: str | None) -> dict[str, int]:
    """Place of each argument of an operator by name; empty where there is no schema."""
    match = _SCHEMA.match(schema or "")
    if match is None:
        return {}
    names = [argument[2] for argument in _ARGUMENT.finditer(match[1].replace("*, ", ""))]
    return {name: place for place, name in enumerate(names)}
