"""How fast each communicator moved each kind of collective, worked by hand."""

import pytest

from tests.given import Trace, rows_of
from tests.stories import told


def test_transfers_of_one_kind_are_one_row() -> None:
    # given five all-reduces of 4,000 bytes on two ranks, that take 10, 20, 30, 40 and 50 ns after the last arrival,
    # and for which rank 1 is 1, 2, 3, 4 and 5 ns late
    traces = [Trace(rank).step(0, 0, 1_000) for rank in range(2)]
    for i in range(1, 6):
        for rank, trace in enumerate(traces):
            trace.collective(100 * i + rank * i, 100 * i + i + 10 * i)

    with told(*traces, stage="fabric") as store:
        rows = rows_of(
            store,
            "SELECT op, size_bytes, collectives, reference_transfer_ns, median_transfer_ns, p95_transfer_ns,"
            " median_bus_bandwidth_bytes_per_s, median_skew_ns FROM fabric.load",
        )

    # then the quartile is 20 and the median 30; on two ranks the bus carries every byte once: 4,000 bytes in 30 ns
    assert rows == [("all_reduce", 4_000, 5, 20, 30, 50, pytest.approx(4_000 / 30e-9), 3)]


def test_sizes_operations_and_communicators_have_rows_of_their_own() -> None:
    # given all-reduces of two sizes and an all-gather, among all ranks
    traces = [Trace(rank).step(0, 0, 1_000) for rank in range(2)]
    gather = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    for trace in traces:
        trace.collective(100, 110).collective(200, 210, elements=2_000)
        trace.collective(300, 310, op="allgather", kernel=gather)

    with told(*traces, stage="fabric") as store:
        rows = rows_of(store, "SELECT op, collectives FROM fabric.load ORDER BY op, size_bytes")

    assert rows == [("all_gather", 1), ("all_reduce", 1), ("all_reduce", 1)]


def test_bytes_that_are_not_known_leave_the_bandwidth_open() -> None:
    traces = [Trace(rank).step(0, 0, 1_000).collective(100, 110, elements=None, dtype=None) for rank in range(2)]

    with told(*traces, stage="fabric") as store:
        rows = rows_of(
            store, "SELECT size_bytes, median_transfer_ns, median_bus_bandwidth_bytes_per_s FROM fabric.load"
        )

    assert rows == [(None, 10, None)]


def test_a_run_without_collectives_has_no_load() -> None:
    with told(Trace(0).step(0, 0, 100).kernel(0, 100), stage="fabric") as store:
        assert rows_of(store, "FROM fabric.load") == []
