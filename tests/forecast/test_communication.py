"""Figures that are often quoted, worked through: which bandwidth, which quantile, which efficiency."""

import numpy as np
import pytest

from traceforge.forecast.communication import (
    Link,
    all_reduce_s_at_bus_bandwidth,
    bytes_factor,
    gradient_bytes,
    hierarchical_s,
    ring_s,
    scaling_efficiency,
    steps,
    transfer_s_at_algorithm_bandwidth,
    utilisation,
)


def test_ten_billion_parameters_are_twenty_gigabytes_a_step() -> None:
    assert gradient_bytes(10e9, "bfloat16") == 20e9
    assert gradient_bytes(10e9, "float32") == 40e9


def test_fifty_gigabytes_a_second_are_400_ms_or_800_ms_by_whose_bandwidth_it_is() -> None:
    # 20 GB at 50 GB/s of algorithm bandwidth: size over time, on any number of ranks
    assert transfer_s_at_algorithm_bandwidth(20e9, 50e9) == pytest.approx(0.400)

    # the same at 50 GB/s of bus bandwidth: a ring carries 2 (N - 1) / N of the bytes over every link
    assert all_reduce_s_at_bus_bandwidth(20e9, 50e9, 2) == pytest.approx(0.400)
    assert all_reduce_s_at_bus_bandwidth(20e9, 50e9, 64) == pytest.approx(0.7875)
    assert all_reduce_s_at_bus_bandwidth(20e9, 50e9, 1024) == pytest.approx(0.800, rel=2e-3)


def test_two_hundred_megabytes_over_nvswitch() -> None:
    # 200 MB on 8 ranks at 600 GB/s of bus bandwidth: 0.58 ms before latency, not 1 to 2 ms
    assert all_reduce_s_at_bus_bandwidth(200e6, 600e9, 8) == pytest.approx(0.583e-3, rel=1e-3)


def test_forty_seven_per_cent_utilisation_is_not_scaling_efficiency() -> None:
    # 147 of 312 TFLOP/s on each of 992 devices
    assert utilisation(147e12, 312e12) == pytest.approx(0.471, abs=5e-4)

    # a job at that utilisation on one node and on 124 would scale perfectly
    assert scaling_efficiency(124 * 8 * 147e12, 124, 8 * 147e12, 1) == pytest.approx(1)

    # and 8200 samples/s on 64 nodes against 1024 on 4 are 50 % scaling efficiency, at whatever utilisation
    assert scaling_efficiency(8200, 64, 1024, 4) == pytest.approx(0.500, abs=1e-3)


def test_ring_and_tree_pay_in_steps_and_bytes() -> None:
    ranks = np.array([1.0, 2, 8])

    assert steps(ranks) == pytest.approx([0, 2, 14])
    assert steps(ranks, "tree") == pytest.approx([0, 2, 6])
    assert bytes_factor(ranks) == pytest.approx([0, 1, 1.75])
    assert bytes_factor(ranks, "tree") == pytest.approx([0, 2, 2])


def test_two_levels_carry_an_eighth_over_the_slow_links() -> None:
    # 64 ranks on 8 hosts; latency left out
    fast, slow = Link(0, 300e9), Link(0, 50e9)

    flat, two_levels = ring_s(8e9, 64, slow), hierarchical_s(8e9, 64, 8, fast, slow)

    # within hosts 2 x 7/8 x 8 GB / 300 GB/s, between them 2 x 7/8 x 1 GB / 50 GB/s
    assert flat == pytest.approx(2 * 63 / 64 * 8 / 50)
    assert two_levels == pytest.approx(1.75 * 8 / 300 + 1.75 * 1 / 50)
    assert hierarchical_s(8e9, 8, 8, fast, slow) == ring_s(8e9, 8, fast)
