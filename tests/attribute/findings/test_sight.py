"""What would have been seen: a delay of the stated size is found when it is put into a run, a smaller one is not."""

import numpy as np
import pytest

from tests.attribute.findings.runs import found_in, judged_run, lost
from traceforge.attribute.findings.sight import Sight, sights

HOSTS = ["a"] * 4 + ["b"] * 4


def seen(cost: np.ndarray, transfers: np.ndarray | None = None, *, cause: str = "slow_compute") -> dict[str, Sight]:
    run = judged_run(*cost.shape, hosts=HOSTS if cost.shape[1] == 8 else None)
    transfers = np.zeros(len(cost)) if transfers is None else transfers
    rows = sights(run, lost({cause: cost}), transfers)
    return {f"{row.subject_kind} {row.cause} {row.pattern}": row for row in rows}


def test_a_quiet_run_shows_whatever_is_large_enough_to_count() -> None:
    found = seen(np.zeros((20, 8)))

    assert found["rank slow_compute persistent"].smallest_ns == pytest.approx(2.5, abs=0.1)
    assert found["host input_stall persistent"].smallest_ns == pytest.approx(2.5, abs=0.1)


def test_noise_hides_what_is_smaller_than_itself() -> None:
    # given ranks that lose 3 each in turns: less than that of one rank does not stand out
    cost = np.zeros((20, 8))
    cost[np.arange(20), np.arange(20) % 8] = 24

    noisy = seen(cost)["rank slow_compute persistent"].smallest_ns
    assert noisy is not None
    assert noisy > 5


@pytest.mark.parametrize("factor", [1.02, 0.5])
def test_what_is_stated_is_what_the_search_finds(factor: float) -> None:
    # given a run with noise, and a delay just above the stated size, or half of it
    cost = np.random.default_rng(0).exponential(0.6, (20, 8))
    stated = seen(cost)["rank slow_compute persistent"].smallest_ns
    assert stated is not None
    found = 0
    for rank in range(8):
        with_delay = cost.copy()
        with_delay[:, rank] += factor * stated
        found += any(
            str(rank) in one.subject.name.split(", ")
            for one in found_in(judged_run(20, 8, hosts=HOSTS), lost({"slow_compute": with_delay}))
        )

    assert found >= 7 if factor > 1 else found <= 1


def test_few_iterations_see_only_the_large() -> None:
    three = seen(np.full((3, 8), 0.1))["rank slow_compute persistent"].smallest_ns

    # A tenth of each, on one rank alone, counts from three iterations on.
    assert three is not None
    assert 10 <= three < 11


def test_slow_transfers_of_all_from_first_to_last_are_not_seen() -> None:
    found = seen(np.zeros((20, 8)))

    assert found["job slow_transfer persistent"].smallest_ns is None
    assert found["job slow_transfer episode"].smallest_ns == pytest.approx(2.5, abs=0.1)


def test_two_ranks_a_host_and_everyone_have_a_sight_of_their_own() -> None:
    found = seen(np.random.default_rng(1).exponential(0.6, (20, 8)))

    sizes = [found[name].smallest_ns for name in ("ranks slow_compute persistent", "host slow_compute persistent")]
    assert all(size is not None and 2.5 < size < 8 for size in sizes)
    # then a pause of all ranks is seen where it lasts for a quarter of the run
    assert found["job slow_compute episode"].smallest_ns == pytest.approx(2.5, abs=0.6)


def test_four_ranks_have_no_pairs_and_three_iterations_after_the_first_no_place_for_a_pause() -> None:
    found = seen(np.zeros((3, 4)))

    assert not any(name.startswith("ranks") for name in found)
    assert found["job slow_compute episode"].smallest_ns is None


def test_one_rank_alone_is_held_against_nobody() -> None:
    assert not any(name.startswith(("rank", "host")) for name in seen(np.zeros((20, 1))))


def test_a_size_counts_as_seen_only_if_it_is_found_on_nearly_every_rank() -> None:
    # given rank 0 that is 20 faster than the others: less than that on it goes unseen
    cost = np.zeros((20, 8))
    cost[:, 0] = -20

    smallest = seen(cost)["rank slow_compute persistent"].smallest_ns
    assert smallest is not None
    assert smallest > 20
