"""Which host or NIC explains communicators that are slower than their peers.

node0        node1        node2        node3
|A|B|        |C|D|        |E|F|        |G|H|      pairs inside hosts, one place of the program
ranks 0 … 3  4 … 7        8 … 11       12 … 15
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.attribute.findings.runs import judged_run
from tests.replay.models import lockstep_model
from traceforge.attribute.findings.lost_time import JudgedRun
from traceforge.attribute.findings.shared_path import shared_path
from traceforge.attribute.ledger.ledger_input import LedgerInput, MessagePath

HOSTS = [f"node{rank // 4}" for rank in range(16)]
PAIRS = [rank // 2 for rank in range(16)]
RAILS = [rank % 4 for rank in range(16)]
"""Groups across all hosts: ranks 0, 4, 8, 12 and so on."""


def run_in_groups(
    group_of: Sequence[int], nics: Mapping[tuple[str, str], Mapping[int, Sequence[int]]] | None = None
) -> JudgedRun:
    """A run whose ranks meet in these groups at its one place; group n is communicator 100 + n."""
    model = lockstep_model(np.full((3, 1, 16), 90), groups=[list(group_of)])
    numbers = tuple(100 + n for n in range(max(group_of) + 1))
    communicator = np.broadcast_to(np.array(group_of), model.group.shape)
    members = {100 + n: [rank for rank in range(16) if group_of[rank] == n] for n in range(len(numbers))}
    run = judged_run(3, 16, hosts=HOSTS, groups=members)
    return replace(run, ledger=LedgerInput(model, numbers, communicator), nics=nics or {})


@pytest.mark.parametrize(
    ("slow", "named"),
    [
        ([2, 3], ("host", "node1")),  # both pairs of node1
        ([2], None),  # one of two: the pair's own path
        ([2, 4], None),  # pairs of two hosts: nothing that they share
        ([2, 3, 4], None),  # node1 explains two of three
    ],
)
def test_a_host_explains_slow_pairs_if_they_are_all_of_its_pairs(
    slow: list[int], named: tuple[str, str] | None
) -> None:
    found = shared_path(run_in_groups(PAIRS), slow)

    assert (found and (found.kind, found.name)) == named


def test_a_rank_explains_slow_paths_of_messages_if_they_are_all_of_its_paths() -> None:
    # given a chain of messages through hosts of four ranks each: 0 to 1, 1 to 2, and so on to 15
    paths = {n - 15: MessagePath(100, n, n + 1) for n in range(15)}
    run = run_in_groups([0] * 16)
    owner = np.broadcast_to(np.minimum(np.arange(16), 14), run.ledger.model.group.shape)
    run = replace(run, ledger=LedgerInput(run.ledger.model, tuple(paths), owner, paths=paths))

    found = [shared_path(run, slow) for slow in ([4, 5], [4, 6], [4])]

    # then 4 to 5 and 5 to 6 are all that end at rank 5; 4 to 5 and 6 to 7 share no rank; one alone is a link
    assert [(one.kind, one.name) if one else None for one in found] == [("rank", "5"), None, None]


def test_groups_that_pass_all_hosts_point_at_none_of_them() -> None:
    # given rails 0 and 1 slow, 2 and 3 at pace: each host has both
    assert shared_path(run_in_groups(RAILS), [0, 1]) is None


def test_groups_that_are_all_between_two_hosts_point_at_the_link_between_them() -> None:
    # given an expert-parallel job in pairs of hosts: 0 with 4, 1 with 5 … and 8 with 12, 9 with 13 …
    #   node0 ═══ node1        node2 ═══ node3
    groups = [rank % 4 + 4 * (rank // 8) for rank in range(16)]
    run = run_in_groups(groups)

    found = [shared_path(run, slow) for slow in ([4, 5, 6, 7], [4, 5], [3, 4])]

    # then either end of node2 and node3 explains all four; half of them, or one of each pair, shares no place
    assert [(one.kind, one.name, one.places) if one else None for one in found] == [
        ("link", "node2, node3", tuple(range(8, 16))),
        None,
        None,
    ]


def test_groups_that_are_all_between_the_same_three_hosts_point_at_the_network_between_them() -> None:
    # given groups of three across node0, node1 and node2, and pairs inside node3
    #   node0 ═══ node1 ═══ node2        node3
    run = run_in_groups([0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 4, 4, 5, 5])

    found = shared_path(run, [0, 1, 2, 3])

    assert found is not None
    assert (found.kind, found.name, found.said) == (
        "link",
        "node0, node1, node2",
        "the network between hosts node0, node1 and node2",
    )


def test_a_nic_that_only_the_slow_groups_pass_explains_them() -> None:
    # given logs: ranks 8 and 9 share a NIC of node2, and no other two ranks share one
    nics = {("node2", "mlx5_0"): {100: [8], 101: [9]}, ("node1", "mlx5_0"): {100: [4]}, ("node1", "mlx5_1"): {101: [5]}}
    found = shared_path(run_in_groups(RAILS, nics), [0, 1])

    assert found is not None
    assert (found.kind, found.name, found.places) == ("nic", "node2 mlx5_0", (8, 9))


def test_of_two_nics_that_explain_as_much_neither_is_named() -> None:
    shared = {100: [0], 101: [1]}
    nics = {("node0", "mlx5_0"): shared, ("node2", "mlx5_0"): {100: [8], 101: [9]}}

    assert shared_path(run_in_groups(RAILS, nics), [0, 1]) is None


def test_a_nic_that_a_group_at_pace_passes_as_well_is_not_to_blame() -> None:
    nics = {("node2", "mlx5_0"): {100: [8], 101: [9], 102: [10]}}

    assert shared_path(run_in_groups(RAILS, nics), [0, 1]) is None
