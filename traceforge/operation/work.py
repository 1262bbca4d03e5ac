"""How much arithmetic and memory a call takes. In: name and inputs of an operation. Out: `Work`: FLOPs and bytes.

Closed forms of products, convolutions and attention; a multiplication and an addition are two FLOPs, an added bias is
one an element of the result. Bytes are those of inputs and result, each moved once. Of what does little arithmetic for
its bytes (see `moved_bytes`) the bytes alone are counted. What the inputs do not tell (a stride that was not recorded,
whether attention is causal, the lengths of packed sequences) makes the result unknown: nothing is guessed.
Products of groups and kernels that Inductor generates have modules of their own, as does attention.
Not handled: sparse products, and kernels that people write in Triton.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from traceforge.operation.attention_work import Packing, attention
from traceforge.operation.generated_work import generated_work_of, is_generated
from traceforge.operation.grouped_work import GROUPED_WORK
from traceforge.operation.inputs import Inputs, Shape, element_bytes, inputs_of
from traceforge.operation.moved_bytes import moved_bytes_of
from traceforge.operation.scaled_work import SCALED_WORK
from traceforge.reading.json_values import UNDECODABLE


@dataclass(frozen=True, slots=True)
class Work:
    """One call.

    Attributes:
        flops: None of operations of which bytes alone are counted.
        moved_bytes: None where a type is unknown.
        dtype: element type of the first tensor; None where unknown.
        basis: how it is known, one of `BASES`.
    """

    flops: int | None
    moved_bytes: int | None
    dtype: str | None
    basis: str = "shapes"


BASES = ("shapes", "stacked_rows", "launch_arguments")
"""By shapes of the inputs; by the rows of all groups together, of which some may be free; by what a kernel is given."""


_Parts = tuple[float, Sequence[Shape]]
"""FLOPs, and the shapes that are read or written."""
_Model = Callable[[Inputs], _Parts | None]


def work_of(operation: str, shapes: str, types: str | None, concrete: str | None, kernel: str = "") -> Work | None:
    """Work of one call; None where the operation has no model or its inputs do not tell.

    Args:
        operation: name, such as `aten::mm`.
        shapes, types, concrete: JSON lists as the trace has them.
        kernel: full name of the longest kernel that it launched.
    """
    try:
        inputs = inputs_of(shapes, types, concrete)
        if operation in _MODELS:
            return _modelled(_MODELS[operation](inputs), inputs)
        if operation in _AMOUNTS:
            basis = "stacked_rows" if operation in GROUPED_WORK else "shapes"
            return _counted(_AMOUNTS[operation](inputs), inputs, basis)
        if is_generated(operation):
            return _counted(generated_work_of(operation, inputs), inputs, "launch_arguments")
        moved = moved_bytes_of(operation, inputs, kernel)
    except (IndexError, *UNDECODABLE):
        return None
    return None if moved is None else Work(None, moved, inputs.dtype)


def _modelled(found: _Parts | None, inputs: Inputs) -> Work | None:
    if found is None:
        return None
    flops, moved = found
    size = element_bytes(inputs.dtype)
    return Work(round(flops), None if size is None else size * sum(prod(shape) for shape in moved), inputs.dtype)


def _counted(found: tuple[int | None, int | None] | None, inputs: Inputs, basis: str) -> Work | None:
    if found is None or found == (None, None):
        return None
    return Work(*found, inputs.dtype, basis)


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


def _transposed_convolution(*, padding: int, stride: int, dilation: int, output_padding: int, groups: int) -> _Model:
    """Input (N, C, …) and weight (C, K / groups, …): each element of the input meets the whole kernel."""

    def model(inputs: Inputs) -> _Parts | None:
        data, weight = inputs.shapes[0], inputs.shapes[1]
        count, parts = len(weight) - 2, inputs.value(groups)
        if count < 1 or len(data) != len(weight) or not isinstance(parts, int):
            return None
        pads, steps, spread, added = (
            inputs.integers(place, count) for place in (padding, stride, dilation, output_padding)
        )
        if pads is None or steps is None or spread is None or added is None:
            return None
        out = [
            (size - 1) * step - 2 * pad + gap * (kernel - 1) + more + 1
            for size, kernel, pad, step, gap, more in zip(data[2:], weight[2:], pads, steps, spread, added, strict=True)
        ]
        return 2 * prod(data) * prod(weight[1:]), [data, weight, (data[0], weight[1] * parts, *out)]

    return model


def _either(inputs: Inputs) -> _Parts | None:
    """A convolution, or a transposed one where the flag says so."""
    rule = _TRANSPOSED if inputs.value(6) is True else _PLAIN
    return rule(inputs)


def _convolution_backward(inputs: Inputs) -> _Parts | None:
    """Gradient (N, K, …), input and weight; the same products once for each gradient of a tensor that is asked for."""
    gradient, data, weight = inputs.shapes[:3]
    mask, transposed = inputs.value(10), inputs.value(7)
    if not isinstance(mask, list) or len(weight) < 3 or len(gradient) != len(weight) or transposed is not False:
        return None
    wanted = [shape for shape, asked in zip((data, weight), mask, strict=False) if asked]
    once = 2 * prod(gradient) * prod(weight[1:])
    return once * len(wanted), [gradient, data, weight, *wanted]


_PLAIN = _convolution(stride=3, padding=4, dilation=5, transposed=6)
_TRANSPOSED = _transposed_convolution(stride=3, padding=4, dilation=5, output_padding=7, groups=8)

_AMOUNTS = MappingProxyType({**SCALED_WORK, **GROUPED_WORK})

_MODELS: Mapping[str, _Model] = MappingProxyType(
    {
        "aten::mm": _product(0),
        "aten::bmm": _product(0),
        "aten::matmul": _product(0),
        "aten::_int_mm": _product(0),
        "aten::addmm": _product(1, bias=0),
        "aten::baddbmm": _product(1, bias=0),
        "aten::_addmm_activation": _product(1, bias=0),
        "aten::linear": _linear,
        "aiter::gemm_a16w16": _linear,
        "vllm::rocm_unquantized_gemm": _linear,
        "aten::conv1d": _convolution(stride=3, padding=4, dilation=5),
        "aten::conv2d": _convolution(stride=3, padding=4, dilation=5),
        "aten::conv3d": _convolution(stride=3, padding=4, dilation=5),
        "aten::convolution": _either,
        "aten::_convolution": _either,
        "aten::cudnn_convolution_transpose": _transposed_convolution(
            padding=2, output_padding=3, stride=4, dilation=5, groups=6
        ),
        "aten::miopen_convolution_transpose": _transposed_convolution(
            padding=3, output_padding=4, stride=5, dilation=6, groups=7
        ),
        "aten::cudnn_convolution": _convolution(padding=2, stride=3, dilation=4),
        "aten::miopen_convolution": _convolution(padding=3, stride=4, dilation=5),
        "aten::mkldnn_convolution": _convolution(padding=3, stride=4, dilation=5),
        "aten::convolution_backward": _convolution_backward,
        "aten::scaled_dot_product_attention": attention(5),
        "aten::_scaled_dot_product_flash_attention": attention(4),
        "aten::_scaled_dot_product_efficient_attention": attention(6),
        "aten::_scaled_dot_product_cudnn_attention": attention(6),
        "aten::_flash_attention_forward": attention(8, positions_first=True, packing=Packing(3, 5)),
        "aten::_efficient_attention_forward": attention(9, positions_first=True, packing=Packing(4, 6)),
        "aten::_scaled_dot_product_flash_attention_backward": attention(
            11, first=1, is_backward=True, packing=Packing(6, 8)
        ),
        "aten::_scaled_dot_product_efficient_attention_backward": attention(11, first=1, is_backward=True),
        "aten::_scaled_dot_product_cudnn_attention_backward": attention(14, first=1, is_backward=True),
        "aten::_flash_attention_backward": attention(
            11, first=1, is_backward=True, positions_first=True, packing=Packing(6, 8)
        ),
        "aten::_efficient_attention_backward": attention(
            14, first=1, is_backward=True, positions_first=True, packing=Packing(6, 8)
        ),
        "flash_attn::_flash_attn_forward": attention(5, positions_first=True, window=6),
        "flash_attn::_flash_attn_backward": attention(11, first=1, is_backward=True, positions_first=True, window=12),
        "flash_attn::_flash_attn_varlen_forward": attention(9, packing=Packing(3, 5), window=10),
        "flash_attn::_flash_attn_varlen_backward": attention(
            15, first=1, is_backward=True, packing=Packing(9, 11), window=16
        ),
        "aiter::mha_batch_prefill": attention(12, packing=Packing(3, 6, is_paged=True), window=13),
    }
)
