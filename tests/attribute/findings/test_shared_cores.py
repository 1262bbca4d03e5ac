"""What is said where cores are shared, and of few steps, which other programs explain as well; steps take 100."""

import numpy as np
import pytest

from tests.attribute.findings.runs import found_in, judged_run, lost, subjects
from traceforge.attribute.findings.search import _cause_of
from traceforge.attribute.findings.text import next_step


def noise(seed: int, size: float = 0.2, ranks: int = 8) -> np.ndarray:
    return np.random.default_rng(seed).exponential(size, (20, ranks))


@pytest.mark.parametrize(("ranks", "scale"), [(8, 3.0), (16, 1.5), (32, 1.0)])
def test_cores_that_many_programs_share_are_no_pauses_in_turns(ranks: int, scale: float) -> None:
    # given ranks of one host without devices that lose cores, each for a while of no typical length, a fifth in all
    for seed in range(5):
        stall = np.random.default_rng(seed).exponential(scale, (20, ranks))
        run = judged_run(20, ranks, hosts=["a"] * ranks, has_device=False)
        assert subjects(found_in(run, lost({"host_stall": stall}))) == [], seed


@pytest.mark.parametrize(("lengths", "named"), [([30, 31, 30, 29], ["2"]), ([30, 45, 22, 36], [])])
def test_pauses_that_last_as_long_each_time_are_no_taken_cores(lengths: list[int], named: list[str]) -> None:
    # given ranks of one host without devices, and rank 2 of four that pauses in each of only four steps
    stall = noise(13, 0.2, ranks=4)[:4]
    stall[:, 2] += np.array(lengths) * 0.5
    run = judged_run(4, 4, hosts=["a"] * 4, has_device=False)
    assert [one.subject.name for one in found_in(run, lost({"host_stall": stall}))] == named

    # and in four of twenty they are hardly certain, in three they are nothing
    long = noise(13, 0.2, ranks=4)
    long[[3, 4, 9, 17], 2] += np.array(lengths)
    run = judged_run(20, 4, hosts=["a"] * 4, has_device=False)
    found = [(one.subject.name, one.confidence) for one in found_in(run, lost({"host_stall": long}))]
    assert found == [(name, "medium") for name in named]
    long[9, 2] = 0
    assert found_in(run, lost({"host_stall": long})) == []


@pytest.mark.parametrize(
    ("struck", "cause", "named"), [(1, "host_stall", ["3"]), (0, "host_stall", []), (2, "slow_compute", [])]
)
def test_a_pause_that_dwarfs_the_few_other_steps_counts_unless_recording_begins_with_it(
    struck: int, cause: str, named: list[str]
) -> None:
    # given four steps, and 110 % of one more in one of them on rank 3
    stall = noise(14, 0.5)[:4]
    stall[struck, 3] += 110
    assert [one.subject.name for one in found_in(judged_run(4, 8), lost({cause: stall}))] == named

    # then where cores are shared one may have been taken for as long, but not for three steps
    shared = judged_run(4, 8, hosts=["a"] * 8, has_device=False)
    assert found_in(shared, lost({cause: stall})) == []
    stall[struck, 3] += 200
    assert [one.subject.name for one in found_in(shared, lost({cause: stall}))] == named


@pytest.mark.parametrize(("other", "named"), [(-5, ["3"]), (-15, [])])
def test_a_pause_dwarfs_no_steps_that_differ_by_a_tenth_of_it_either_way(other: float, named: list[str]) -> None:
    # given four steps, of which rank 3 loses 110 in one, and is ahead of its usual pace in another
    stall = np.zeros((4, 8))
    stall[1, 3], stall[2, 3] = 110, other
    assert [one.subject.name for one in found_in(judged_run(4, 8), lost({"host_stall": stall}))] == named


@pytest.mark.parametrize(("longest", "named"), [(32.0, ["rotating"]), (180.0, [])])
def test_pauses_in_turns_on_shared_cores_are_about_as_long_each_time(longest: float, named: list[str]) -> None:
    # given ranks of one host without devices, of which one at a time pauses for 30, or for 30 to 180
    stall = noise(15, 0.2, ranks=4)
    stall[np.arange(20), np.arange(20) % 4] += np.linspace(30, longest, 20)[np.random.default_rng(15).permutation(20)]
    run = judged_run(20, 4, hosts=["a"] * 4, has_device=False)
    assert [one.effect.pattern for one in found_in(run, lost({"host_stall": stall}))] == named


@pytest.mark.parametrize(("most_of_others", "named"), [(2.0, ["3"]), (4.0, [])])
def test_a_rank_far_slower_than_any_other_counts_in_few_steps(most_of_others: float, named: list[str]) -> None:
    # given four steps, in which rank 3 always loses 12, rank 0 a sixth of that or a third, and the others little
    delays = np.full((4, 4), 0.8)
    delays[:, 0], delays[:, 3] = most_of_others, 12
    assert [one.subject.name for one in found_in(judged_run(4, 4), lost({"slow_compute": delays}))] == named


def test_what_stops_hosts_in_turns_and_what_loads_data_in_turns_want_other_steps() -> None:
    stalls = noise(9)
    stalls[np.arange(20), np.arange(20) % 8] += 60
    run = judged_run(20, 8)

    said = {cause: next_step(found_in(run, lost({cause: stalls}))[0], run) for cause in ("host_stall", "input_stall")}
    assert "other programs on the same cores" in said["host_stall"]
    assert "every rank's data loader" in said["input_stall"]


def test_what_is_late_for_several_reasons_gets_the_step_of_the_largest_on_its_host() -> None:
    several = _cause_of({"slow_compute": 3.0, "garbage_collection": 1.0, "input_stall": 1.0})

    assert (several.name, several.mode) == ("several_causes", "synchronization_amplification")
    assert several.next_step_on_one_host.startswith("See what else runs on the host's cores")
    assert _cause_of({"slow_compute": 1.0, "garbage_collection": 2.0, "input_stall": 1.5}).next_step_on_one_host == ""
