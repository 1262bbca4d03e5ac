"""Inputs of a call as traces write them. In: JSON lists of shapes, element types and values. Out: `Inputs`.

Not handled: tensors without storage of their own (expanded ones), as strides are not recorded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

import msgspec

from traceforge.reading.json_values import UNDECODABLE

Shape = tuple[int, ...]

_BYTES = MappingProxyType(
    {
        "double": 8, "float": 4, "c10::Half": 2, "c10::BFloat16": 2, "int": 4, "long int": 8, "long": 8, "short": 2,
        "signed char": 1, "unsigned char": 1, "bool": 1, "c10::complex<float>": 8, "c10::complex<double>": 16,
        "short int": 2, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1, "c10::Float8_e4m3fnuz": 1,
        "c10::Float8_e5m2fnuz": 1, "c10::Float8_e8m0fnu": 1,
    }
)  # fmt: skip
_FLOATING = frozenset({"double", "float"})
# Numbers of element types as PyTorch passes them (c10::ScalarType).
_SCALAR_TYPE_BYTES = MappingProxyType(
    {0: 1, 1: 1, 2: 2, 3: 4, 4: 8, 5: 2, 6: 4, 7: 8, 9: 8, 10: 16, 11: 1, 15: 2, 23: 1, 24: 1, 25: 1, 26: 1, 44: 1}
)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of one call.

    Attributes:
        shapes: of tensors; of what is no tensor, empty.
        lists: shapes of the tensors of lists; of what is no list of tensors, empty.
        types: of elements.
        values: of what is no tensor.
    """

    shapes: Sequence[Shape]
    types: Sequence[str]
    values: Sequence[str]
    lists: Sequence[Sequence[Shape]] = ()

    @property
    def dtype(self) -> str | None:
        """Element type of the first tensor; None where it is unknown."""
        return next((name for name, shape in zip(self.types, self.shapes, strict=False) if shape and name), None)

    def size_bytes(self, place: int) -> int | None:
        """Bytes of a tensor; None where its type is unknown, 0 where there is none."""
        if place >= len(self.shapes) or not self.shapes[place]:
            return 0
        element = self.element_bytes(place)
        return None if element is None else element * prod(self.shapes[place])

    def element_bytes(self, place: int) -> int | None:
        """Bytes of an element; None where the type is unknown."""
        return element_bytes(self.types[place]) if place < len(self.types) else None

    def value(self, place: int) -> object:
        """The value of an input that is no tensor; None where it was not recorded."""
        text = self.values[place] if place < len(self.values) else ""
        if text in ("True", "False"):
            return text == "True"
        try:
            return msgspec.json.decode(text.replace("True", "true").replace("False", "false"))
        except UNDECODABLE:
            return None

    def integers(self, place: int, count: int) -> list[int] | None:
        """A list of `count` integers, of which one may stand for all; None where it was not recorded."""
        value = self.value(place)
        if not isinstance(value, list) or not all(isinstance(one, int) for one in value):
            return None
        return value * count if len(value) == 1 else value if len(value) == count else None


def element_bytes(dtype: str | None) -> int | None:
    """Bytes of an element of a type as traces name it; None where it is unknown."""
    return _BYTES.get(dtype or "")


def scalar_type_bytes(number: object) -> int | None:
    """Bytes of an element of a type as PyTorch numbers it; None where it is unknown."""
    return _SCALAR_TYPE_BYTES.get(number) if isinstance(number, int) else None


def is_floating(dtype: str) -> bool:
    """Whether a type has fractions."""
    return dtype in _FLOATING or dtype.startswith(("c10::Half", "c10::BFloat16", "c10::Float8"))


def inputs_of(shapes: str, types: str | None, concrete: str | None) -> Inputs:
    """Inputs from the texts of a trace.

    Raises:
        msgspec.DecodeError: a text is no JSON list.
    """
    found = msgspec.json.decode(shapes, type=list[object])
    return Inputs([_shape(one) or () for one in found], _texts(types), _texts(concrete), [_list(one) for one in found])


def _shape(found: object) -> Shape | None:
    """A list of sizes; None for anything else."""
    if isinstance(found, list) and all(isinstance(size, int) and size >= 0 for size in found):
        return tuple(found)
    return None


def _list(found: object) -> list[Shape]:
    """The shapes of a list of tensors; none for anything else."""
    if not isinstance(found, list):
        return []
    shapes = [_shape(one) for one in found]
    return [one for one in shapes if one is not None] if None not in shapes else []


def _texts(text: str | None) -> list[str]:
    return [one if isinstance(one, str) else "" for one in msgspec.json.decode(text, type=list[object])] if text else []
