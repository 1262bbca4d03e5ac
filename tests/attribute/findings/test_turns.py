"""What ranks lose in turns or in few iterations, and whether a careful person would believe that it is somebody's.

Iterations take 100 throughout, so that delays read as per cent.
"""

import numpy as np
import pytest

from tests.attribute.findings.runs import found_in, is_believed, judged, judged_run, lost, subjects
from traceforge.attribute.findings.effects import Effect, effect_in_turns
from traceforge.attribute.findings.grading import GradeLimits

LIMITS = GradeLimits()


def judged_turns(delays: np.ndarray) -> Effect | None:
    return effect_in_turns(delays, np.full(len(delays), 100.0), LIMITS)


def test_ranks_that_delay_the_job_in_turns_are_a_finding_of_the_job() -> None:
    # given 20 lost in every iteration, by each of four ranks in turn
    delays = np.zeros((40, 4))
    delays[np.arange(40), np.arange(40) % 4] = 20

    found = judged_turns(delays)
    assert found is not None
    assert (found.pattern, found.confidence, found.delay_ns_per_iteration) == ("rotating", "high", 20)


def test_turns_in_a_few_iterations_are_a_hint_only() -> None:
    delays = np.zeros((8, 4))
    delays[np.arange(8), np.arange(8) % 4] = 20

    found = judged_turns(delays)
    assert found is not None
    assert found.confidence == "low"


def test_turns_of_two_of_many_ranks_or_of_little_cost_are_none() -> None:
    two, little = np.zeros((40, 4)), np.zeros((40, 4))
    two[np.arange(40), np.arange(40) % 2] = 20
    little[np.arange(0, 40, 4), np.arange(0, 40, 4) // 4 % 4] = 20

    assert judged_turns(two) is None
    assert judged_turns(little) is None


def test_a_rank_that_is_slow_for_a_while_stands_out_however_long_it_lasts() -> None:
    # given rank 1 that loses 12 in nine iterations on end, among ranks whose delays do not last
    delays = np.random.default_rng(0).exponential(0.2, (20, 8))
    delays[5:14, 1] += 12

    assert subjects(judged(delays))[0] == ("rank", "1", "slow_compute", "episode", "high")


def test_three_iterations_suffice_where_one_rank_takes_most_of_each() -> None:
    # given rank 2 that loses 90 of 100 in each of three iterations: counting alone gives 1 in 16
    delays = np.full((3, 4), 0.1)
    delays[:, 2] = 90

    (found,) = judged(delays)
    assert subjects([found]) == [("rank", "2", "slow_compute", "persistent", "high")]
    assert found.effect.p_value is not None
    assert found.effect.p_value > 0.03

    # and a tenth of each is likely, a twentieth is not, nor is a tenth of two of them
    delays[:, 2] = 10.5
    (likely,) = judged(delays)
    assert subjects([likely]) == [("rank", "2", "slow_compute", "persistent", "medium")]
    delays[2, 2] = 0.1
    assert not is_believed(judged(delays))
    delays[:, 2] = 5
    assert not is_believed(judged(delays))


def test_a_tenth_of_each_of_three_iterations_counts_on_no_rank_where_others_lose_as_well() -> None:
    # given rank 2 that loses 12 in each, and rank 0 that loses 3
    delays = np.full((3, 4), 0.1)
    delays[:, 2], delays[:, 0] = 12, 3

    assert not is_believed(judged(delays))


def test_two_stalls_of_one_rank_prove_nothing() -> None:
    # given rank 2 that loses a third of an iteration twice in ten
    delays = np.zeros((10, 4))
    delays[[2, 7], 2] = 33

    assert not is_believed(judged(delays))


def test_two_long_kernels_of_one_rank_beside_a_third_delay_of_the_job_prove_nothing() -> None:
    # given rank 2 that loses 60 twice in 40 iterations, and rank 1 that loses 15 once: the job lost time three times
    delays = np.zeros((40, 4))
    delays[[5, 20], 2], delays[30, 1] = 60, 15

    assert not is_believed(judged(delays))
    # but a pause has a name
    assert subjects(found_in(judged_run(40, 4), lost({"input_stall": delays})))[0][:3] == ("rank", "2", "input_stall")


def test_three_stragglers_are_believed_though_each_has_a_third() -> None:
    # given three of eight ranks that cost 8 each in every one of 20 iterations
    delays = np.random.default_rng(4).uniform(0, 0.2, (20, 8))
    delays[:, [1, 4, 6]] += 8

    assert subjects([one for one in judged(delays) if one.confidence != "low"]) == [
        ("ranks", "1, 4, 6", "slow_compute", "persistent", "high")
    ]


@pytest.mark.parametrize("iterations", [1, 2])
@pytest.mark.parametrize(("lost", "confidence"), [(25, "medium"), (15, "low")])
def test_one_or_two_iterations_count_only_if_one_rank_takes_a_fifth(
    iterations: int, lost: int, confidence: str
) -> None:
    delays = np.full((iterations, 4), 0.1)
    delays[:, 2] = lost

    (found,) = judged(delays)
    assert (found.subject.name, found.confidence) == ("2", confidence)


def test_two_ranks_that_each_take_a_fourth_of_the_only_iteration_are_both_named() -> None:
    # given eight ranks, of which two cost 30 and 27 of 100, and the others up to 3
    delays = np.array([[30.0, 1, 3, 1, 0, 1, 27, 1]])

    assert [found.subject.name for found in judged(delays) if found.confidence == "medium"] == ["0, 6"]


def test_what_the_job_loses_belongs_to_the_rank_whose_it_nearly_all_is() -> None:
    # given two ranks, of which rank 1 loses 30 in four of twelve iterations: counting gives 1 in 8
    delays = np.full((12, 2), 0.1)
    delays[[1, 4, 7, 10], 1] = 30

    (found,) = found_in(judged_run(12, 2), lost({"input_stall": delays}))
    assert (found.subject.name, found.effect.affected.tolist()) == ("1", [1, 4, 7, 10])
    # beside the 0.1 that both lose alike
    assert found.effect.affected_delay_ns == pytest.approx(30 * 30 / 30.1)
    # and to the job if the ranks lose it in turns
    delays[[4, 10]] = delays[[4, 10], ::-1]
    assert [one.subject.kind for one in found_in(judged_run(12, 2), lost({"input_stall": delays}))] == ["job"]


def test_two_ranks_may_delay_the_job_in_turns() -> None:
    delays = np.zeros((40, 2))
    delays[np.arange(40), np.arange(40) % 2] = 20

    found = judged_turns(delays)
    assert found is not None
    assert (found.pattern, found.confidence) == ("rotating", "high")


def test_of_two_ranks_little_noise_of_both_and_much_of_one_are_no_turns() -> None:
    # given two ranks of which one or the other is 10 late, and two of which rank 1 is 60 late twice out of three times
    little, much = np.zeros((30, 2)), np.zeros((30, 2))
    little[np.arange(30), np.arange(30) % 2] = 10
    much[:, 1] = 60
    much[::3] = (30, 0)

    assert judged_turns(little) is None
    assert judged_turns(much) is None


def test_a_rank_is_seen_beside_another_that_is_slow_for_long() -> None:
    # given rank 0 that loses 20 in the first 20 of 30 iterations, and rank 3 that loses 8 in the last 20
    delays = np.random.default_rng(5).uniform(0, 0.2, (30, 8))
    delays[:20, 0] += 20
    delays[10:, 3] += 8

    assert [found.subject.name for found in judged(delays) if found.confidence != "low"] == ["0", "3"]


def test_turns_in_most_iterations_are_told_with_what_they_cost_in_the_others() -> None:
    # given 8 lost in three of four iterations, by ranks in turn, and 4 in the fourth: 7 on average
    delays = np.zeros((40, 4))
    delays[np.arange(40), np.arange(40) // 4 % 4] = np.where(np.arange(40) % 4 == 0, 4, 8)

    found = judged_turns(delays)
    assert found is not None
    assert found.share == pytest.approx(0.07)
    assert len(found.affected) == 30
