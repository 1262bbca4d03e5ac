"""Bytes of operations that do little arithmetic, worked by hand: each input read once, each result written once."""

import json
from collections.abc import Sequence

import pytest

from traceforge.operation.work import _MODELS, Work, work_of
from traceforge.reading.data_operations import FAMILIES
from traceforge.reading.operation_inputs import OperationInputs

HALF, FLOAT, LONG = "c10::Half", "float", "long int"
ADAM = "void multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor<float, 4, 0>>"
CAT = (
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, 4>"
)
LISTED = [[[4, 8], [8]], [[4, 8], [8]]]  # two lists of 40 elements each


def of(operation: str, shapes: Sequence[object], types: Sequence[str], *concrete: str, kernel: str = "") -> Work | None:
    return work_of(operation, json.dumps(shapes), json.dumps(types), json.dumps(concrete), kernel)


@pytest.mark.parametrize(
    ("operation", "shapes", "types", "moved"),
    [
        # two inputs of 15 and a result of 15 elements of 2 bytes
        ("aten::add", [[3, 5], [3, 5], []], [HALF, HALF, "Scalar"], 2 * 45),
        # a row broadcast over three: 15 + 5 + 15
        ("aten::mul", [[3, 5], [5]], [HALF, HALF], 2 * 35),
        # both broadcast: 3 + 5 + 15
        ("aten::sub", [[3, 1], [1, 5]], [HALF, HALF], 2 * 23),
        # half against float gives float; against whole numbers it stays half
        ("aten::mul", [[15], [15]], [HALF, FLOAT], 15 * (2 + 4 + 4)),
        ("aten::mul", [[15], [15]], [HALF, LONG], 15 * (2 + 8 + 2)),
        ("aten::add_", [[15], [15], []], [HALF, FLOAT, "Scalar"], 15 * (2 + 4 + 2)),
        ("aten::eq", [[15], [15]], [FLOAT, FLOAT], 15 * (4 + 4 + 1)),
        ("aten::where", [[15], [15], [15]], ["bool", FLOAT, FLOAT], 15 * (1 + 4 + 4 + 4)),
        ("aten::gelu", [[15], []], [HALF, ""], 2 * 30),
        ("aten::copy_", [[15], [15], []], [HALF, FLOAT, "Scalar"], 15 * (2 + 4)),
        ("aten::zero_", [[15]], [FLOAT], 4 * 15),
        ("aten::fill_", [[15], []], [FLOAT, "Scalar"], 4 * 15),
        ("aten::sum", [[15], [], [], []], [FLOAT, "ScalarList", "Scalar", ""], 4 * 15),
        ("aten::_softmax", [[3, 5], [], []], [HALF, "Scalar", "Scalar"], 2 * 30),
        ("aten::_softmax_backward_data", [[3, 5], [3, 5], [], []], [HALF, HALF, "", ""], 2 * 45),
        ("aten::native_layer_norm", [[3, 5], [], [5], [5], []], [HALF, "", HALF, HALF, ""], 2 * 30),
        ("aten::native_layer_norm_backward", [[3, 5], [3, 5], [], [3, 1], [3, 1]], [HALF, HALF, "", FLOAT, FLOAT], 90),
        ("aten::native_dropout", [[15], [], []], [HALF, "Scalar", "Scalar"], 15 * (2 + 2 + 1)),
    ],
)
def test_each_input_is_read_and_each_result_written(
    operation: str, shapes: Sequence[object], types: Sequence[str], moved: int
) -> None:
    work = of(operation, shapes, types)

    assert work is not None
    assert (work.flops, work.moved_bytes) == (None, moved)


def test_rows_of_a_table_are_read_and_written_where_they_are_asked_for() -> None:
    # 7 of 100 rows of 8 halves, and 7 indices of 8 bytes
    rows = of("aten::index_select", [[100, 8], [], [7]], [HALF, "Scalar", LONG], "", "0", "")
    columns = of("aten::index_select", [[8, 100], [], [7]], [HALF, "Scalar", LONG], "", "-1", "")
    # its backward writes all 100 rows
    back = of("aten::embedding_dense_backward", [[7, 8], [7], [], [], []], [HALF, LONG, "", "", ""], "", "", "100")

    assert rows is not None
    assert columns is not None
    assert back is not None
    assert rows.moved_bytes == columns.moved_bytes == 2 * (2 * 7 * 8) + 8 * 7
    assert back.moved_bytes == 2 * 56 + 8 * 7 + 2 * 800
    assert of("aten::index_select", [[100, 8], [], [7]], [HALF, "Scalar", LONG]) is None  # which dimension?


@pytest.mark.parametrize(
    ("operation", "shapes", "kernel", "moved"),
    [
        ("aten::cat", [LISTED[0], []], CAT, 2 * 2 * 40),
        # parameters, gradients and two moments: read 4, written 3
        ("aten::_fused_adamw_", [*LISTED, *LISTED, [], []], ADAM, 4 * 7 * 40),
        (
            "aten::_foreach_add_",
            [*LISTED, []],
            "multi_tensor_apply_kernel<BinaryOpListAlphaFunctor<float, 2>>",
            4 * 120,
        ),
        ("aten::_foreach_zero_", LISTED[:1], "multi_tensor_apply_kernel<ZeroFunctor<c10::Half, 1>>", 2 * 40),
        ("aten::_foreach_norm", LISTED[:1], "multi_tensor_apply_kernel<LpNormFunctor<double, 1>>", 8 * 40),
    ],
)
def test_the_kernel_names_the_element_type_of_lists(
    operation: str, shapes: Sequence[object], kernel: str, moved: int
) -> None:
    work = of(operation, shapes, ["TensorList"] * len(shapes), kernel=kernel)

    assert work is not None
    assert work.moved_bytes == moved
    assert of(operation, shapes, ["TensorList"] * len(shapes), kernel="a kernel that names none") is None


@pytest.mark.parametrize(
    ("operation", "shapes", "types"),
    [
        ("aten::add", [[], []], ["Scalar", "Scalar"]),  # no tensor
        ("aten::add", [[3], [4]], [HALF, HALF]),  # shapes that do not fit
        ("aten::add", [[3], [3]], ["", HALF]),  # a type that is not recorded
        ("aten::cat", [[], []], ["TensorList", "Scalar"]),  # older versions list no tensors
        ("aten::gather", [[3]], [HALF]),
        ("mine::add", [[3], [3]], [HALF, HALF]),
    ],
)
def test_what_inputs_do_not_tell_is_unknown(operation: str, shapes: Sequence[object], types: Sequence[str]) -> None:
    assert of(operation, shapes, types) is None


def test_the_inputs_of_every_operation_with_a_rule_are_kept() -> None:
    ruled = {*_MODELS, *(f"aten::{name}" for name in FAMILIES), "aten::_foreach_mul_"}

    assert {name for name in ruled if not OperationInputs.is_wanted("X", "cpu_op", name)} == set()
    assert not OperationInputs.is_wanted("X", "cpu_op", "aten::view")
    assert not OperationInputs.is_wanted("X", "kernel", "aten::add")


@pytest.mark.parametrize("family", sorted(set(FAMILIES.values())))
def test_every_family_has_a_rule_that_refuses_odd_inputs(family: str) -> None:
    name = next(name for name, own in FAMILIES.items() if own == family)

    assert of(f"aten::{name}", [], []) is None
    assert of(f"aten::{name}", [[], [], []], ["", "", ""]) is None
