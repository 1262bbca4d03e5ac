"""How much arithmetic and memory a call takes. In: name and inputs of an operation. Out: `Work`: FLOPs and bytes.

Closed forms of products, convolutions and attention; a multiplication and an addition are two FLOPs, an added bias is
one an element of the result. Bytes are those of inputs and result, each moved once. What the inputs do not tell (a
stride that was not recorded, whether attention is causal, the lengths of packed sequences) makes the result unknown:
nothing is guessed. Not handled: element-wise work, norms, embeddings, optimisers, sparse and grouped products, kernels
of Triton.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

import msgspec

from traceforge.reading.json_values import UNDECODABLE

Shape = tuple[int, ...]

_BYTES = MappingProxyType(
    {
        "double": 8, "float": 4, "c10::Half": 2, "c10::BFloat16": 2, "int": 4, "long int": 8, "signed char": 1,
        "unsigned char": 1, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1, "c10::Float8_e4m3fnuz": 1,
        "c10::Float8_e5m2fnuz": 1,
    }
)  # fmt: skip
_BACKWARD_ATTENTION = 2.5  # five products against the two of forward


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of one call: shapes (of what is no tensor, empty), element types, and values of what is no tensor."""

    shapes: Sequence[Shape]
    types: Sequence[str]
    values: Sequence[str]

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


@dataclass(frozen=True, slots=True)
class Work:
    """One call: FLOPs, bytes (None where a type is unknown), element type of the first tensor (None where unknown)."""

    flops: int
    moved_bytes: int | None
    dtype: str | None


_Parts = tuple[float, Sequence[Shape]]
"""FLOPs, and the shapes that are read or written."""
_Model = Callable[[Inputs], _Parts | None]


def work_of(operation: str, shapes: str, types: str | None, concrete: str | None) -> Work | None:
    """Work of one call; None where the operation has no model or its inputs do not tell.

    Args:
        operation: name, such as `aten::mm`.
        shapes, types, concrete: JSON lists as the trace has them.
    """
    model = _MODELS.get(operation)
    if model is None:
        return None
    try:
        inputs = Inputs(_shapes(shapes), _texts(types), _texts(concrete))
        found = model(inputs)
    except (IndexError, *UNDECODABLE):
        return None
    if found is None:
        return None
    flops, moved = found
    dtype = next((name for name, shape in zip(inputs.types, inputs.shapes, strict=False) if shape and name), None)
    size = _BYTES.get(dtype or "")
    return Work(round(flops), None if size is None else size * sum(prod(shape) for shape in moved), dtype)


def _shapes(text: str) -> list[Shape]:
    """Shapes of the inputs; what is no list of integers, such as a list of tensors, has none."""
    found = msgspec.json.decode(text, type=list[object])
    return [
        tuple(one) if isinstance(one, list) and all(isinstance(n, int) and n >= 0 for n in one) else () for one in found
    ]


def _texts(text: str | None) -> list[str]:
    return [one if isinstance(one, str) else "" for one in msgspec.json.decode(text, type=list[object])] if text else []


def _product(first: int, *, bias: int | None = None) -> _Model:
    """Matrices at inputs `first` and the next, with as many outer dimensions before rows and columns as they have."""

    def model(inputs: Inputs) -> _Parts | None:
        left, right = inputs.shapes[first], inputs.shapes[first + 1]
        if len(left) != len(right) or len(left) < 2 or left[:-2] != right[:-2] or left[-1] != right[-2]:
            return None
        result = (*left[:-1], right[-1])
        return _with_bias(inputs, 2 * prod(result) * left[-1], [left, right, result], bias)

    return model


def _linear(inputs: Inputs) -> _Parts | None:
    """Input (…, K) and weight (N, K), with a bias where there is a third."""
    left, weight = inputs.shapes[0], inputs.shapes[1]
    if len(weight) != 2 or not left or left[-1] != weight[1]:
        return None
    result = (*left[:-1], weight[0])
    bias = 2 if len(inputs.shapes) > 2 else None
    return _with_bias(inputs, 2 * prod(result) * weight[1], [left, weight, result], bias)


def _with_bias(inputs: Inputs, flops: int, moved: list[Shape], bias: int | None) -> _Parts:
    if bias is None or not inputs.shapes[bias]:
        return flops, moved
    return flops + prod(moved[-1]), [*moved, inputs.shapes[bias]]


def _convolution(*, padding: int, stride: int, dilation: int, transposed: int | None = None) -> _Model:
    """Input (N, C, …) and weight (K, C / groups, …), with the places of the other arguments."""

    def model(inputs: Inputs) -> _Parts | None:
        data, weight = inputs.shapes[0], inputs.shapes[1]
        count = len(weight) - 2
        if count < 1 or len(data) != len(weight):
            return None
        pads, steps, spread = (inputs.integers(place, count) for place in (padding, stride, dilation))
        if pads is None or steps is None or spread is None or 0 in steps:
            return None
        if transposed is not None and inputs.value(transposed) is not False:
            return None
        out = [
            (size + 2 * pad - gap * (kernel - 1) - 1) // step + 1
            for size, kernel, pad, step, gap in zip(data[2:], weight[2:], pads, steps, spread, strict=True)
        ]
        result = (data[0], weight[0], *out)
        return 2 * prod(result) * prod(weight[1:]), [data, weight, result]

    return model


def _convolution_backward(inputs: Inputs) -> _Parts | None:
    """Gradient (N, K, …), input and weight; the same products once for each gradient of a tensor that is asked for."""
    gradient, data, weight = inputs.shapes[:3]
    mask, transposed = inputs.value(10), inputs.value(7)
    if not isinstance(mask, list) or len(weight) < 3 or len(gradient) != len(weight) or transposed is not False:
        return None
    wanted = [shape for shape, asked in zip((data, weight), mask, strict=False) if asked]
    once = 2 * prod(gradient) * prod(weight[1:])
    return once * len(wanted), [gradient, data, weight, *wanted]


def _attention(
    causal: int, *, first: int = 0, sequence: int = 2, factor: float = 1.0, packed: int | None = None
) -> _Model:
    """Query, key and value of four dimensions.

    Args:
        causal: place of the flag; a number but 0 means causal.
        first: place of the query.
        sequence: dimension that counts positions; heads are the other of 1 and 2.
        factor: of the forward products.
        packed: place of the lengths of packed sequences; with them, positions do not tell the work.
    """

    def model(inputs: Inputs) -> _Parts | None:
        query, key, value = inputs.shapes[first : first + 3]
        is_causal = inputs.value(causal)
        if not len(query) == len(key) == len(value) == 4 or is_causal is None:
            return None
        if packed is not None and inputs.shapes[packed]:
            return None
        heads = 3 - sequence
        products = 2 * query[0] * query[heads] * query[sequence] * key[sequence] * (query[3] + value[3])
        halved = products / 2 if is_causal else products
        result = (*query[:3], value[3])
        moved = [query, key, value, result]
        return halved * factor, moved * 2 if factor > 1 else moved

    return model


_POSITIONS_FIRST = 1

_MODELS: Mapping[str, _Model] = MappingProxyType(
    {
        "aten::mm": _product(0),
        "aten::bmm": _product(0),
        "aten::matmul": _product(0),
        "aten::_int_mm": _product(0),
        "aten::_scaled_mm": _product(0),
        "aten::addmm": _product(1, bias=0),
        "aten::baddbmm": _product(1, bias=0),
        "aten::_addmm_activation": _product(1, bias=0),
        "aten::linear": _linear,
        "aten::conv1d": _convolution(stride=3, padding=4, dilation=5),
        "aten::conv2d": _convolution(stride=3, padding=4, dilation=5),
        "aten::conv3d": _convolution(stride=3, padding=4, dilation=5),
        "aten::convolution": _convolution(stride=3, padding=4, dilation=5, transposed=6),
        "aten::_convolution": _convolution(stride=3, padding=4, dilation=5, transposed=6),
        "aten::cudnn_convolution": _convolution(padding=2, stride=3, dilation=4),
        "aten::miopen_convolution": _convolution(padding=3, stride=4, dilation=5),
        "aten::mkldnn_convolution": _convolution(padding=3, stride=4, dilation=5),
        "aten::convolution_backward": _convolution_backward,
        "aten::scaled_dot_product_attention": _attention(5),
        "aten::_scaled_dot_product_flash_attention": _attention(4),
        "aten::_scaled_dot_product_efficient_attention": _attention(6),
        "aten::_scaled_dot_product_cudnn_attention": _attention(6),
        "aten::_flash_attention_forward": _attention(8, sequence=_POSITIONS_FIRST, packed=3),
        "aten::_efficient_attention_forward": _attention(9, sequence=_POSITIONS_FIRST, packed=4),
        "aten::_scaled_dot_product_flash_attention_backward": _attention(
            11, first=1, factor=_BACKWARD_ATTENTION, packed=6
        ),
        "aten::_scaled_dot_product_efficient_attention_backward": _attention(11, first=1, factor=_BACKWARD_ATTENTION),
        "aten::_scaled_dot_product_cudnn_attention_backward": _attention(14, first=1, factor=_BACKWARD_ATTENTION),
        "aten::_flash_attention_backward": _attention(
            11, first=1, sequence=_POSITIONS_FIRST, factor=_BACKWARD_ATTENTION, packed=6
        ),
        "aten::_efficient_attention_backward": _attention(
            14, first=1, sequence=_POSITIONS_FIRST, factor=_BACKWARD_ATTENTION, packed=6
        ),
    }
)
