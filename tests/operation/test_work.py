"""Arithmetic and bytes of operations, worked by hand."""

import json
from collections.abc import Sequence

import pytest

from traceforge.operation.work import Work, work_of

HALF = ["c10::Half"] * 3


def of(operation: str, shapes: Sequence[object], types: Sequence[str] = HALF, *concrete: str) -> Work | None:
    return work_of(operation, json.dumps(shapes), json.dumps(types), json.dumps(concrete))


def amounts(operation: str, shapes: Sequence[object], *concrete: str) -> tuple[int, int | None]:
    work = of(operation, shapes, HALF, *concrete)
    assert work is not None
    return work.flops, work.moved_bytes


def test_a_product_multiplies_and_adds_once_for_each_pair() -> None:
    # (3, 5) x (5, 7): 21 results of 5 products; 15 + 35 + 21 elements of 2 bytes.
    assert amounts("aten::mm", [[3, 5], [5, 7]]) == (2 * 21 * 5, 2 * 71)


def test_a_batch_of_products_and_a_bias() -> None:
    assert amounts("aten::bmm", [[2, 3, 5], [2, 5, 7]]) == (2 * 2 * 21 * 5, 2 * 2 * 71)
    # The bias is one addition a result, and 7 elements more.
    assert amounts("aten::addmm", [[7], [3, 5], [5, 7]]) == (2 * 21 * 5 + 21, 2 * 78)
    assert amounts("aten::linear", [[2, 3, 5], [7, 5], [7]]) == (2 * 42 * 5 + 42, 2 * (30 + 35 + 42 + 7))


def test_a_convolution_slides_over_what_stride_and_padding_leave() -> None:
    # 8x8 with a 3x3 kernel, stride 2, padding 1: 4x4 results of 4 channels, each of 2 x 9 products.
    shapes = [[1, 2, 8, 8], [4, 2, 3, 3], [4], [], [], []]
    flops, moved = amounts("aten::conv2d", shapes, "", "", "", "[2, 2]", "[1, 1]", "[1, 1]")
    assert flops == 2 * (4 * 16) * (2 * 9)
    assert moved == 2 * (128 + 72 + 64)


def test_a_transposed_convolution_spreads_each_input_over_the_kernel() -> None:
    # 5x5 with a 2x2 kernel and stride 2 become 10x10; each of 3 x 25 inputs meets 4 channels x 4 places.
    shapes = [[1, 3, 5, 5], [3, 4, 2, 2], [], [], [], [], [], [], []]
    values = ["", "", "", "[2, 2]", "[0, 0]", "[1, 1]", "True", "[0, 0]", "1"]
    moved = 2 * (75 + 48 + 400)
    assert amounts("aten::convolution", shapes, *values) == (2 * 75 * 16, moved)
    own = ["", "", "[0, 0]", "[0, 0]", "[2, 2]", "[1, 1]", "1"]
    assert amounts("aten::cudnn_convolution_transpose", shapes, *own) == (2 * 75 * 16, moved)


def test_a_backward_convolution_counts_each_gradient_that_is_asked_for() -> None:
    shapes = [[1, 4, 4, 4], [1, 2, 8, 8], [4, 2, 3, 3], [], [], [], [], [], [], [], []]
    values = ["", "", "", "[4]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]
    both, weight = (of("aten::convolution_backward", shapes, HALF, *values, mask)
                    for mask in ("[True, True, False]", "[False, True, False]"))  # fmt: skip
    assert both is not None
    assert weight is not None
    assert (both.flops, weight.flops) == (2 * 2304, 2304)


@pytest.mark.parametrize(("causal", "flops"), [("False", 4 * 2 * 3 * 10 * 10 * 8), ("True", 2 * 2 * 3 * 10 * 10 * 8)])
def test_attention_is_two_products_of_which_a_causal_mask_halves_each(causal: str, flops: int) -> None:
    heads_first, positions_first = [[2, 3, 10, 8]] * 3, [[2, 10, 3, 8]] * 3
    assert amounts("aten::_scaled_dot_product_flash_attention", heads_first, *[""] * 3, "0.", causal)[0] == flops
    shapes = [*positions_first, [], [], [], [], [], []]
    assert amounts("aten::_flash_attention_forward", shapes, *[""] * 5, "10", "10", "0.", causal)[0] == flops


PACKED = [[30, 3, 8], [30, 1, 8], [30, 1, 8], [4], [4], [], [], [], [], []]


def packed(longest: str, keys: str) -> list[str]:
    return [*[""] * 5, longest, keys, "0.", "False", "False"]


def test_packed_sequences_that_are_all_as_long_as_the_longest_are_known() -> None:
    # 3 sequences of 10 positions in 30 rows, 3 heads of which share one key and value
    flops, moved = amounts("aten::_flash_attention_forward", PACKED, *packed("10", "10"))

    assert flops == 3 * (4 * 3 * 10 * 10 * 8)
    assert moved == 2 * (2 * 30 * 3 * 8 + 2 * 30 * 8)


@pytest.mark.parametrize(("longest", "keys"), [("12", "10"), ("10", "12"), ("", "10"), ("10", "")])
def test_packed_sequences_of_several_lengths_are_unknown(longest: str, keys: str) -> None:
    assert of("aten::_flash_attention_forward", PACKED, HALF, *packed(longest, keys)) is None


def test_keys_in_pages_are_as_many_as_queries_where_their_longest_are() -> None:
    shapes = [[30, 3, 8], [9_999, 1, 8], [9_999, 1, 8], [4], [4], [77], *[[]] * 9]
    values = [*[""] * 6, "10", "10", "0.", "0.1", "0.", "False", "True", "-1", "-1"]

    flops, moved = amounts("aiter::mha_batch_prefill", shapes, *values)

    assert flops == 3 * (4 * 3 * 10 * 10 * 8) // 2
    assert moved == 2 * (2 * 30 * 3 * 8 + 2 * 30 * 8)
    # given longer keys than queries: how many there are lies on the device
    assert of("aiter::mha_batch_prefill", shapes, HALF, *[*values[:7], "20", *values[8:]]) is None


@pytest.mark.parametrize(("window", "is_known"), [("-1", True), ("4", False)])
def test_a_window_leaves_less_than_all_products(window: str, is_known: bool) -> None:
    shapes = [[2, 10, 3, 8]] * 3
    values = [*[""] * 3, "0.", "0.1", "True", window, "-1"]

    assert (of("flash_attn::_flash_attn_forward", shapes, HALF, *values) is not None) == is_known


def test_backward_attention_is_five_products() -> None:
    shapes = [*[[2, 3, 10, 8]] * 4, [], [], [], [], [], [], [], []]
    flops, _ = amounts("aten::_scaled_dot_product_flash_attention_backward", shapes, *[""] * 11, "False")
    assert flops == 10 * 2 * 3 * 10 * 10 * 8


@pytest.mark.parametrize(
    ("operation", "shapes", "concrete"),
    [
        ("aten::mm", [[3, 5], [6, 7]], []),
        ("aten::mm", [[3, 5]], []),
        ("aten::mm", [[[3, 5]], [[5, 7]]], []),
        ("aten::conv2d", [[1, 2, 8, 8], [4, 2, 3, 3]], []),
        ("aten::conv2d", [[1, 2, 8, 8], [4, 2, 3, 3]], ["", "", "", "[0, 0]", "[1, 1]", "[1, 1]"]),
        ("aten::_scaled_dot_product_flash_attention", [[2, 3, 10, 8]] * 3, ["", "", ""]),
        ("aten::_flash_attention_forward", [[20, 3, 8]] * 3, [""] * 8 + ["False"]),
    ],
)
def test_what_inputs_do_not_tell_is_unknown(operation: str, shapes: list[object], concrete: list[str]) -> None:
    assert of(operation, shapes, HALF, *concrete) is None


def test_bytes_need_a_type() -> None:
    assert of("aten::mm", [[3, 5], [5, 7]], []) == Work(210, None, None)
    assert of("aten::mm", [[3, 5], [5, 7]], ["of a new kind"] * 2) == Work(210, None, "of a new kind")
    assert work_of("aten::mm", "no list", None, None) is None
