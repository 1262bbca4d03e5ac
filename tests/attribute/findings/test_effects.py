"""What stands out: delays of one cause, iteration by iteration, and whether a careful person would believe them.

Iterations take 100 throughout, so that delays read as per cent.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.attribute.findings.runs import is_believed, judged, subjects
from tests.attribute.jobs import blame_of
from tests.examples import examples
from tests.replay.models import lockstep_model
from traceforge.attribute.findings.effects import Effect, effect_in_turns, effect_on_job, with_one_off
from traceforge.attribute.findings.finding_candidate import FindingCandidate
from traceforge.attribute.findings.grading import GradeInputs, GradeLimits, grade_of_ranks, pattern_of

LIMITS = GradeLimits()


def judged_job(delays: np.ndarray, residual: float = 0) -> Effect | None:
    """Effect of delays that are nobody's in particular."""
    delays = np.asarray(delays, dtype=np.float64)
    return effect_on_job(delays, np.full(len(delays), 100.0), residual, LIMITS)


def test_a_persistent_straggler_is_certain() -> None:
    # given rank 2 that costs 20 in every one of 30 iterations, beside a little noise of all
    delays = np.random.default_rng(1).uniform(0, 1, (30, 4))
    delays[:, 2] += 20

    # then it is the only one reported
    (found,) = judged(delays)
    assert subjects([found]) == [("rank", "2", "slow_compute", "persistent", "high")]
    assert found.effect.share == pytest.approx(0.2, abs=0.01)
    assert found.effect.dominance > 0.9
    assert found.effect.affected.tolist() == list(range(30))


def test_what_gets_slower_for_good_is_held_against_the_scatter_before() -> None:
    # given transfers that scatter by some 10 in six iterations, and take 66 more in the 14 after
    delays = np.array([-9, 15, -7, -8, 2, -8] + [66] * 14, dtype=np.float64)
    before = np.repeat([True, False], [6, 14])

    # then the lowest quarter of all, in which the highest of the six lies, shows too large a scatter
    assert judged_job(delays) is None
    found = effect_on_job(delays, np.full(20, 100.0), 0, LIMITS, usual=before)
    assert found is not None
    assert (found.confidence, found.affected.tolist()) == ("high", list(range(6, 20)))


def test_a_job_that_is_slow_from_its_fourth_iteration_on_is_held_against_the_three_before() -> None:
    # given transfers that take 60 more in seven of ten iterations: their lowest quarter ends just below the slow ones
    delays = np.array([0, 1, 2] + [60] * 7, dtype=np.float64)

    found = judged_job(delays)
    assert found is not None
    assert found.affected.tolist() == list(range(3, 10))


def test_three_quick_iterations_now_and_then_are_not_what_the_others_are_held_against() -> None:
    # given the same amounts in another order
    assert judged_job(np.array([0] + [60] * 3 + [1] + [60] * 2 + [2] + [60] * 2, dtype=np.float64)) is None


def test_two_iterations_before_a_change_do_not_show_what_is_usual() -> None:
    assert judged_job(np.array([0, 1] + [60] * 8, dtype=np.float64)) is None


def test_a_stall_now_and_then_is_found_with_its_iterations() -> None:
    # given rank 1 that loses 60 in 5 of 30 iterations
    delays = np.zeros((30, 4))
    delays[[3, 9, 14, 20, 27], 1] = 60

    (found,) = judged(delays)
    assert subjects([found]) == [("rank", "1", "slow_compute", "transient", "high")]
    assert found.effect.affected.tolist() == [3, 9, 14, 20, 27]
    assert found.effect.affected_delay_ns == 60
    assert found.effect.delay_ns_per_iteration == pytest.approx(5 * 60 / 30)


def test_the_longest_of_many_kernels_has_all_sizes_and_is_no_fault_in_turns() -> None:
    # given 64 ranks, of which in each of 40 iterations six lose something with a heavy tail (Pareto, index 2)
    drawn = np.random.default_rng(199)
    tail = 2.0 * (drawn.pareto(2.0, (40, 64)) + 1) * (drawn.random((40, 64)) < 0.1)
    # and the ledger blames the longest of an iteration
    delays = np.where(tail == tail.max(axis=1, keepdims=True), tail, 0.0)
    durations = np.full(40, 100.0)

    # then 12 % is lost to one rank or another, as among any so many; a pause, which has a name, would count
    assert delays.sum() / durations.sum() == pytest.approx(0.12, abs=0.01)
    assert effect_in_turns(delays, durations, LIMITS) is None
    assert effect_in_turns(delays, durations, replace(LIMITS, any_size=True)) is not None


def test_losses_of_all_sizes_of_few_ranks_are_a_fault_in_turns() -> None:
    # given four ranks, of which in each iteration one loses something of any size, 12 % on average: 3 % a rank
    drawn = np.random.default_rng(4)
    delays = np.zeros((40, 4))
    delays[np.arange(40), np.arange(40) % 4] = 12 * drawn.exponential(1.0, 40)

    assert effect_in_turns(delays, np.full(40, 100.0), LIMITS) is not None


def steps_of(lengths: np.ndarray, ranks: int = 4) -> Effect | None:
    """What is said of steps that last 100 times their lengths on all ranks alike; shorter ones cost nothing."""
    own = np.repeat(100 * (lengths - np.median(lengths))[:, None], ranks, axis=1)
    durations = 100.0 * lengths
    cost = np.maximum(0.0, own[:, 0])
    effect = effect_on_job(cost, durations, 0, LIMITS, own)
    return None if effect is None else with_one_off(effect, cost, durations, LIMITS, own)


def test_steps_whose_lengths_vary_by_a_large_factor_are_nobodys_fault() -> None:
    # given 300 runs of 30 steps, whose lengths differ by a factor of 1.5 or its inverse (one standard deviation)
    lengths = np.exp(0.4 * np.random.default_rng(1).standard_normal((300, 30)))

    # then no long step, nor several, are a finding (24 runs are, if the spread is that of their shorter half)
    effects = [steps_of(run) for run in lengths]
    assert [one for one in effects if one is not None and one.confidence != "low"] == []


def test_a_pause_of_everyone_shows_among_steps_that_vary() -> None:
    # given steps that vary by 5 %, of which five in a row are twice as long
    lengths = np.exp(0.05 * np.random.default_rng(1).standard_normal(30))
    lengths[12:17] *= 2

    effect = steps_of(lengths)
    assert effect is not None
    assert (effect.affected.tolist(), effect.confidence) == ([12, 13, 14, 15, 16], "high")


@pytest.mark.parametrize(
    ("paused", "lengths", "confidence"),
    [
        ((200, 205, 203, 200), (100, 102), "medium"),
        ((200, 100, 203, 200), (100, 102), "low"),
        ((200, 205, 203, 200), (100, 130), "low"),
        ((200, 205, 203, 200), (100,), "low"),
    ],
    ids=["alike, beside two that agree", "one rank pauses less", "the others differ", "one other iteration"],
)
def test_a_pause_of_everyone_counts_beside_two_iterations_that_agree(
    paused: tuple[int, ...], lengths: tuple[int, ...], confidence: str
) -> None:
    # given a pause of each of four ranks in the last of two or three iterations
    own = np.array([*((length - 101,) * 4 for length in lengths), paused], dtype=np.float64)
    cost, durations = np.maximum(0.0, own.min(axis=1)), np.array([*lengths, 101 + max(paused)], dtype=np.float64)

    def judged_as(limits: GradeLimits) -> str:
        effect = effect_on_job(cost, durations, 0, limits, own)
        return "low" if effect is None else with_one_off(effect, cost, durations, limits, own).confidence

    # then it is told where it is a pause by name; a step may compute longer by its nature
    assert judged_as(GradeLimits(any_size=True)) == confidence
    assert judged_as(GradeLimits()) == "low"


def test_what_happens_once_is_never_certain() -> None:
    # given rank 1 that loses a whole iteration's time, once in 30
    delays = np.zeros((30, 4))
    delays[7, 1] = 100

    assert [found.confidence for found in judged(delays)] == ["low"]


@examples(60)
@given(arrays(np.int64, st.tuples(st.just(1), st.integers(1, 12)), elements=st.integers(-100, 400)))
def test_a_single_iteration_is_never_certain(delays: np.ndarray) -> None:
    assert all(found.confidence != "high" for found in judged(delays))


def test_a_small_effect_does_not_count_however_certain() -> None:
    # given rank 0 that costs 0.9 % in every iteration
    delays = np.zeros((200, 4))
    delays[:, 0] = 0.9

    assert judged(delays) == []


@pytest.mark.parametrize(
    ("share", "p_value", "grade"),
    [(0.03, 0.004, "low"), (0.03, 0.001, "medium"), (0.06, 0.004, "medium"), (0.06, 0.02, "low")],
    ids=["small and likely", "small and unlikely", "larger", "larger and likely"],
)
def test_a_small_delay_has_to_be_less_likely_by_chance_than_a_large_one(
    share: float, p_value: float, grade: str
) -> None:
    # given ranks that own four fifths of what is lost, 8 in each of some iterations
    found = GradeInputs(share, dominance=0.8, p_value=p_value, iterations=24, affected=9, hit_share=0.08)

    # then of what is small one in five hundred is still one of the many that are tried
    assert grade_of_ranks(found, LIMITS) == grade


def test_a_delay_that_ranks_take_in_turns_is_nobodys() -> None:
    # given 20 lost in every iteration, by each of four ranks in turn
    delays = np.zeros((40, 4))
    delays[np.arange(40), np.arange(40) % 4] = 20

    assert not is_believed(judged(delays))


def test_two_stragglers_alike_are_one_finding() -> None:
    # given ranks 0 and 3 that cost 20 each in every iteration
    delays = np.zeros((30, 6))
    delays[:, [0, 3]] = 20

    # then they are named together: repairing one alone would save nothing
    (found,) = judged(delays)
    assert subjects([found]) == [("ranks", "0, 3", "slow_compute", "persistent", "high")]
    assert (found.effect.share, found.effect.dominance) == (0.4, 1.0)


def test_a_credit_is_no_delay() -> None:
    # given rank 1 that is faster than the reference
    delays = np.zeros((30, 4))
    delays[:, 1] = -30

    assert judged(delays) == []


def test_the_interval_holds_the_mean_and_needs_three_iterations() -> None:
    delays = np.zeros((30, 4))
    delays[:, 2] = np.random.default_rng(0).uniform(10, 30, 30)

    (found,) = judged(delays)
    assert found.effect.interval_ns is not None
    low, high = found.effect.interval_ns
    assert low < found.effect.delay_ns_per_iteration < high
    assert judged(delays[:2])[0].effect.interval_ns is None


def noisy_job(seed: int, spread: float) -> list[FindingCandidate]:
    """20 iterations of four ranks, three places each, whose work varies independently of rank."""
    rng = np.random.default_rng(seed)
    work = np.rint(rng.normal(1_000, 1_000 * spread, (20, 3, 4))).astype(np.int64)
    model = lockstep_model(np.maximum(work, 1), transfer_ns=100)
    delays = np.array([blame_of(model, i).work_ns[:, 0] for i in range(20)])
    durations = (model.end_ns.max(axis=1) - model.start_ns.min(axis=1)).astype(np.float64)
    return judged(100 * delays / durations[:, None])


@pytest.mark.parametrize("spread", [0.02, 0.1])
def test_ranks_that_differ_by_chance_alone_are_not_accused(spread: float) -> None:
    # given 50 healthy runs
    accused = sum(is_believed(noisy_job(seed, spread)) for seed in range(50))

    # then at most one in fifty has a finding worth a person's time
    assert accused <= 1


def test_transfers_that_vary_by_chance_alone_are_no_episode() -> None:
    # given 50 healthy runs whose transfers vary by a tenth of an iteration, now and then more
    believed = 0
    for seed in range(50):
        found = judged_job(10 * np.random.default_rng(seed).lognormal(0, 0.5, 30))
        believed += found is not None and found.confidence != "low"

    assert believed <= 1


@pytest.mark.parametrize(("first", "last"), [(10, 19), (5, 24)], ids=["a third of the run", "two thirds of the run"])
def test_a_congested_stretch_is_an_episode(first: int, last: int) -> None:
    # given transfers that take 30 more for a stretch in the middle of 30 iterations
    delays = np.random.default_rng(2).normal(0, 0.5, 30)
    delays[first : last + 1] += 30

    found = judged_job(delays)
    assert found is not None
    assert (found.pattern, found.confidence) == ("episode", "high")
    assert found.affected.tolist() == list(range(first, last + 1))
    assert found.affected_delay_ns == pytest.approx(30, abs=1)


def test_slow_transfers_that_do_not_follow_one_another_are_no_episode() -> None:
    # given transfers that take 30 more in every third iteration
    delays = np.zeros(30)
    delays[::3] = 30

    found = judged_job(delays)
    assert found is not None
    # a tenth of the time lost cannot be called nothing, but it looks like no episode on the fabric
    assert (found.pattern, found.confidence) == ("transient", "medium")


def test_a_delay_below_three_clock_residuals_is_not_seen() -> None:
    # given transfers that take 20 more for ten iterations
    delays = np.zeros(30)
    delays[10:20] = 20

    # then clocks known to 6 tell it, and clocks known to 7 do not: 3 x 6 < 20 < 3 x 7
    assert judged_job(delays, residual=6) is not None
    assert judged_job(delays, residual=7) is None


def test_a_job_without_delay_has_nothing_to_judge() -> None:
    assert judged_job(np.zeros(30)) is None


@pytest.mark.parametrize(
    ("affected", "iterations", "pattern"),
    [
        (range(30), 30, "persistent"),
        (range(1, 30), 30, "persistent"),  # all but the first
        (range(18), 30, "episode"),  # 60 %, in one stretch
        ([*range(0, 30, 2), *range(1, 10, 2)], 30, "persistent"),  # two thirds, here and there
        ([4, 5, 6], 30, "episode"),
        ([4, 5], 30, "transient"),
        ([4, 5, 6, 20], 30, "episode"),  # mostly in a row
        ([2, 9, 16, 23], 30, "transient"),
        ([7], 30, "one_off"),
        ([0], 1, "transient"),  # one iteration has no pattern
    ],
)
def test_patterns_by_hand(affected: list[int], iterations: int, pattern: str) -> None:
    assert pattern_of(np.array(sorted(affected)), iterations) == pattern
