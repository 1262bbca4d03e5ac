"""Arithmetic of attention. In: inputs of a call. Out: FLOPs, and the shapes that are read or written.

Two products forward, five backward; a causal mask halves each. Where sequences of several lengths are packed into one
tensor, their lengths lie on the device. The longest is stated, though: where as many sequences of its length fill the
tensor, all have it. Not handled: packed sequences of several lengths, and windows that are narrower than the sequence.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from traceforge.operation.inputs import Inputs, Shape

Parts = tuple[float, Sequence[Shape]]
"""FLOPs, and the shapes that are read or written."""

_BACKWARD = 2.5  # five products against the two of forward
_POSITIONS_FIRST = 1
_HEADS_FIRST = 2
_NO_WINDOW = -1


@dataclass(frozen=True, slots=True)
class Packing:
    """Where the lengths of packed sequences stand.

    Attributes:
        ends: place of the ends of the queries' sequences.
        longest: place of the length of the longest of these; that of the keys is next.
        is_paged: keys lie in pages of a pool, whose size says nothing.
    """

    ends: int
    longest: int
    is_paged: bool = False


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Sizes of a call: sequences, heads, positions of queries and keys, and shapes of what is moved."""

    sequences: int
    heads: int
    queries: int
    keys: int
    moved: Sequence[Shape]


def attention(
    causal: int,
    *,
    first: int = 0,
    is_backward: bool = False,
    positions_first: bool = False,
    packing: Packing | None = None,
    window: int | None = None,
) -> Callable[[Inputs], Parts | None]:
    """The model of an operation.

    Args:
        causal: place of the flag; a number but 0 means causal.
        first: place of the query; key and value follow.
        is_backward: whether it makes gradients.
        positions_first: whether positions stand before heads in tensors of four dimensions.
        packing: where the lengths of packed sequences stand, if they may be packed.
        window: place of how far a query looks back; how far it looks ahead is next.
    """
    sequence = _POSITIONS_FIRST if positions_first else _HEADS_FIRST

    def model(inputs: Inputs) -> Parts | None:
        tensors = inputs.shapes[first : first + 3]
        is_causal = inputs.value(causal)
        if is_causal is None or _is_narrow(inputs, window) or len(tensors) < 3:
            return None
        is_packed = packing is not None and prod(inputs.shapes[packing.ends] or (0,)) > 0
        sizes = _packed(inputs, tensors, packing) if packing and is_packed else _dense(tensors, sequence)
        if sizes is None:
            return None
        width = tensors[0][-1] + tensors[2][-1]
        products = 2 * sizes.sequences * sizes.heads * sizes.queries * sizes.keys * width
        done = products / 2 if is_causal else products
        return (done * _BACKWARD, [*sizes.moved] * 2) if is_backward else (done, sizes.moved)

    return model


def _is_narrow(inputs: Inputs, window: int | None) -> bool:
    return window is not None and any(inputs.value(place) not in (None, _NO_WINDOW) for place in (window, window + 1))


def _dense(tensors: Sequence[Shape], sequence: int) -> _Sizes | None:
    query, key, value = tensors
    if not len(query) == len(key) == len(value) == 4:
        return None
    moved = [query, key, value, (*query[:3], value[3])]
    return _Sizes(query[0], query[3 - sequence], query[sequence], key[sequence], moved)


def _packed(inputs: Inputs, tensors: Sequence[Shape], packing: Packing) -> _Sizes | None:
    """Sequences that are all as long as the longest one; None where they are not."""
    query, key, value = (shape[1:] if len(shape) == 4 and shape[0] == 1 else shape for shape in tensors)
    longest, most_keys = (inputs.value(packing.longest + more) for more in (0, 1))
    if not len(query) == len(key) == len(value) == 3 or not isinstance(longest, int) or not isinstance(most_keys, int):
        return None
    count = prod(inputs.shapes[packing.ends]) - 1
    # Of a pool of pages only the longest length is known, and no sequence has fewer keys than queries.
    keys = count * longest if packing.is_paged else key[0]
    if count * longest != query[0] or count * most_keys != keys:
        return None
    moved = [query, (keys, *key[1:]), (keys, *value[1:]), (*query[:2], value[2])]
    return _Sizes(count, query[1], longest, most_keys, moved)
