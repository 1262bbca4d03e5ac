"""Who is guilty in more jobs than chance allows: exact probabilities, worked by hand where they are small."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from traceforge.history.suspects import Participation, Suspect, chance_of_at_least, suspects

HOSTS = tuple("abcdefgh")


def job(
    name: str, guilty: Sequence[str] = (), hosts: Sequence[str] = HOSTS, first_rank: int = 0
) -> list[Participation]:
    return [Participation(name, "host", host, (first_rank + at,), host in guilty) for at, host in enumerate(hosts)]


def named(found: Sequence[Suspect]) -> list[str]:
    return [one.name for one in found if one.is_named]


def test_the_chance_of_independent_events_is_exact() -> None:
    assert chance_of_at_least(0, [0.5, 0.5]) == 1
    assert chance_of_at_least(1, [0.5, 0.25]) == 1 - 0.5 * 0.75
    assert chance_of_at_least(2, [0.5, 0.25]) == 0.125
    assert chance_of_at_least(3, [0.1] * 5) == pytest.approx(10 * 0.1**3 * 0.9**2 + 5 * 0.1**4 * 0.9 + 0.1**5)
    assert chance_of_at_least(4, [0.125] * 4) == 0.125**4


def test_a_host_guilty_in_four_of_thirty_jobs_is_named() -> None:
    # given 30 jobs of the same 8 hosts, four of which accuse host c and nobody else
    found = suspects(one for number in range(30) for one in job(f"j{number}", "c" if number % 8 == 3 else ""))

    # then chance would do that with (1/8)^4, times eight hosts looked at
    assert found[0].name == "c"
    assert found[0].jobs == 30
    assert found[0].guilty_jobs == ("j3", "j11", "j19", "j27")
    assert found[0].expected == 0.5
    assert found[0].p_value == pytest.approx(8**-4)
    assert found[0].corrected_p_value == pytest.approx(8 * 8**-4)
    assert named(found) == ["c"]


def test_of_two_hosts_four_jobs_cannot_tell_the_guilty_one() -> None:
    found = suspects(one for number in range(30) for one in job(f"j{number}", "a" if number < 4 else "", "ab"))

    assert found[0].p_value == 2**-4
    assert named(found) == []


def test_jobs_that_accuse_everybody_or_nobody_say_nothing_about_who_it_is() -> None:
    found = suspects([*job("all", HOSTS), *job("none"), *job("alone", "a", "a")])

    assert {one.p_value for one in found} == {1.0}


def test_two_traces_of_one_job_count_once() -> None:
    found = suspects([*job("j0", "c"), *job("j0", "c"), *job("j0")])

    assert [(one.name, one.jobs, one.guilty_jobs) for one in found if one.guilty_jobs] == [("c", 1, ("j0",))]


def test_a_host_that_always_holds_the_same_ranks_is_not_told_from_them() -> None:
    same = suspects([*job("j0", "c"), *job("j1", "c")])
    moved = suspects([*job("j0", "c"), *job("j1", "c", first_rank=8)])

    assert same[0].always_ranks == (2,)
    assert moved[0].always_ranks == ()


def test_where_hosts_are_accused_by_chance_one_fleet_in_a_hundred_names_one() -> None:
    rng = np.random.default_rng(7)

    def names_somebody() -> bool:
        jobs = [job(f"j{n}", [HOSTS[rng.integers(8)]] if rng.random() < 0.4 else []) for n in range(30)]
        return bool(named(suspects(one for own in jobs for one in own)))

    assert sum(names_somebody() for _ in range(150)) <= 1 + 2 * math.sqrt(1.5)
