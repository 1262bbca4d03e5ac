"""The views a person reads first, over a job drawn by hand."""

from collections.abc import Iterator

import pytest

from tests.given import MS, Trace, data_parallel_job, rows_of
from tests.stories import told
from traceforge.store.database import Store

# Rank 1 is late by 40, 20 and 40 ms, then rank 2 by 10 ms; transfers take 10 ms.
COMPUTE_MS = [[20, 60, 20], [20, 40, 20], [20, 60, 20], [20, 20, 30]]


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    traces = data_parallel_job([[value * MS for value in row] for row in COMPUTE_MS], transfer_ns=10 * MS)
    with told(*traces, stage="timeline") as found:
        yield found


def test_lateness_tells_who_made_the_others_wait(store: Store) -> None:
    rows = rows_of(
        store,
        "SELECT rank, collectives, last_count, total_wait_ns / 1e6, caused_wait_ns / 1e6 FROM timeline.rank_lateness",
    )

    # Rank 1 alone was missing for 40 + 20 + 40 ms, which two ranks waited; rank 2 for 10 ms.
    assert rows == [(0, 4, 0, 110, 0), (1, 4, 3, 10, 200), (2, 4, 1, 100, 20)]


def test_exposed_communication_is_told_by_communicator_and_operation(store: Store) -> None:
    rows = rows_of(
        store,
        "SELECT op, collectives, exposed_wait_ns / 1e6, exposed_transfer_ns / 1e6, hidden_ns, exposed_share"
        " FROM timeline.exposed_communication",
    )

    assert rows == [("all_reduce", 4, 220, 120, 0, 1.0)]


def test_iteration_quantiles_are_those_of_iterations_that_were_measured(store: Store) -> None:
    # 70, 50, 70 and 40 ms.
    rows = rows_of(store, "SELECT iterations, p50_ns, p95_ns, longest_duration_ns FROM timeline.iteration_quantile")

    assert rows == [(4, 50 * MS, 70 * MS, 70 * MS)]


def test_a_collective_that_took_thrice_as_long_as_its_kind_is_slow() -> None:
    traces = [Trace(rank) for rank in range(2)]
    for trace in traces:
        for n, transfer in enumerate((10, 10, 30, 10, 10)):
            trace.collective(100 * n * MS, (100 * n + transfer) * MS)

    store = told(*traces, stage="timeline")

    rows = rows_of(
        store, "SELECT collective_id, transfer_ns / 1e6, reference_transfer_ns / 1e6 FROM timeline.slow_collective"
    )
    assert rows == [(2, 30, 10)]


def test_gaps_are_summed_by_cause() -> None:
    # device   |0–10|…data…|40–50|…data…|90–100|
    trace = Trace().step(1, 0, 100).kernel(0, 10).kernel(40, 50).kernel(90, 100)
    trace.host_work("load_batch", 11, 39, "user_annotation").host_work("load_batch", 51, 88, "user_annotation")

    store = told(trace, stage="timeline")

    assert rows_of(store, "SELECT cause, gaps, total_gap_ns, longest_gap_ns, share FROM timeline.gap_cause") == [
        ("data_loading", 2, 70, 40, 0.7)
    ]


def test_a_message_is_compared_with_those_between_the_same_two_ranks() -> None:
    # given three ranks of one group; ranks 0 and 1 exchange in 1 ms, once in 4 ms, ranks 1 and 2 in 30 ms, each time
    first, second, third = traces = [Trace(rank) for rank in range(3)]
    for n, lasting in enumerate((1, 1, 4, 1, 1)):
        near, far = 100 * n * MS, (100 * n + 50) * MS
        first.exchange(near, near + lasting * MS, [("send", 1)], ranks=range(3))
        second.exchange(near, near + lasting * MS, [("recv", 0)], ranks=range(3))
        second.exchange(far, far + 30 * MS, [("send", 2)], ranks=range(3))
        third.exchange(far, far + 30 * MS, [("recv", 1)], ranks=range(3))

    store = told(*traces, stage="timeline")

    # then the path of ranks 1 and 2 is no slow call of ranks 0 and 1
    rows = rows_of(store, "SELECT transfer_ns / 1e6, reference_transfer_ns / 1e6, alike FROM timeline.slow_collective")
    assert rows == [(4, 1, 5)]


def test_messages_that_share_a_kernel_are_compared_with_nothing() -> None:
    # given a rank that receives and sends in one kernel; once the rank that it sends to comes 29 ms late
    #   0  |send|                |send|
    #   1  |recv and send|       |recv and send·········|
    #   2  |recv|                              |recv|
    first, second, third = traces = [Trace(rank) for rank in range(3)]
    for n in range(12):
        late = 29 if n == 6 else 0
        at = 100 * n * MS
        first.exchange(at, at + 1 * MS, [("send", 1)], ranks=range(3))
        second.exchange(at, at + (1 + late) * MS, [("recv", 0), ("send", 2)], ranks=range(3))
        third.exchange(at + late * MS, at + (1 + late) * MS, [("recv", 1)], ranks=range(3))

    store = told(*traces, stage="timeline")

    # then the message that came at once is no slow one
    assert rows_of(store, "SELECT MAX(transfer_ns) / 1e6 FROM timeline.collective") == [(30,)]
    assert rows_of(store, "FROM timeline.slow_collective") == []


def test_calls_of_unknown_size_are_compared_with_nothing() -> None:
    traces = [Trace(rank) for rank in range(2)]
    for trace in traces:
        for n, transfer in enumerate((10, 10, 30, 10, 10)):
            trace.collective(100 * n * MS, (100 * n + transfer) * MS, elements=None)

    store = told(*traces, stage="timeline")

    assert rows_of(store, "SELECT COUNT(*) FROM timeline.collective WHERE size_bytes IS NULL") == [(5,)]
    assert rows_of(store, "FROM timeline.slow_collective") == []
