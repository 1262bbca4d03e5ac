"""Kernels that Inductor generates: what a launch lists tells the bytes, and products the arithmetic; worked by hand."""

import json
from collections.abc import Sequence

import pytest

from traceforge.operation.work import Work, work_of

FLOAT, HALF, LONG = "float", "c10::Half", "long int"


def of(operation: str, shapes: Sequence[Sequence[int]], types: Sequence[str], *numbers: int) -> Work | None:
    """A launch with tensors, then numbers."""
    dims = [*shapes, *[[]] * len(numbers)]
    values = [""] * len(shapes) + [str(number) for number in numbers]
    return work_of(operation, json.dumps(dims), json.dumps([*types, *["Scalar"] * len(numbers)]), json.dumps(values))


@pytest.mark.parametrize(
    ("operation", "shapes", "types", "numbers", "moved"),
    [
        # 12 elements in, 4 of a bias, 12 out
        ("triton_poi_fused_add_0", [[3, 4], [4], [3, 4]], [FLOAT, FLOAT, HALF], [12], 4 * 16 + 2 * 12),
        # of a table of 100 rows no more is read than what 5 tokens ask for
        ("triton_poi_fused_embedding_1", [[5], [100, 8], [5, 8]], [LONG, FLOAT, FLOAT], [40], 40 + 4 * 80),
        # two dimensions: 3 x 4
        ("triton_poi_fused_clone_2", [[4, 3], [3, 4]], [FLOAT, FLOAT], [3, 4], 4 * 24),
        # sizes that were not known at compilation stand before the number of elements
        ("triton_poi_fused_mul_3", [[3, 4], [3, 4]], [FLOAT, FLOAT], [3, 4, 12], 4 * 24),
        # rows are reduced: 3 x 4 in, 3 out
        ("triton_red_fused_sum_4", [[3, 4], [3]], [FLOAT, FLOAT], [3, 4], 4 * 15),
        ("triton_per_fused_norm_5", [[3, 4], [4], [3, 4]], [FLOAT] * 3, [3, 4], 4 * 28),
    ],
)
def test_each_tensor_is_moved_once_as_far_as_it_is_used(
    operation: str, shapes: list[list[int]], types: list[str], numbers: list[int], moved: int
) -> None:
    assert of(operation, shapes, types, *numbers) == Work(None, moved, types[0], "launch_arguments")


@pytest.mark.parametrize(
    ("operation", "shapes", "flops"),
    [
        # (6, 2) x (2, 5), whatever the views of the inputs are
        ("triton_tem_fused_mm_0", [[3, 2, 2], [2, 5], [6, 5]], 2 * 30 * 2),
        # a bias stands first, something that is added before the result
        ("triton_tem_fused_addmm_1", [[5], [6, 2], [2, 5], [6, 5], [6, 5]], 2 * 30 * 2),
        # the epilogue names the kernel; weights are (5, 2)
        ("triton_tem_fused_relu_2", [[6, 2], [5, 2], [6, 5]], 2 * 30 * 2),
        # 4 products of (3, 2) x (2, 5)
        ("triton_tem_fused_bmm_3", [[4, 3, 2], [2, 2, 2, 5], [4, 3, 5]], 2 * 60 * 2),
    ],
)
def test_sizes_of_both_matrices_and_the_result_tell_the_inner_dimension(
    operation: str, shapes: list[list[int]], flops: int
) -> None:
    found = of(operation, shapes, [HALF] * len(shapes))

    assert found is not None
    assert (found.flops, found.basis) == (flops, "launch_arguments")


def test_bytes_of_a_template_are_those_of_all_its_tensors() -> None:
    assert of("triton_tem_fused_mm_0", [[6, 2], [2, 5], [6, 5]], [HALF] * 3) == Work(
        120, 2 * (12 + 10 + 30), HALF, "launch_arguments"
    )


@pytest.mark.parametrize(
    ("operation", "shapes", "numbers"),
    [
        # no tensor has as many elements as are computed
        ("triton_poi_fused_add_0", [[3, 4], [3, 4]], [99]),
        ("triton_poi_fused_add_0", [[3, 4], [3, 4]], []),
        ("triton_poi_fused_add_0", [], [12]),
        # one number is no reduction
        ("triton_red_fused_sum_1", [[3, 4], [3]], [12]),
        # templates that are no product
        ("triton_tem_fused_convolution_2", [[6, 2], [2, 5], [6, 5]], []),
        ("triton_tem_fused_flex_attention_3", [[6, 2], [2, 5], [6, 5]], []),
        ("triton_tem_fused_mm_4", [[6, 2], [3, 5], [6, 5]], []),
        ("triton_tem_fused_mm_4", [[6, 2], [2, 5], [1, 1, 6, 5]], []),
        # a kernel that somebody wrote may read what it likes
        ("triton_mine", [[3, 4], [3, 4]], [12]),
    ],
)
def test_what_a_launch_does_not_tell_is_unknown(operation: str, shapes: list[list[int]], numbers: list[int]) -> None:
    assert of(operation, shapes, [FLOAT] * len(shapes), *numbers) is None


def test_bytes_of_an_unknown_type_are_unknown() -> None:
    assert of("triton_poi_fused_add_0", [[3, 4], [3, 4]], [FLOAT, "of a new kind"], 12) is None
    assert of("triton_tem_fused_mm_0", [[6, 2], [2, 5], [6, 5]], ["of a new kind"] * 3) == Work(
        120, None, "of a new kind", "launch_arguments"
    )
