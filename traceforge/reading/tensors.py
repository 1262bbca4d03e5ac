"""Tensors among the inputs and outputs of a node. In: lists of values, shapes, types and strides. Out: `Tensor`s.

Idea: PyTorch writes a tensor as `[tensor id, storage id, offset, elements, bytes an element, device]`, alone, in a list
or in a list of lists; the type beside it (`GenericList[Tensor(float),…]`) says which values are tensors.
Seen: PyTorch execution traces 1.0.1 to 1.1.1. Not handled: tuples with other things than tensors between tensors.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TENSOR_TYPE = re.compile(r"Tensor\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_NUMBERS_OF_A_TENSOR = 5


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a node.

    Attributes:
        argument: which input or output of the node it is, or is part of, from 0.
        element: place in the list that the argument is; None where it is no list.
        tensor_id: identity of the tensor object in its process.
        storage_id: identity of its memory; 0 where it has none.
        storage_position: where it begins in its memory, elements.
        element_count: number of elements.
        element_bytes: size of an element, bytes.
        device: such as `cuda:0`.
        dtype: as written, such as `float` or `c10::Half`; None where not stated.
        shape: sizes of its dimensions; None where not stated.
        strides: elements from one to the next in each dimension; None where not stated.
    """

    argument: int
    element: int | None
    tensor_id: int
    storage_id: int
    storage_position: int
    element_count: int
    element_bytes: int
    device: str | None
    dtype: str | None
    shape: tuple[int, ...] | None
    strides: tuple[int, ...] | None

    @property
    def size_bytes(self) -> int:
        """Size of its elements, bytes."""
        return self.element_count * self.element_bytes


def tensors_of(values: object, shapes: object, types: object, strides: object = ()) -> list[Tensor]:
    """All tensors among the arguments of a node.

    Args:
        values: one an argument; anything but a list holds none.
        shapes: beside them, nested in the same way.
        types: one text an argument.
        strides: nested like the shapes.
    """
    found: list[Tensor] = []
    for argument, value in enumerate(_items(values)):
        kind = _item(types, argument)
        if not isinstance(kind, str) or "Tensor" not in kind:
            continue
        dtypes = _TENSOR_TYPE.findall(kind)
        leaves = list(_leaves(value, _item(shapes, argument), _item(strides, argument)))
        is_alone = len(leaves) == 1 and leaves[0][0] is value
        for place, (tensor, shape, stride) in enumerate(leaves):
            dtype = dtypes[min(place, len(dtypes) - 1)] if dtypes else None
            device = tensor[_NUMBERS_OF_A_TENSOR] if len(tensor) > _NUMBERS_OF_A_TENSOR else None
            tensor_id, storage_id, offset, count, size = tensor[:_NUMBERS_OF_A_TENSOR]
            found.append(
                Tensor(
                    argument=argument,
                    element=None if is_alone else place,
                    tensor_id=tensor_id,
                    storage_id=storage_id,
                    storage_position=offset,
                    element_count=count,
                    element_bytes=size,
                    device=str(device) if device else None,
                    dtype=dtype,
                    shape=_sizes(shape),
                    strides=_sizes(stride),
                )
            )
    return found


def _leaves(value: object, shape: object, stride: object) -> Iterator[tuple[Sequence[int], object, object]]:
    """The tensors in a value, with the shapes and strides that stand in the same places."""
    if not isinstance(value, list | tuple):
        return
    if _is_tensor(value):
        yield value, shape, stride
        return
    for place, inner in enumerate(value):
        yield from _leaves(inner, _item(shape, place), _item(stride, place))


def _is_tensor(value: Sequence[object]) -> bool:
    return len(value) in (_NUMBERS_OF_A_TENSOR, _NUMBERS_OF_A_TENSOR + 1) and all(
        isinstance(number, int) and abs(number) < 2**63 for number in value[:_NUMBERS_OF_A_TENSOR]
    )


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _item(value: object, place: int) -> object:
    items = _items(value)
    return items[place] if place < len(items) else None


def _sizes(value: object) -> tuple[int, ...] | None:
    items = _items(value)
    if not isinstance(value, list | tuple) or not all(isinstance(size, int) and abs(size) < 2**63 for size in items):
        return None
    return tuple(size for size in items if isinstance(size, int))


def tensor_columns(tensor: Tensor) -> dict[str, object]:
    """A tensor as columns of raw.chakra_tensor."""
    return {
        "argument": tensor.argument,
        "element": tensor.element,
        "tensor_id": tensor.tensor_id,
        "storage_id": tensor.storage_id,
        "storage_position": tensor.storage_position,
        "element_count": tensor.element_count,
        "element_bytes": tensor.element_bytes,
        "dtype": tensor.dtype,
        "device": tensor.device,
        "shape": tensor.shape,
        "strides": tensor.strides,
    }
