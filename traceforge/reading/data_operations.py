"""Operations of PyTorch that do little arithmetic for the bytes they move, by how their bytes follow from the inputs.

In: nothing. Out: names by family, without `aten::` and without the underscore of those that work in place. `reading`
keeps the inputs of these; `operation.moved_bytes` counts their bytes.
"""

from collections.abc import Mapping
from types import MappingProxyType

_PREFIX = "aten::"

# Each element of the inputs, broadcast against one another, is read once, and each of the result written.
_POINTWISE = """
abs add addcdiv addcmul atan2 bitwise_and bitwise_not bitwise_or bitwise_xor ceil clamp clamp_max clamp_min cos div elu
erf exp expm1 floor floor_divide fmod gelu gelu_backward hardsigmoid hardswish hardswish_backward hardtanh
hardtanh_backward leaky_relu leaky_relu_backward lerp log log1p log_sigmoid_forward masked_fill maximum minimum mish mul
nan_to_num neg pow reciprocal relu remainder round rsqrt rsub sgn sigmoid sigmoid_backward sign silu silu_backward sin
softplus softplus_backward sqrt square sub tanh tanh_backward threshold threshold_backward true_divide where
native_dropout_backward masked_scale
"""
# The same, and the result is of one byte an element.
_COMPARISONS = "eq ge gt isfinite isinf isnan le logical_and logical_not logical_or logical_xor lt ne"
# Nothing is read, and the first input is written.
_FILLS = "bernoulli exponential fill normal random uniform zero"
# The first input is read; what is written is not counted, as dimensions tell it, which some versions do not record.
_REDUCTIONS = """
all amax amin any argmax argmin linalg_vector_norm logsumexp max mean min norm prod std std_mean sum topk var var_mean
"""
# The first input is read, and a result of its size is written.
_MAPS = """
_log_softmax _softmax cumprod cumsum flip roll sort native_layer_norm _fused_rms_norm native_group_norm
native_batch_norm cudnn_batch_norm miopen_batch_norm _native_batch_norm_legit batch_norm_elemt
"""
# The first two inputs, gradient and what it belongs to, are read, and a result of their size is written.
_GRADIENTS = """
_log_softmax_backward_data _softmax_backward_data native_layer_norm_backward _fused_rms_norm_backward
native_group_norm_backward native_batch_norm_backward cudnn_batch_norm_backward miopen_batch_norm_backward
batch_norm_backward_elemt
"""
_OTHERS = "copy native_dropout index_select gather embedding_dense_backward cat _cat"
_FUSED_OPTIMISERS = "_fused_adam _fused_adamw _fused_sgd"
_FOREACH = "_foreach_"

FAMILIES: Mapping[str, str] = MappingProxyType(
    {
        name: family
        for family, names in {
            "pointwise": _POINTWISE,
            "comparison": _COMPARISONS,
            "fill": _FILLS,
            "reduction": _REDUCTIONS,
            "map": _MAPS,
            "gradient": _GRADIENTS,
        }.items()
        for name in names.split()
    }
    | {name: name for name in (*_OTHERS.split(), *_FUSED_OPTIMISERS.split())}
)
"""Family of each name; a name with a rule of its own is its own family."""


def family_of(operation: str) -> str | None:
    """The family of an operation; None where its bytes do not follow from its inputs, or it is no such operation."""
    if not operation.startswith(_PREFIX):
        return None
    name = operation[len(_PREFIX) :]
    return "foreach" if name.startswith(_FOREACH) else FAMILIES.get(name) or FAMILIES.get(name.removesuffix("_"))
