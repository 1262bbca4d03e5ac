"""Steps and bytes of an all-reduce, and figures that are often quoted, worked through with them."""

import numpy as np
import pytest

from traceforge.replay.all_reduce import bytes_factor, steps


def at_bus_bandwidth_s(size_bytes: float, bytes_per_s: float, ranks: int) -> float:
    """Time of a ring all-reduce whose links carry so much."""
    return size_bytes * float(bytes_factor(np.array([float(ranks)]))[0]) / bytes_per_s


def test_ring_and_tree_pay_in_steps_and_bytes() -> None:
    ranks = np.array([1.0, 2, 8])

    assert steps(ranks) == pytest.approx([0, 2, 14])
    assert steps(ranks, "tree") == pytest.approx([0, 2, 6])
    assert bytes_factor(ranks) == pytest.approx([0, 1, 1.75])
    assert bytes_factor(ranks, "tree") == pytest.approx([0, 2, 2])


def test_fifty_gigabytes_a_second_of_bus_bandwidth_move_twenty_in_400_to_800_ms() -> None:
    # 20 GB are the gradients of 10 billion parameters in bfloat16; a ring carries 2 (N - 1) / N of them over each link
    assert at_bus_bandwidth_s(20e9, 50e9, 2) == pytest.approx(0.400)
    assert at_bus_bandwidth_s(20e9, 50e9, 64) == pytest.approx(0.7875)
    assert at_bus_bandwidth_s(20e9, 50e9, 1024) == pytest.approx(0.800, rel=2e-3)


def test_two_hundred_megabytes_over_nvswitch() -> None:
    # 200 MB on 8 ranks at 600 GB/s of bus bandwidth: 0.58 ms before latency, not 1 to 2 ms
    assert at_bus_bandwidth_s(200e6, 600e9, 8) == pytest.approx(0.583e-3, rel=1e-3)


def test_two_levels_carry_an_eighth_over_the_slow_links() -> None:
    # given 8 GB on 64 ranks of 8 hosts, 300 GB/s within a host and 50 GB/s between hosts
    flat = at_bus_bandwidth_s(8e9, 50e9, 64)

    two_levels = at_bus_bandwidth_s(8e9, 300e9, 8) + at_bus_bandwidth_s(8e9 / 8, 50e9, 8)

    # then within hosts 7/4 x 8 GB, between them 7/4 x 1 GB are carried, against 63/32 x 8 GB over the slow links
    assert flat == pytest.approx(63 / 32 * 8 / 50)
    assert two_levels == pytest.approx(1.75 * 8 / 300 + 1.75 * 1 / 50)
