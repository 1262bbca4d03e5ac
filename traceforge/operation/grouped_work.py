"""Arithmetic of products of many groups, as mixtures of experts have them. In: inputs of a call. Out: FLOPs, bytes.

Idea: each row is multiplied by the matrix of its group, so that the number of rows tells the arithmetic, however they
are shared among groups. How many rows each group has lies in a tensor on the device, which no trace holds. A stacked
input tells their sum; rows that it keeps free (padding, room for the worst case) are counted with the others, so that
the work is then an upper bound. Not handled: groups padded each to one size (`_dynamic`), packed weights of four bits,
experts of which some are on other devices (an expert map), and kernels that no operation with shapes launches.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType

from traceforge.operation.inputs import Inputs, Shape, element_bytes, scalar_type_bytes

Amounts = tuple[int, int | None]
"""FLOPs, and bytes that have to be moved; None where a type is not known."""
_Rule = Callable[[Inputs], Amounts | None]

_HALF_BYTES = 2
_WHOLE = frozenset({"int", "long int", "long"})


def _stacked(*, weight_rows: int, offsets: int | None = None, result: int | None = None) -> _Rule:
    """Rows of all groups one below the other, or the inner dimension of all groups, against a matrix a group.

    Args:
        weight_rows: dimension of the weights that counts columns of the result: 2 of (G, K, N), 1 of (G, N, K).
        offsets: place of the ends of groups, where it is needed to count them.
        result: place of the result's type; that of the first input where it is not stated; else two bytes an element.
    """

    def rule(inputs: Inputs) -> Amounts | None:
        left, right = inputs.shapes[:2]
        groups = inputs.shapes[offsets][0] if offsets is not None and inputs.shapes[offsets] else None
        found = _product(left, right, weight_rows, groups)
        if found is None:
            return None
        flops, out, used = found
        first, second = inputs.element_bytes(0), inputs.element_bytes(1)
        written = _HALF_BYTES if result is None else scalar_type_bytes(inputs.value(result)) or first
        if first is None or second is None or written is None:
            return flops, None
        return flops, first * prod(left) + second * used + written * prod(out)

    return rule


def _product(left: Shape, right: Shape, weight_rows: int, groups: int | None) -> tuple[int, Shape, int] | None:
    """FLOPs, shape of the result, and how many elements of the second input are read; None where they do not fit."""
    if len(left) == 2 and len(right) == 3:
        inner, outer = right[3 - weight_rows], right[weight_rows]
        # A group without rows is not read, so that no more groups are than there are rows.
        used = inner * outer * min(right[0], left[0])
        return (2 * prod(left) * outer, (left[0], outer), used) if left[1] == inner else None
    return None if weight_rows != 2 else _of_other_dimensions(left, right, groups)


def _of_other_dimensions(left: Shape, right: Shape, groups: int | None) -> tuple[int, Shape, int] | None:
    """The same where columns of the result, or the inner dimension, are divided among groups, or nothing is."""
    if len(left) == len(right) == 2 and groups is not None and left[1] == right[0]:
        return 2 * prod(left) * right[1], (groups, left[0], right[1]), prod(right)
    if len(left) == 3 and len(right) == 2 and left[2] == right[0]:
        return 2 * left[1] * prod(right), (left[1], right[1]), prod(right)
    if len(left) == len(right) == 3 and left[0] == right[0] and left[2] == right[1]:
        return 2 * prod(left) * right[2], (*left[:2], right[2]), prod(right)
    return None


def _lists(inputs: Inputs) -> Amounts | None:
    """A list of inputs (M, K) and one of weights (N, K): each pair is a product of its own."""
    lefts, rights = inputs.lists[:2]
    if not lefts or len(lefts) != len(rights) or not all(map(_fit, lefts, rights)):
        return None
    # Traces name no type for lists of tensors.
    return sum(2 * prod(left) * right[0] for left, right in zip(lefts, rights, strict=True)), None


def _fit(left: Shape, right: Shape) -> bool:
    return len(left) == len(right) == 2 and left[1] == right[1]


def _experts(inputs: Inputs) -> Amounts | None:
    """Hidden states (T, K), weights (E, I, K) and (E, K, J), and the experts (T, k) of each token.

    Each token goes through two products in each of its k experts. I is J, or twice that with a gate.
    """
    hidden, first, second, _, chosen = inputs.shapes[:5]
    if not len(hidden) == len(chosen) == 2 or not len(first) == len(second) == 3 or hidden[0] != chosen[0]:
        return None
    if first[0] != second[0] or first[2] != hidden[1] or second[1] != hidden[1]:
        return None
    if first[1] not in (second[2], 2 * second[2]) or _has_expert_map(inputs.shapes[5:], inputs.types[5:]):
        return None
    rows = prod(chosen)
    flops = 2 * rows * hidden[1] * (first[1] + second[2])
    sizes = [element_bytes(one) for one in inputs.types[:3]]
    if None in sizes or len(sizes) < 3:
        return flops, None
    used = min(first[0], rows)
    each = [2 * prod(hidden), used * prod(first[1:]), used * prod(second[1:])]
    return flops, sum(size * count for size, count in zip(sizes, each, strict=True) if size is not None)


def _has_expert_map(shapes: Sequence[Shape], types: Sequence[str]) -> bool:
    """Whether one of the inputs says which experts are here: a list of whole numbers."""
    return any(len(shape) == 1 and name in _WHOLE for shape, name in zip(shapes, types, strict=False))


_EXPERTS = {
    f"{owner}::{way}_fused_experts": _experts for owner in ("vllm", "sglang") for way in ("inplace", "outplace")
}
_OWNERS = ("fbgemm", "mslk")
_STACKED = _stacked(weight_rows=1)

GROUPED_WORK: Mapping[str, _Rule] = MappingProxyType(
    {
        "aten::_grouped_mm": _stacked(weight_rows=2, offsets=2, result=4),
        "aten::_scaled_grouped_mm": _stacked(weight_rows=2, offsets=4, result=7),
        **{
            f"{owner}::{name}": rule
            for owner in _OWNERS
            for name, rule in {
                "f8f8bf16_rowwise_grouped_stacked": _STACKED,
                "f8f8bf16_groupwise_grouped": _STACKED,
                "bf16bf16bf16_grouped_stacked": _STACKED,
                "f8f8bf16_rowwise_grouped": _lists,
                "f8f8bf16_rowwise_grouped_cat": _lists,
                "bf16bf16bf16_grouped": _lists,
                "bf16bf16bf16_grouped_cat": _lists,
            }.items()
        },
        **_EXPERTS,
    }
)
"""How much work a call of an operation is, by its name; raises IndexError where an input is missing."""
