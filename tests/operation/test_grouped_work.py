"""Products of many groups: the rows of all groups together tell the arithmetic, worked by hand."""

import json
from collections.abc import Sequence

import pytest

from tests.given import US, Trace, built, rows_of, store_of
from traceforge.operation.work import Work, work_of

BF16, FP8, INT = "c10::BFloat16", "c10::Float8_e4m3fn", "int"


def of(operation: str, shapes: Sequence[object], types: Sequence[str], *concrete: str) -> Work | None:
    return work_of(operation, json.dumps(shapes), json.dumps(types), json.dumps(concrete))


@pytest.mark.parametrize(
    ("left", "right", "offsets", "flops", "moved"),
    [
        # 10 rows of 6 meet the 6 x 5 matrix of their group: 50 results; 60 + 3 * 30 + 50 elements of 2 bytes
        ([10, 6], [3, 6, 5], [3], 2 * 50 * 6, 2 * 200),
        # 2 rows use 2 of the 3 matrices at most
        ([2, 6], [3, 6, 5], [3], 2 * 10 * 6, 2 * (12 + 60 + 10)),
        # the inner dimension of 10 is divided among 3 groups, each with a result of 4 x 5
        ([4, 10], [10, 5], [3], 2 * 4 * 5 * 10, 2 * (40 + 50 + 60)),
        # columns of the result are divided among groups: 4 x 10 results
        ([3, 4, 6], [6, 10], [3], 2 * 40 * 6, 2 * (72 + 60 + 40)),
        # groups of one size need no offsets
        ([3, 4, 6], [3, 6, 5], [], 2 * 60 * 6, 2 * (72 + 90 + 60)),
    ],
)
def test_each_row_meets_the_matrix_of_its_group(
    left: list[int], right: list[int], offsets: list[int], flops: int, moved: int
) -> None:
    found = of("aten::_grouped_mm", [left, right, offsets, [], []], [BF16, BF16, INT, "", ""], *[""] * 5)

    assert found == Work(flops, moved, BF16, "stacked_rows")


def test_a_scaled_product_writes_the_type_that_is_asked_for() -> None:
    shapes = [[10, 6], [3, 6, 5], [12, 1], [3, 9], [3], [], [], [], []]
    types = [FP8, FP8, "c10::Float8_e8m0fnu", "c10::Float8_e8m0fnu", INT, "", "", "Scalar", "Scalar"]

    # 15 is bfloat16: 60 + 90 elements of 1 byte, 50 of 2
    found = of("aten::_scaled_grouped_mm", shapes, types, *[""] * 7, "15", "False")

    assert found == Work(600, 60 + 90 + 2 * 50, FP8, "stacked_rows")


def test_stacked_rows_against_weights_by_rows() -> None:
    shapes, types = [[10, 6], [3, 5, 6], [10], [3, 5], [3]], [FP8, FP8, "float", "float", "long int"]

    found = of("fbgemm::f8f8bf16_rowwise_grouped_stacked", shapes, types)

    assert found == Work(600, 60 + 90 + 2 * 50, FP8, "stacked_rows")


def test_lists_of_inputs_and_weights_are_products_of_their_own() -> None:
    shapes = [[[4, 6], [1, 6]], [[5, 6], [5, 6]], [[4], [1]], [[5], [5]]]

    # 4 x 5 and 1 x 5 results of 6 products; no types are named for lists
    assert of("fbgemm::bf16bf16bf16_grouped", shapes, ["TensorList"] * 4) == Work(
        2 * 25 * 6, None, None, "stacked_rows"
    )


def test_a_token_goes_through_both_products_of_each_of_its_experts() -> None:
    # 4 tokens of width 6, 2 of 8 experts each; gate and up are 2 x 5 wide, down is 5 wide
    shapes: list[object] = [[4, 6], [8, 10, 6], [8, 6, 5], [4, 2], [4, 2], [], [8]]
    types = [BF16, BF16, BF16, "float", INT, "Scalar", "float"]

    found = of("vllm::inplace_fused_experts", shapes, types)

    # 8 rows: 6 x 10 and 5 x 6 products each; hidden states twice, and all matrices of 8 experts
    assert found == Work(2 * 8 * (60 + 30), 2 * (2 * 24 + 8 * 60 + 8 * 30), BF16, "stacked_rows")
    # given a map of experts: some are on other devices, and so are their rows
    assert of("vllm::inplace_fused_experts", shapes, [*types[:-1], INT]) is None


@pytest.mark.parametrize(
    ("operation", "shapes"),
    [
        ("aten::_grouped_mm", [[10, 6], [3, 7, 5], [3]]),
        ("aten::_grouped_mm", [[4, 10], [10, 5], []]),
        ("fbgemm::f8f8bf16_rowwise_grouped_dynamic", [[3, 10, 6], [3, 5, 6], [3, 10], [3, 5], [3]]),
        ("fbgemm::f8f8bf16_rowwise_grouped", [[[4, 6]], [[5, 7]]]),
        ("vllm::moe_forward", [[32, 3072], [32, 32], [], []]),
        ("vllm::inplace_fused_experts", [[4, 6], [8, 10, 3], [8, 6, 5], [4, 2], [4, 2]]),
    ],
)
def test_what_does_not_fit_is_unknown(operation: str, shapes: list[object]) -> None:
    assert of(operation, shapes, [BF16] * 5) is None


def test_eight_bit_products_write_two_bytes() -> None:
    # (3, 5) x (7, 5): 21 results of 5 products
    assert of("fbgemm::f8f8bf16_rowwise", [[3, 5], [7, 5], [3], [7]], [FP8, FP8, "float", "float"]) == Work(
        210, 15 + 35 + 2 * 21, FP8
    )
    shapes: list[object] = [[3, 5], [5, 7], [], [], [], [], [], []]
    types = [FP8, FP8, "float", "float", "", "", "Scalar", "Scalar"]
    assert of("aten::_scaled_mm", shapes, types, *[""] * 6, "6", "True") == Work(210, 15 + 35 + 4 * 21, FP8)
    # without a type the result is of the type of the inputs
    assert of("aten::_scaled_mm", shapes, types, *[""] * 8) == Work(210, 15 + 35 + 21, FP8)


@pytest.mark.parametrize(("duration_ns", "is_known"), [(200, True), (100, False)])
def test_rows_that_would_be_faster_than_the_device_are_free(duration_ns: int, is_known: bool) -> None:
    # 2 * 1024 * 256 * 256 are 134 MFLOP, which take 135.7 ns at 989 TFLOP/s.
    trace = Trace().step(0, 0, 10 * US).on_device("NVIDIA H100 80GB HBM3")
    trace.operation("aten::_grouped_mm", 0, 50, [[1024, 256], [4, 256, 256], [4], [], []], [BF16, BF16, INT, "", ""])
    trace.kernel(100, 100 + duration_ns, "gemm", launch_ns=10)

    store = built(store_of(trace), "operation")

    flops = 2 * 1024 * 256 * 256
    expected = (flops, "stacked_rows") if is_known else (None, None)
    assert rows_of(store, "SELECT flops, work_basis FROM operation.kernel") == [expected]
