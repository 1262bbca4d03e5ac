"""When a finding names a culprit: host, ranks, everyone, and parts of them."""

from typing import Any

import pytest

from tests.accuracy.judging import is_possible
from tests.accuracy.naming import Named, culprits, during, is_lost

# Two hosts of two ranks.
HOSTS = ["node0", "node0", "node1", "node1"]
PAIR = {"subject_kind": "ranks", "subject": "0, 3", "ranks": [0, 3]}
HOST = {"subject_kind": "host", "subject": "node1", "ranks": [2, 3]}
STAGE = {"subject_kind": "stage", "subject": "1", "ranks": [2, 3]}
LINK = {"subject_kind": "link", "subject": "1, 3", "ranks": [1, 3]}
BETWEEN_HOSTS = {"subject_kind": "link", "subject": "node0, node1", "ranks": [0, 1, 2, 3]}
OF_HOST = {"subject_kind": "link", "subject": "2", "ranks": [2]}
UPLINK = {"subject_kind": "link", "subject": "all", "ranks": [0, 1, 2, 3], "links": [[1, 2]]}
RANK = {"subject_kind": "rank", "subject": "2", "ranks": [2]}
EVERYONE = {"subject_kind": "job", "subject": "all", "ranks": [0, 1, 2, 3]}


def culprit(trouble: dict[str, Any], lost: tuple[int, ...] = (), slowed: tuple[list[int], ...] = ()) -> Named:
    """The culprit of a trouble that removing it would save 4 ns of each iteration's 40, and that alone costs 8."""
    told = {"faults": [0], "modes": ["a mode"], "removed_ns": [4, 4], "added_ns": [8, 8], **trouble}
    truth = {"troubles": [told], "hosts": HOSTS, "duration_ns": [40, 40], "faults": [{"communicators": list(slowed)}]}
    groups = {"0": [0, 1, 2, 3], "1": [0, 2], "2": [1, 3]}
    (one,) = culprits(truth, groups, frozenset(lost))
    return one


def finding(kind: str, subject: str, mode: str = "a mode") -> dict[str, Any]:
    return {"mode": mode, "subject_kind": kind, "subject": subject}


@pytest.mark.parametrize(
    ("trouble", "kind", "subject", "is_named"),
    [
        (RANK, "rank", "2", True),
        (RANK, "rank", "3", False),
        (RANK, "host", "node1", False),
        (RANK, "job", "all", False),
        (PAIR, "ranks", "0, 3", True),
        (PAIR, "ranks", "3,0", True),
        (PAIR, "rank", "0", False),
        (HOST, "host", "node1", True),
        (HOST, "ranks", "2, 3", True),
        (HOST, "host", "node0", False),
        (HOST, "rank", "2", False),
        (EVERYONE, "job", "all", True),
        (EVERYONE, "ranks", "0, 1, 2, 3", True),
        (EVERYONE, "rank", "1", False),
    ],
)
def test_a_finding_names_a_culprit_by_its_name_or_by_exactly_its_ranks(
    trouble: dict[str, Any], kind: str, subject: str, is_named: bool
) -> None:
    assert culprit(trouble).is_named_by(finding(kind, subject)) == is_named


@pytest.mark.parametrize(
    ("trouble", "told", "is_named"),
    [
        (STAGE, {"subject_kind": "stage", "subject": "1", "ranks": [2, 3]}, True),
        (STAGE, {"subject_kind": "stage", "subject": "0", "ranks": [0, 1]}, False),
        # the stage is all of a host
        (STAGE, {"subject_kind": "host", "subject": "node1", "ranks": [2, 3]}, True),
        (HOST, {"subject_kind": "stage", "subject": "1", "ranks": [2, 3]}, True),
        (LINK, {"subject_kind": "link", "subject": "1 and 3", "ranks": [3, 1]}, True),
        (LINK, {"subject_kind": "link", "subject": "0 and 2", "ranks": [0, 2]}, False),
        # ranks 1 and 3 are a communicator, and nobody else is
        (LINK, {"subject_kind": "communicator", "subject": "2"}, True),
        (LINK, {"subject_kind": "communicator", "subject": "0"}, False),
        (LINK, {"subject_kind": "job", "subject": "all"}, False),
        # a host's link may be told as the network, not as a rank; an uplink as that of what passes it
        (OF_HOST, {"subject_kind": "link", "subject": "node2", "ranks": [2]}, True),
        (OF_HOST, {"subject_kind": "job", "subject": "all"}, True),
        (OF_HOST, {"subject_kind": "link", "subject": "node3", "ranks": [3]}, False),
        (OF_HOST, {"subject_kind": "rank", "subject": "2"}, False),
        (UPLINK, {"subject_kind": "link", "subject": "1, 2", "ranks": [1, 2]}, True),
        (UPLINK, {"subject_kind": "link", "subject": "2, 3", "ranks": [2, 3]}, False),
        (BETWEEN_HOSTS, {"subject_kind": "job", "subject": "all"}, True),
        (BETWEEN_HOSTS, {"subject_kind": "link", "subject": "node0, node1"}, True),
    ],
)
def test_a_stage_may_be_told_as_its_host_and_a_link_as_its_communicator(
    trouble: dict[str, Any], told: dict[str, Any], is_named: bool
) -> None:
    assert culprit(trouble).is_named_by({"mode": "a mode", **told}) == is_named


def test_the_mode_must_be_one_of_the_culprit_s() -> None:
    mixed = culprit({**RANK, "modes": ["a mode", "another mode"]})

    assert mixed.is_named_by(finding("rank", "2", "another mode"))
    assert not mixed.is_named_by(finding("rank", "2", "a third mode"))


def test_a_list_of_ranks_beside_the_subject_is_believed() -> None:
    assert culprit(HOST).is_named_by({**finding("ranks", "2 and another one"), "ranks": [2, 3]})


def test_two_ranks_may_be_named_one_by_one_and_a_host_may_not() -> None:
    one_by_one = [finding("rank", "3"), finding("rank", "2"), finding("rank", "0")]

    # given rank 2 named in vain between them, the two are told by the first and the third
    assert culprit(PAIR).told(one_by_one) == [one_by_one[0], one_by_one[2]]
    assert culprit(PAIR).place(one_by_one) == 0
    assert culprit(PAIR).place(one_by_one[:2]) is None
    assert culprit(HOST).place(one_by_one) is None


def test_some_of_the_ranks_are_a_part_and_others_are_not() -> None:
    assert culprit(HOST).is_told_in_part_by(finding("rank", "3"))
    assert not culprit(HOST).is_told_in_part_by(finding("ranks", "1, 3"))
    assert not culprit(HOST).is_told_in_part_by(finding("ranks", "2, 3"))
    # given everyone at fault: to single one out is no part of the truth
    assert not culprit(EVERYONE).is_told_in_part_by(finding("rank", "3"))


def test_of_ranks_without_traces_nobody_asks() -> None:
    assert is_lost(culprit(RANK, lost=(2,)))
    assert not is_lost(culprit(HOST, lost=(2,)))
    # the host is then named by the rank that is left, too
    assert culprit(HOST, lost=(2,)).is_named_by(finding("rank", "3"))


def test_a_slow_group_is_named_by_its_number_and_lost_where_each_group_lacks_a_rank() -> None:
    path = {"subject_kind": "communicator", "subject": "1, 3", "ranks": [1, 3]}

    assert culprit(path, slowed=([1, 3],)).is_named_by(finding("communicator", "2"))
    assert not culprit(path, slowed=([1, 3],)).is_named_by(finding("communicator", "1"))
    lost = culprit(path, lost=(3,), slowed=([1, 3],))
    assert lost.is_named_by(finding("job", "all", "unexplained"))


def test_what_is_true_of_some_iterations() -> None:
    truth = {
        "iterations": [5, 6, 7],
        "duration_ns": [10, 20, 30],
        "troubles": [{"removed_ns": [1, 2, 3], "added_ns": [4, 5, 6]}],
    }

    assert during(truth, {7, 6, 9}) == {
        "iterations": [5, 6, 7], "duration_ns": [20, 30], "troubles": [{"removed_ns": [2, 3], "added_ns": [5, 6]}]
    }  # fmt: skip
    assert during(truth, set()) == truth


def test_what_a_culprit_costs_is_the_mean_of_both_ways_of_counting() -> None:
    one = culprit(RANK)

    assert (one.removed_ns, one.added_ns, one.delay_ns, one.share) == (4, 8, 6, 0.15)


def test_a_finding_that_costs_more_than_the_run_or_lies_outside_its_interval_is_impossible() -> None:
    usual = {"share": 0.1, "delay_ns_per_iteration": 5, "delay_low_ns": 4, "delay_high_ns": 7}
    assert is_possible(usual)
    assert is_possible({**usual, "delay_low_ns": None, "delay_high_ns": None})
    assert not is_possible({**usual, "share": 1.5})
    assert not is_possible({**usual, "share": 0.0})
    assert not is_possible({**usual, "delay_low_ns": 6})
    assert not is_possible({**usual, "delay_high_ns": 4})
