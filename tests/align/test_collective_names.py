"""Collectives by name: what PyTorch, gloo and NCCL of all eras call them, and how their size and speed are counted."""

import pytest

from tests.given import Trace, built, rows_of, store_of
from traceforge.align.bus_factor import bus_factor
from traceforge.align.collective_names import element_bytes, operation_of

OPERATIONS = [
    # NCCL kernels until 2.18, from 2.19, and from 2.27 (symmetric memory).
    ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)", "all_reduce"),
    ("ncclKernel_ReduceScatter_RING_LL_Sum_half(ncclDevComm*)", "reduce_scatter"),
    ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", "send_recv"),
    ("ncclDevKernel_AllReduce_Sum_bf16_TREE_LL(ncclDevKernelArgsStorage<4096ul>)", "all_reduce"),
    ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_gather"),
    ("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "reduce_scatter"),
    ("ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "broadcast"),
    ("ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "reduce"),
    ("ncclSymDevKernel_AllGather_LL(ncclSymDevWorkArgs*)", "all_gather"),
    ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", None),
    # Other device libraries.
    ("two_shot_all_reduce_kernel", "all_reduce"),
    ("void vllm::cross_device_reduce_1stage<float, 2>(vllm::RankData*)", "all_reduce"),
    # gloo and NCCL annotations.
    ("gloo:all_reduce", "all_reduce"),
    ("gloo:broadcast", "broadcast"),
    ("nccl:_all_gather_base", "all_gather"),
    ("nccl:send 0->1", "send"),
    ("nccl:recv 1<-0", "recv"),
    # PyTorch's "Collective name" and c10d operators.
    ("allreduce", "all_reduce"),
    ("allreduce_coalesced", "all_reduce"),
    ("_allgather_base", "all_gather"),
    ("all_gather_into_tensor_coalesced", "all_gather"),
    ("allgather_into_tensor_out", "all_gather"),
    ("_reduce_scatter_base", "reduce_scatter"),
    ("reduce_scatter_tensor", "reduce_scatter"),
    ("all_to_all", "all_to_all"),
    ("all_to_allv", "all_to_all"),
    ("alltoall_base", "all_to_all"),
    ("_broadcast_oop", "broadcast"),
    ("_reduce_oop", "reduce"),
    ("barrier", "barrier"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("c10d::allreduce_", "all_reduce"),
    ("c10d::reduce_scatter_", "reduce_scatter"),
    ("_c10d_functional::all_gather_into_tensor", "all_gather"),
    ("wait", None),
    ("void deep_ep::intranode::dispatch<8, 768>(int4*, float*)", "all_to_all"),
    ("_ZN7deep_ep9intranode7combineI13__nv_bfloat16EEvPT_", "all_to_all"),
    ("void deep_ep::internode::notify_dispatch<false, 2>(int const*)", "barrier"),
    ("void deep_ep::intranode::cached_notify_combine<8>(void**)", "barrier"),
    ("void deep_ep::internode_ll::dispatch<true, false, 7168>(void*)", None),
]

# Ten elements sent and forty received: the size is that of the side that NCCL's tests count.
SIZES = [
    ("allreduce", "Float", 4 * 10),
    ("_allgather_base", "Float", 4 * 40),
    ("_reduce_scatter_base", "BFloat16", 2 * 10),
    ("all_to_allv", "Half", 2 * 10),
    ("broadcast", "Byte", 10),
    ("allreduce", "Float8_e4m3fn", 10),
    ("allreduce", "Double", 8 * 10),
    ("allreduce", "Mystery", None),
    ("allreduce", None, None),
]


@pytest.mark.parametrize(("name", "op"), OPERATIONS)
def test_a_name_tells_the_operation(name: str, op: str | None) -> None:
    assert operation_of(name) == op


@pytest.mark.parametrize(("collective_name", "dtype", "size_bytes"), SIZES)
def test_a_size_is_elements_times_width(collective_name: str, dtype: str | None, size_bytes: int | None) -> None:
    trace = Trace().collective(0, 9, op=collective_name, elements=10, dtype=dtype)
    trace.collectives[0]["out_elements"] = 40

    store = built(store_of(trace), "align.payload")

    assert rows_of(store, "SELECT size_bytes FROM align.payload") == [(size_bytes,)]


def test_gloo_sizes_come_from_the_shapes_it_was_given() -> None:
    # 1000 floats of four bytes.
    store = built(store_of(Trace().gloo(0, 9)), "align.payload")

    assert rows_of(store, "SELECT op, dtype, size_bytes FROM align.payload") == [("all_reduce", "float", 4_000)]


def test_the_records_that_only_await_a_handle_move_nothing() -> None:
    trace = Trace().collective(0, 9, op="wait")

    store = built(store_of(trace), "align.payload")

    assert rows_of(store, "SELECT * FROM align.payload") == []


@pytest.mark.parametrize("name", ["float", "half", "bfloat16", "c10::bfloat16", "long int", "float8_e5m2", "bool"])
def test_widths_are_known_by_both_of_pytorchs_spellings(name: str) -> None:
    assert element_bytes()[name] in (1, 2, 4, 8)


@pytest.mark.parametrize(
    ("formula", "ranks", "factor"),
    [("2 * (n - 1) / n", 4, 1.5), ("(n - 1) / n", 4, 0.75), ("1", 4, 1.0), ("2 * (n - 1) / n", 2, 1.0)],
)
def test_bus_factors_are_those_of_nccl_tests(formula: str, ranks: int, factor: float) -> None:
    assert bus_factor(formula, ranks) == factor
