"""Work of kernels that Inductor generates. In: name and inputs of a launch (`triton_poi_…`). Out: FLOPs, bytes.

A launch lists the tensors that its kernel reads and writes, then the number of elements that it computes by dimension.
Idea: it has to move each tensor once, but of none more elements than it computes (of a table, the rows that it takes).
A template that multiplies (`triton_tem_…`) lists two matrices and the result, whose sizes tell the inner
dimension. What is read and written in place, and what is read at several places of a tensor, counts once, so that these
bytes are a lower bound. Not handled: templates of convolutions and of attention, kernels that people write themselves,
and what the launch of older versions (before PyTorch 2.4) or without `record_shapes` does not list.
"""

import re
from collections.abc import Iterator, Sequence
from math import prod

from traceforge.operation.inputs import Inputs, Shape

Amounts = tuple[int | None, int | None]
"""FLOPs, and bytes that have to be moved; None where they are not known."""

_GENERATED = re.compile(r"^triton_(poi|red|per|tem)_")
_REDUCING = ("red", "per")
_OTHER_TEMPLATE = re.compile(r"conv|attention|sdpa", re.IGNORECASE)
_MOST_DIMENSIONS = 3


def is_generated(operation: str) -> bool:
    """Whether an operation is the launch of a kernel that Inductor generated."""
    return _GENERATED.match(operation) is not None


def generated_work_of(operation: str, inputs: Inputs) -> Amounts | None:
    """Work of one launch; None where it is none, or its inputs do not tell."""
    found = _GENERATED.match(operation)
    tensors = [place for place, shape in enumerate(inputs.shapes) if shape]
    if found is None or not tensors:
        return None
    if found[1] == "tem":
        return None if _OTHER_TEMPLATE.search(operation) else _template(inputs, tensors)
    computed = _computed(inputs, tensors, fewest=2 if found[1] in _REDUCING else 1)
    return None if computed is None else (None, _bytes(inputs, tensors, computed))


def _computed(inputs: Inputs, tensors: Sequence[int], fewest: int) -> int | None:
    """How many elements a kernel computes: the largest product of its last numbers that a tensor has.

    Other numbers (sizes that are not known at compilation) may stand before those of the dimensions.
    """
    sizes = {prod(inputs.shapes[place]) for place in tensors}
    last = list(_last_numbers(inputs, after=tensors[-1]))
    products = [prod(last[:count]) for count in range(fewest, min(len(last), _MOST_DIMENSIONS) + 1)]
    return max((one for one in products if one in sizes), default=None)


def _last_numbers(inputs: Inputs, after: int) -> Iterator[int]:
    """Whole numbers behind the last tensor, the last first."""
    for place in reversed(range(after + 1, len(inputs.values))):
        value = inputs.value(place)
        if not isinstance(value, int) or value is True or value is False:
            return
        yield value


def _bytes(inputs: Inputs, tensors: Sequence[int], most: int | None = None) -> int | None:
    sizes = [inputs.element_bytes(place) for place in tensors]
    counts = [prod(inputs.shapes[place]) for place in tensors]
    if None in sizes:
        return None
    return sum(
        size * (count if most is None else min(count, most))
        for size, count in zip(sizes, counts, strict=True)
        if size is not None
    )


def _template(inputs: Inputs, tensors: Sequence[int]) -> Amounts | None:
    """A product, whose result is listed last; what is added to it stands anywhere before."""
    flops = {one for one in _products([inputs.shapes[place] for place in tensors]) if one}
    return (flops.pop(), _bytes(inputs, tensors)) if len(flops) == 1 else None


def _products(shapes: Sequence[Shape]) -> Iterator[int]:
    """FLOPs by each pair of matrices whose sizes fit the result: (B, M, K) and (B, K, N) or (K, N)."""
    *others, result = shapes
    if len(result) not in (2, 3):
        return
    columns, count = result[-1], prod(result)
    for place, left in enumerate(others):
        for right in others[place + 1 :]:
            for batch in {1, *result[:-2]}:
                rows = count // (batch * columns) if batch * columns else 0
                inner, rest = divmod(prod(left), batch * rows) if batch * rows else (0, 1)
                if not rest and inner and prod(right) == batch * inner * columns:
                    yield 2 * count * inner
