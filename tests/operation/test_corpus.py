"""Arithmetic, bytes and device time of real traces against numbers that others published or counted for them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.given import add_facts, built, rows_of
from traceforge.store.database import Store

_TOLERANCE = 1e-3
_ASKED_SHARE = 0.95
_KINDS = {
    "GEMM": "matrix_product", "CONV_fwd": "convolution", "SDPA_fwd": "attention", "InferenceAttention_fwd": "attention",
    "MoE_unfused_fwd": "matrix_product",
}  # fmt: skip

_WORK = """
SELECT kind, SUM(flops) / SUM(operation_calls) / 1e9, SUM(bytes) / SUM(operation_calls) / 1048576
FROM operation.kernel
WHERE flops IS NOT NULL
GROUP BY kind, operation, shapes
"""
_KERNELS = """
SELECT COUNT(*), SUM(duration_ns) FROM raw.event
WHERE phase = 'X' AND category = 'kernel' AND duration_ns IS NOT NULL
"""
_HIDDEN = "SELECT SUM(duration_ns) FROM operation.kernel WHERE joined = 'graph_launch'"

# Launched by one replay of a captured graph: the file names no operation of theirs, the trace of the capture does.
GRAPH = "kineto/tracelens_infer_vllm_decode_full/graph_execution.json.gz"
_IN_GRAPH = {
    ("vllm::rocm_unquantized_gemm", 0.94388224), ("aten::addmm", 0.94388224),
    ("vllm::rocm_unquantized_gemm", 0.75506688), ("aten::addmm", 0.75506688),
    ("vllm::rocm_unquantized_gemm", 0.005899264), ("aten::addmm", 0.005899264),
    ("vllm::unified_attention_with_output", 0.902529024),
    ("pseudo_op::moe_triton_unfused_down", 2.4159191), ("pseudo_op::moe_triton_unfused_up", 4.83183821),
}  # fmt: skip


@pytest.fixture(scope="module")
def golden(corpus: Path) -> dict[str, Any]:
    """What was counted without this program."""
    found: dict[str, Any] = json.loads((corpus / "golden/golden.json").read_text())
    return found


@pytest.fixture(scope="module")
def stores(golden: dict[str, Any], corpus: Path) -> Iterator[dict[str, Store]]:
    """A database of each file of which the work or the time of the device is known."""
    made = {}
    for name in {**golden["kernel_work"], **golden["kineto_device"]}:
        made[name] = Store(None, is_kept=False)
        add_facts(made[name], corpus / "traces" / name)
        built(made[name], "operation.kernel", "operation.coverage", "timeline.device_time")
    yield made
    for store in made.values():
        store.close()


def _published(work: dict[str, Any]) -> list[tuple[str, str, float, float]]:
    """Kind, name, GFLOP and MiB of a call, of all products, convolutions and attention."""
    return [
        (_KINDS[section], row["name"], row["gflop_each"], row["moved_MiB_each"])
        for section, found in work.items()
        if section in _KINDS
        for row in found["by_shape"]
        if row["gflop_each"]
    ]


def _missed(work: dict[str, Any], store: Store) -> list[tuple[str, float]]:
    """Rows that no row of ours equals, in arithmetic and in bytes."""
    own = rows_of(store, _WORK)
    return [
        (name, gflop)
        for kind, name, gflop, mebibytes in _published(work)
        if not any(one[0] == kind and one[1:] == pytest.approx((gflop, mebibytes), rel=_TOLERANCE) for one in own)
    ]


def test_the_work_of_calls_is_what_was_published(golden: dict[str, Any], stores: dict[str, Store]) -> None:
    for name, work in golden["kernel_work"].items():
        published, missed = _published(work), _missed(work, stores[name])
        if name == GRAPH:
            assert set(missed) == _IN_GRAPH
        else:
            assert len(missed) <= (1 - _ASKED_SHARE) * len(published), name


def test_work_that_a_graph_hides_is_counted_as_such(golden: dict[str, Any], stores: dict[str, Store]) -> None:
    ((hidden_ns,),) = rows_of(stores[GRAPH], _HIDDEN)

    assert int(hidden_ns) > 0.9 * golden["kineto_device"][GRAPH]["busy_ns"]


def test_the_device_is_busy_as_was_counted(golden: dict[str, Any], stores: dict[str, Store]) -> None:
    fields = ("gpu_events", "span_ns", "busy_ns", "idle_ns", "compute_ns", "communication_ns", "overlap_ns")
    columns = ", ".join(one.replace("_ns", "_duration_ns") for one in fields).replace("gpu_", "")
    for name, said in golden["kineto_device"].items():
        found = rows_of(stores[name], f"SELECT {columns} FROM timeline.device_time")
        expected = [tuple(said[field] for field in fields)] if said["gpu_events"] else []
        assert found == [pytest.approx(one, rel=_TOLERANCE) for one in expected], name
        kernels = rows_of(stores[name], _KERNELS)
        assert kernels == [pytest.approx((said["kernels"], said["sum_of_kernels_ns"]), rel=_TOLERANCE)], name
