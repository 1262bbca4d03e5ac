"""What a clock shows that is set in the middle of a run."""

import numpy as np
import pytest

from traceforge.synth.clocks import ClockErrors, draw_clocks
from traceforge.synth.cluster import Cluster


def shown(step_ns: float, *times_ns: float) -> list[list[int]]:
    """Readings of two hosts of one rank each; the second one's clock is set at 500 of 1,000 ns."""
    errors = ClockErrors(0, 0, 0, step_ns=step_ns, step_node=1)
    clocks = draw_clocks(Cluster(2, 1), errors, np.random.default_rng(0), 1_000)
    readings: list[list[int]] = clocks.read(np.array(times_ns)[:, None] * np.ones(2)).T.tolist()
    return readings


def test_one_host_jumps_forward_and_the_other_does_not() -> None:
    assert shown(70, 0, 499, 500, 900) == [[0, 499, 500, 900], [0, 499, 570, 970]]


def test_a_clock_that_is_set_back_never_runs_backwards() -> None:
    assert shown(-70, 0, 499, 510, 570, 900)[1] == [0, 499, 500, 500, 830]


@pytest.mark.parametrize("step_ns", [0.0, 50.0])
def test_a_step_changes_no_draw(step_ns: float) -> None:
    usual, stepped = (
        draw_clocks(Cluster(2, 2), ClockErrors(step_ns=step), np.random.default_rng(5), 1_000) for step in (0, step_ns)
    )

    assert np.array_equal(usual.offset_ns, stepped.offset_ns)
    assert np.array_equal(usual.drift, stepped.drift)
