"""Arithmetic of products whose result is of another type than their inputs. In: inputs of a call. Out: FLOPs, bytes.

Eight-bit inputs with scales beside them, a result of two bytes an element or of a type that is stated. Scales, a bias
among them, are not counted as bytes. Not handled: packed weights of four bits.
"""

from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType

from traceforge.operation.inputs import Inputs, scalar_type_bytes

Amounts = tuple[int, int | None]
"""FLOPs, and bytes that have to be moved; None where a type is not known."""
_Rule = Callable[[Inputs], Amounts | None]

_HALF_BYTES = 2


def _product(*, are_weights_rows: bool = False, first: int = 0, result: int | None = None) -> _Rule:
    """(…, M, K) against (…, K, N), or against (…, N, K) where the rows of weights are columns of the result.

    Args:
        are_weights_rows: whether the second input is (…, N, K).
        first: place of the first matrix; the second is next.
        result: place of the type of the result; that of the first input where it is not stated; else two bytes.
    """

    def rule(inputs: Inputs) -> Amounts | None:
        left, right = inputs.shapes[first : first + 2]
        if len(left) < 2 or len(left) != len(right) or left[:-2] != right[:-2]:
            return None
        inner, columns = (right[-1], right[-2]) if are_weights_rows else (right[-2], right[-1])
        if left[-1] != inner:
            return None
        read = [inputs.size_bytes(place) for place in (first, first + 1)]
        written = _HALF_BYTES
        if result is not None:
            written = scalar_type_bytes(inputs.value(result)) or inputs.element_bytes(first) or 0
        moved = None if None in read else sum(one or 0 for one in read) + written * prod(left[:-1]) * columns
        return 2 * prod(left) * columns, moved

    return rule


_ROWS = _product(are_weights_rows=True)

SCALED_WORK: Mapping[str, _Rule] = MappingProxyType(
    {
        "aten::_scaled_mm": _product(result=6),
        "_C::cutlass_scaled_mm": _product(first=1),
        **{
            f"{owner}::f8f8bf16{way}": _ROWS
            for owner in ("fbgemm", "mslk")
            for way in ("", "_rowwise", "_rowwise_batched", "_tensorwise", "_blockwise", "_groupwise", "_cublas")
        },
    }
)
"""How much work a call of an operation is, by its name; raises IndexError where an input is missing."""
