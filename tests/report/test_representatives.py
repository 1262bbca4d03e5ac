"""Which iterations are worth a look, and whether the run changed for good."""

from collections.abc import Sequence

from traceforge.report.job import Iteration
from traceforge.report.representatives import lasting_change, median_iteration, normal_iteration, representatives


def run(durations_ms: Sequence[float]) -> list[Iteration]:
    return [
        Iteration(number, 0, round(duration * 1e6), is_warmup=False, is_partial=False)
        for number, duration in enumerate(durations_ms)
    ]


def test_a_lasting_step_is_a_change() -> None:
    # 250 ─────┐ then 280
    found = lasting_change(run([250, 251, 249, 250, 280, 281, 279, 280]))
    assert found is not None
    assert found.first.number == 4
    assert found.before_ns == 250e6
    assert found.after_ns == 280e6


def test_a_single_spike_is_no_change() -> None:
    assert lasting_change(run([250, 251, 249, 400, 250, 251, 249, 250])) is None


def test_scatter_is_no_change() -> None:
    assert lasting_change(run([250, 260, 245, 255, 250, 262, 244, 256, 251, 259])) is None


def test_a_step_too_small_to_matter_is_not_told() -> None:
    assert lasting_change(run([250.0] * 10 + [251.0] * 10)) is None


def test_few_iterations_allow_no_statement() -> None:
    assert lasting_change(run([100, 100, 200, 200, 200])) is None


def test_median_worst_and_change_are_shown_once_each() -> None:
    chosen = representatives(run([250, 251, 249, 250, 280, 281, 279, 290]))
    assert [(one.iteration.number, one.reason) for one in chosen] == [
        (1, "median"),
        (7, "worst"),
        (4, "first after the largest change"),
    ]


def test_one_iteration_may_have_two_reasons() -> None:
    chosen = representatives(run([250, 250]))
    assert [(one.iteration.number, one.reason) for one in chosen] == [(0, "median and worst")]


def test_a_single_iteration_stands_for_nothing_but_itself() -> None:
    chosen = representatives(run([250]))
    assert [(one.iteration.number, one.reason) for one in chosen] == [(0, "")]
    assert representatives([]) == []


def test_a_slow_iteration_is_compared_with_one_that_is_not_slow() -> None:
    # given eight iterations of which the last five are slow: the median of all is a slow one
    iterations = run([250, 252, 251, 280, 281, 282, 283, 284])
    assert median_iteration(iterations).number == 3
    # then the median of the others is the normal one; of iterations that are all slow, their own median
    assert normal_iteration(iterations, (3, 7)).number == 2
    assert normal_iteration(iterations, (0, 7)).number == 3
    assert normal_iteration(iterations, None).number == 3
