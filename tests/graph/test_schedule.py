"""When everything happens, given what depends on what: worked by hand, and measured times come back exactly."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceforge.graph.schedule import Edges, calibrated, schedule, topological_order


def edges(*found: tuple[int, int, int]) -> Edges:
    return Edges(*(np.array(column, np.int64) for column in zip(*found, strict=True)))


def test_a_node_starts_when_the_last_of_what_it_needs_has_ended() -> None:
    # 0 |–––10–––|
    # 1 |––4––|
    # 2          |2| lag 1 behind 0, 5 behind 1
    found = schedule(np.array([10, 4, 2]), np.zeros(3, np.int64), edges((0, 2, 1), (1, 2, 5)))

    assert found.start_ns.tolist() == [0, 0, 11]
    assert found.span_ns == 13


def test_a_lag_may_be_negative_where_a_kernel_starts_before_its_launch_returns() -> None:
    found = schedule(np.array([10, 5]), np.array([100, 0]), edges((0, 1, -7)))

    assert found.start_ns.tolist() == [100, 103]


def test_a_shorter_predecessor_lets_go_only_as_far_as_the_other_ones_allow() -> None:
    # Measured: 0 ends at 10, 1 at 8, 2 starts at 11; usual lags of that kind are 1.
    start, end = np.array([0, 0, 11]), np.array([10, 8, 13])
    found = calibrated(start, end, np.array([0, 1]), np.array([2, 2]), np.array([0, 0]))

    assert found.lag_ns.tolist() == [1, 1]
    assert schedule(np.array([2, 8, 2]), start, found).start_ns.tolist() == [0, 0, 9]


@given(st.data())
def test_measured_durations_give_measured_times_back(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 25))
    duration = np.array(data.draw(st.lists(st.integers(0, 50), min_size=count, max_size=count)))
    start = np.sort(np.array(data.draw(st.lists(st.integers(0, 300), min_size=count, max_size=count))))
    pair = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1), st.integers(0, 2))
    found = [(a, b, kind) for a, b, kind in data.draw(st.lists(pair, max_size=40)) if a < b]
    begin, end, kind = np.array(found, np.int64).reshape(-1, 3).T

    replayed = schedule(duration, start, calibrated(start, start + duration, begin, end, kind))

    assert np.array_equal(replayed.start_ns, start)


def test_nodes_in_a_circle_are_left_out_and_counted() -> None:
    # 0 -> 1 -> 2 -> 1, and 3 alone
    order, circular = topological_order(4, np.array([0, 1, 2]), np.array([1, 2, 1]))

    assert sorted(order.tolist()) == [0, 3]
    assert circular == 2
