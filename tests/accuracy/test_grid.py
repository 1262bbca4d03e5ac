"""The grid: families with cases, fresh seeds apart from those of development, and enough healthy runs."""

import pickle
from collections import Counter
from math import inf
from pathlib import Path

import pytest

from tests.accuracy.__main__ import judged, kept_marks, main
from tests.accuracy.case import Case
from tests.accuracy.grid import DEVELOPMENT, FAMILIES, FRESH, grid
from tests.accuracy.judging import Mark, _sight_ns, judge_case
from tests.accuracy.naming import Named
from tests.accuracy.outcomes import family_lines, is_below_sight, is_right, wrong_lines
from tests.given import MS
from traceforge.synth.fault import Injection
from traceforge.synth.scenario import Scenario
from traceforge.synth.trouble import troubles_of


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_has_cases_of_its_own_that_no_other_seed_repeats(family: str) -> None:
    fresh, development = (grid(first, [family]) for first in (FRESH, DEVELOPMENT))

    assert {case.group for case in fresh} == {family}
    assert len(fresh) == len(development) >= 8
    seeds = [{case.scenario.seed for case in cases} for cases in (fresh, development)]
    assert not seeds[0] & seeds[1]


def test_names_are_unique_and_two_hundred_runs_are_healthy() -> None:
    cases = grid()

    assert max(Counter(case.scenario.name for case in cases).values()) == 1
    assert sum(not case.scenario.faults and case.edit is None for case in cases) >= 200


@pytest.mark.parametrize(
    ("family", "kinds"),
    [
        ("host", {"host"}),
        ("host with clocks", {"host"}),
        ("everyone once", {"job"}),
        ("everyone in some iterations", {"job"}),
        ("mixed causes of a rank", {"rank"}),
        ("two ranks in parallel", {"ranks"}),
        ("rotating", {"job"}),
        ("coupled", {"rank"}),
        ("missing files", {"rank", "host"}),
    ],
)
def test_a_family_asks_for_one_trouble_of_its_kind(family: str, kinds: set[str]) -> None:
    asked = [troubles_of(case.scenario.cluster, case.scenario.faults) for case in grid(DEVELOPMENT, [family])]

    assert {trouble.subject_kind for (trouble,) in asked} == kinds


@pytest.fixture(scope="module")
def truncated() -> Mark:
    # given a rank that computes longer, and the file of another one that ends before half of the run
    case = next(c for c in grid(DEVELOPMENT, ["truncated file"]) if "compute-another's-0.45" in c.scenario.name)
    return judge_case(case)


def test_a_cut_file_is_judged_like_any_other(truncated: Mark) -> None:
    (asked,) = truncated.asked

    assert (asked.kind, asked.subject) == ("rank", "5")
    assert "| truncated file |" in "\n".join(family_lines([truncated]))
    told = "\n".join(wrong_lines([truncated]))
    assert ("None." in told) == (is_right(truncated) and not truncated.false_findings)


def test_a_run_that_was_stopped_goes_on_from_its_marks(truncated: Mark, tmp_path: Path) -> None:
    path = tmp_path / "marks"
    assert kept_marks(path, [truncated.case]) == []

    # given the mark of one case, which a run kept before it was stopped
    path.write_bytes(pickle.dumps(truncated))

    # then that case is not judged again, and it stays out of a run of other cases
    (kept,) = kept_marks(path, [truncated.case])
    assert (kept.case, kept.errors) == (truncated.case, truncated.errors)
    assert kept_marks(path, grid(FRESH, ["once"])) == []


def test_what_the_run_could_see_is_told_or_is_not_measured(truncated: Mark) -> None:
    (sight_ns,) = truncated.sight_ns

    assert is_below_sight(truncated) == (None if sight_ns is None else truncated.asked[0].delay_ns < sight_ns)


def test_a_run_that_would_have_found_no_delay_of_a_kind_says_so() -> None:
    # given a run of two iterations, which sees a rank that stalls for 3 ms, and a pause of everyone at no size
    sight = [
        {"subject_kind": "rank", "cause": "host_stall", "smallest_delay_ns_per_iteration": 3 * MS},
        {"subject_kind": "job", "cause": "host_stall", "smallest_delay_ns_per_iteration": None},
    ]
    modes = frozenset({"runtime_control_plane"})
    rank, job, stage = (
        Named(modes, kind, "", frozenset(), frozenset({0}), 9.0 * MS, 9.0 * MS, 9.0 * MS, 0.1)
        for kind in ("rank", "job", "stage")
    )

    # then whatever everyone loses lies below its sight; of stages it says nothing
    assert [_sight_ns(one, sight) for one in (rank, job, stage)] == [3.0 * MS, inf, None]


def test_a_rank_whose_peers_are_slowed_while_they_wait_for_it_costs_what_it_costs() -> None:
    # given a rank of four that computes longer, and kernels that take 1.6 times as long while others wait for it
    case = next(c for c in grid(DEVELOPMENT, ["slowed"]) if c.scenario.name.startswith("compute_straggler-eta0.6-4"))
    mark = judge_case(case)

    assert (mark.found, mark.covered) == ([0], [True])


def test_an_unknown_family_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--family", "gremlins"])
    assert "gremlins" in capsys.readouterr().err


def test_a_case_that_cannot_be_judged_is_told_and_ends_nothing() -> None:
    impossible = Case("once", Scenario("impossible", faults=(Injection("gremlins"),)))

    (told,) = judged([impossible], jobs=1)
    assert isinstance(told, str)
    assert told.startswith("impossible could not be judged: UsageError: there is no fault `gremlins`")
