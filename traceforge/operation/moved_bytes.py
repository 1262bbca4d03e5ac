"""How many bytes a call moves that does little arithmetic. In: its inputs. Out: bytes that it has to move at least.

Each input is read once and each result written once, as if nothing were in a cache. Norms, softmax, element-wise work,
copies, embeddings, reductions, `_foreach_` and fused optimisers. Traces name no element type for lists of tensors: it
is taken from the kernel's name. Not handled: outputs of reductions, strides, operations of extensions, and the tensors
that a version of PyTorch does not list.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType

from traceforge.operation.inputs import Inputs, Shape, element_bytes, is_floating
from traceforge.reading.data_operations import family_of

_OPAQUE = re.compile(r"OpaqueType<(\d+)u?>")
_ELEMENT = re.compile(r"(?:Functor\w*|CatArrayBatchedCopy\w*)<(?:\(anonymous namespace\)::)?(c10::\w+|double|float)\b")
_BOOL_BYTES = 1

_Rule = Callable[[Inputs, int | None], int | None]
"""Bytes of a call from its inputs and the element size that its kernel names."""


def moved_bytes_of(operation: str, inputs: Inputs, kernel: str) -> int | None:
    """Bytes that a call has to move at least; None where no rule applies, or its inputs do not tell.

    Args:
        operation: name, such as `aten::add_`.
        inputs: of the call.
        kernel: full name of its longest kernel.
    """
    family = family_of(operation)
    if family is None:
        return None
    if family == "foreach":
        return _foreach(operation, inputs, _element_bytes(kernel))
    if family in ("pointwise", "comparison"):
        return _pointwise(operation, inputs, is_comparison=family == "comparison")
    return _RULES[family](inputs, _element_bytes(kernel))


def _element_bytes(kernel: str) -> int | None:
    """Size of an element, by the name of a kernel; None where it does not tell."""
    if found := _OPAQUE.search(kernel):
        return int(found[1])
    found = _ELEMENT.search(kernel)
    return element_bytes(found[1]) if found else None


def _pointwise(operation: str, inputs: Inputs, *, is_comparison: bool) -> int | None:
    tensors = [place for place, shape in enumerate(inputs.shapes) if shape]
    result = _broadcast([inputs.shapes[place] for place in tensors])
    if not tensors or result is None:
        return None
    types = [inputs.types[place] if place < len(inputs.types) else "" for place in tensors]
    written = element_bytes(types[0]) if operation.endswith("_") else _BOOL_BYTES if is_comparison else _promoted(types)
    return _sum(*(inputs.size_bytes(place) for place in tensors), None if written is None else written * prod(result))


def _broadcast(shapes: Sequence[Shape]) -> Shape | None:
    """The shape that all are broadcast to; None where they do not fit."""
    result: list[int] = []
    for sizes in zip(*([1] * (max(map(len, shapes)) - len(shape)) + list(shape) for shape in shapes), strict=True):
        wanted = set(sizes) - {1}
        if len(wanted) > 1:
            return None
        result.append(wanted.pop() if wanted else 1)
    return tuple(result)


def _promoted(types: Sequence[str]) -> int | None:
    """Bytes of an element of the result: of the widest type with fractions if there is one, else of the widest."""
    sizes = [element_bytes(one) for one in types if is_floating(one)] or [element_bytes(one) for one in types]
    known = [size for size in sizes if size is not None]
    return max(known) if len(known) == len(sizes) else None


def _reads(*places: int, writes: Sequence[int] = ()) -> _Rule:
    """Some inputs are read, and results of the size of others (or of the same) are written."""

    def rule(inputs: Inputs, _element: int | None) -> int | None:
        first = (*places, *writes)[0]
        if first >= len(inputs.shapes) or not inputs.shapes[first]:
            return None
        return _sum(*(inputs.size_bytes(place) for place in (*places, *writes)))

    return rule


def _index_select(inputs: Inputs, _element: int | None) -> int | None:
    """Table, dimension, index: the rows that are asked for are read and written."""
    table, index, dimension = inputs.shapes[0], inputs.shapes[2], inputs.value(1)
    element = inputs.element_bytes(0)
    if not table or not isinstance(dimension, int) or not -len(table) <= dimension < len(table) or element is None:
        return None
    place = dimension % len(table)
    rows = prod(table[:place]) * prod(table[place + 1 :])
    return _sum(2 * element * rows * prod(index), inputs.size_bytes(2))


def _gather(inputs: Inputs, _element: int | None) -> int | None:
    """Table, dimension, index: an element is read and written for each index."""
    element = inputs.element_bytes(0)
    if not inputs.shapes[2] or element is None:
        return None
    return _sum(2 * element * prod(inputs.shapes[2]), inputs.size_bytes(2))


def _embedding_backward(inputs: Inputs, _element: int | None) -> int | None:
    """Gradient, indices, number of rows: the gradient of the whole table is written."""
    gradient, rows, element = inputs.shapes[0], inputs.value(2), inputs.element_bytes(0)
    if not gradient or not isinstance(rows, int) or element is None:
        return None
    return _sum(inputs.size_bytes(0), inputs.size_bytes(1), element * rows * gradient[-1])


def _dropout(inputs: Inputs, _element: int | None) -> int | None:
    """The input is read, the result and a mask of one byte an element are written."""
    once = inputs.size_bytes(0)
    return 2 * once + _BOOL_BYTES * prod(inputs.shapes[0]) if once else None


def _cat(inputs: Inputs, element: int | None) -> int | None:
    tensors = inputs.lists[0]
    return 2 * element * _elements(tensors) if element and tensors else None


def _lists(*times: int) -> _Rule:
    """Lists of tensors of one type, each read or written so many times."""

    def rule(inputs: Inputs, element: int | None) -> int | None:
        if element is None or not inputs.lists[0]:
            return None
        return element * sum(count * _elements(one) for count, one in zip(times, inputs.lists, strict=False))

    return rule


def _foreach(operation: str, inputs: Inputs, element: int | None) -> int | None:
    """Lists are read, and one of the size of the first is written."""
    if "norm" in operation:
        return _lists(1)(inputs, element)
    if operation.removesuffix("_").endswith(("_zero", "_copy")):
        return _lists(1, 1)(inputs, element)
    return _lists(2, *[1] * (len(inputs.lists) - 1))(inputs, element)


def _elements(tensors: Sequence[Shape]) -> int:
    return sum(map(prod, tensors))


def _sum(*sizes: int | None) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


_RULES: Mapping[str, _Rule] = MappingProxyType(
    {
        "fill": _reads(writes=(0,)),
        "reduction": _reads(0),
        "map": _reads(0, writes=(0,)),
        "gradient": _reads(0, 1, writes=(1,)),
        "copy": _reads(1, writes=(0,)),
        "native_dropout": _dropout,
        "index_select": _index_select,
        "gather": _gather,
        "embedding_dense_backward": _embedding_backward,
        "cat": _cat,
        "_cat": _cat,
        # Parameters, gradients, first and second moments, and the largest second moments where they are kept.
        "_fused_adam": _lists(2, 1, 2, 2, 2),
        "_fused_adamw": _lists(2, 1, 2, 2, 2),
        # Parameters, gradients, momentum.
        "_fused_sgd": _lists(2, 1, 2),
    }
)
