"""Whose link is slow for a while, by transfers that leave hosts out.

host    a    b    c    d          pairs at place 0: a-b, c-d; at place 1: a-c, b-d; all four at place 2
rank    0    1    2    3          transfers take 100 each, longer in iterations 4 to 9 of 10
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from tests.attribute.findings.runs import judged_run
from tests.replay.models import lockstep_model
from traceforge.attribute.findings.lost_time import JudgedRun
from traceforge.attribute.findings.own_link import own_link
from traceforge.attribute.findings.slow_transfer_search import search_transfers
from traceforge.attribute.findings.text import next_step
from traceforge.attribute.ledger.ledger_input import LedgerInput

GROUPS = {10: [0, 1], 11: [2, 3], 20: [0, 2], 21: [1, 3], 30: [0, 1, 2, 3]}
PLACES = ([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0])
OWNERS = ([10, 10, 11, 11], [20, 21, 20, 21], [30, 30, 30, 30])
SLOW = range(4, 10)


def run_of(slower: Mapping[int, float], hosts: Sequence[str | None] = tuple("abcd")) -> JudgedRun:
    """A run whose transfers of some communicators take so many times as long, and 1 more, in the slow iterations."""
    numbers = tuple(GROUPS)
    owner = np.array([[numbers.index(one) for one in row] for row in OWNERS])
    factor = np.array([[1 + slower.get(one, 0.0) for one in row] for row in OWNERS])
    transfer = np.broadcast_to(np.full((3, 4), 100), (10, 3, 4)).copy()
    transfer[list(SLOW)] = np.rint(100 * factor)
    model = lockstep_model(np.full((10, 3, 4), 50), groups=PLACES)
    model = replace(model, transfer_ns=transfer, usual_transfers=np.arange(10) < SLOW[0])
    run = judged_run(10, 4, hosts=hosts, groups=GROUPS)
    return replace(run, ledger=LedgerInput(model, numbers, np.broadcast_to(owner, model.group.shape)))


@pytest.mark.parametrize(
    ("slower", "name", "said"),
    [
        ({10: 3, 20: 2, 30: 1}, "a", "the link of host a"),
        ({11: 3, 21: 3}, "d", "the link of host d"),
        # Both pairs across: nothing within either side.
        ({20: 3, 21: 3, 30: 3}, "a, b | c, d", "the network between hosts a and b, and hosts c and d"),
        ({10: 3, 11: 3}, "a, c | b, d", "the network between hosts a and c, and hosts b and d"),
    ],
)
def test_a_link_is_named_that_all_slow_transfers_pass_and_no_others(
    slower: Mapping[int, float], name: str, said: str
) -> None:
    found = own_link(run_of(slower), list(SLOW))

    assert found is not None
    assert (found.kind, found.name, found.said) == ("link", name, said)


@pytest.mark.parametrize(
    "slower",
    [
        {},
        {30: 3},  # only what passes all hosts
        {10: 3},  # one pair alone: either end
        {10: 3, 11: 3, 20: 3, 21: 3, 30: 3},  # all
        {10: 6, 20: 1.5, 21: 0.9},  # a third one is not slow, and not at pace either
        {10: 0.2, 20: 0.2, 30: 9},  # they lose a fiftieth of it
    ],
)
def test_where_not_all_of_one_place_are_slow_and_the_others_at_pace_none_is_named(slower: Mapping[int, float]) -> None:
    assert own_link(run_of(slower), list(SLOW)) is None


def test_where_a_rank_has_no_known_host_none_is_named() -> None:
    assert own_link(run_of({10: 3, 20: 3}, hosts=["a", "b", "c", None]), list(SLOW)) is None
    assert own_link(run_of({10: 3, 20: 3}), list(SLOW)) is not None


def run_in(groups: Mapping[int, list[int]], owners: Sequence[Sequence[int]], slower: Mapping[int, float]) -> JudgedRun:
    """As `run_of`, of other groups; each row of owners names the communicator of each rank at a place."""
    numbers = tuple(groups)
    owner = np.array([[numbers.index(one) for one in row] for row in owners])
    model = run_of({}).ledger.model
    transfer = np.full((10, *owner.shape), 100)
    transfer[list(SLOW)] = [[round(100 * (1 + slower.get(one, 0))) for one in row] for row in owners]
    group = np.broadcast_to(owner, transfer.shape).copy()
    model = replace(model, group=group, transfer_ns=transfer)
    run = replace(run_of({}), members=dict(groups))
    return replace(run, ledger=LedgerInput(model, numbers, np.broadcast_to(owner, transfer.shape)))


def test_one_slow_pair_between_two_sides_is_no_network_between_them() -> None:
    groups = {10: [0, 1], 11: [2, 3], 20: [0, 2], 30: [0, 1, 2, 3]}
    owners = [[10, 10, 11, 11], [20, 30, 20, 30], [30, 30, 30, 30]]

    assert own_link(run_in(groups, owners, {20: 3}), list(SLOW)) is None


def test_where_one_pair_of_hosts_alone_sends_across_it_is_their_link() -> None:
    # given a chain a - b - c - d, whose middle pair is slow there and back
    groups = {10: [0, 1], 11: [2, 3], 20: [1, 2], 21: [1, 2], 30: [0, 1, 2, 3]}
    owners = [[10, 10, 11, 11], [30, 20, 20, 30], [30, 21, 21, 30]]

    found = own_link(run_in(groups, owners, {20: 3, 21: 3}), list(SLOW))
    assert found is not None
    assert (found.kind, found.name, found.said) == ("link", "b, c", "the link between hosts b and c")


def test_what_is_slow_within_a_side_is_not_explained_by_what_lies_between_sides() -> None:
    # given a second pair of a and b that is slow as well
    groups = {10: [0, 1], 11: [2, 3], 12: [0, 1], 20: [0, 2], 30: [0, 1, 2, 3]}
    owners = [[10, 10, 11, 11], [20, 30, 20, 30], [12, 12, 30, 30]]

    assert own_link(run_in(groups, owners, {12: 3, 20: 3}), list(SLOW)) is None


def test_a_call_of_a_rank_with_itself_does_not_hide_the_link_of_its_host() -> None:
    # given c, which both slow pairs pass, and d, which meets the others only with all of them
    groups = {10: [0, 1], 14: [2], 20: [0, 2], 21: [1, 2], 30: [0, 1, 2, 3]}
    owners = [[10, 10, 14, 30], [20, 30, 20, 30], [30, 21, 21, 30]]

    found = own_link(run_in(groups, owners, {20: 3, 21: 3}), list(SLOW))
    assert found is not None
    assert found.name == "c"


def test_what_is_slow_within_a_host_is_no_link_of_it() -> None:
    # given two ranks a host, whose pairs are slow on host a and at pace on host b
    groups = {10: [0, 1], 11: [0, 1], 12: [2, 3], 30: [0, 1, 2, 3]}
    run = run_in(groups, [[10, 10, 12, 12], [11, 11, 12, 12], [30, 30, 30, 30]], {10: 3, 11: 3})

    assert own_link(replace(run, hosts=["a", "a", "b", "b"]), list(SLOW)) is None


def test_what_is_at_pace_within_the_host_does_not_hide_its_link() -> None:
    # given tensor parallel pairs within host a, and slow pairs of it with b and with c
    groups = {10: [0, 1], 20: [0, 2], 21: [1, 3], 30: [0, 1, 2, 3]}
    run = run_in(groups, [[10, 10, 30, 30], [20, 21, 20, 21], [30, 30, 30, 30]], {20: 3, 21: 3})

    found = own_link(replace(run, hosts=["a", "a", "b", "c"]), list(SLOW))
    assert found is not None
    assert found.said == "the link of host a"


def test_a_finding_of_slow_transfers_names_the_link_and_what_to_look_at_there() -> None:
    run = replace(run_of({10: 3, 20: 3}), has_device=True)
    rows = [(n, owner, "slow_transfer", 30 if n in SLOW else 0) for n in range(10) for owner in (10, 20)]
    delays = pl.DataFrame(rows, schema=["iteration", "owner", "cause", "delay_ns"], orient="row")

    (found,) = search_transfers(run, delays)

    assert (found.subject.kind, found.subject.name, found.confidence) == ("link", "a", "high")
    assert next_step(found, run).startswith("Look at the link of host a: speed and errors of NICs")


@pytest.mark.parametrize(
    ("hosts", "has_device", "members", "said"),
    [
        ("aaaa", True, {}, "All ranks are devices of one host"),
        ("aaaa", False, {}, "All ranks share the cores and the memory of one host"),
        # a fifth rank, of which there is no trace, may be anywhere
        ("aaaa", True, {40: [0, 1, 2, 3, 4]}, "Look at what else used the links"),
        (("a", "a", "a", None), True, {}, "Look at what else used the links"),
    ],
)
def test_where_all_ranks_are_of_one_host_no_network_is_to_be_looked_at(
    hosts: Sequence[str | None], has_device: bool, members: dict[int, list[int]], said: str
) -> None:
    run = run_of({10: 3, 20: 3}, hosts)
    run = replace(run, has_device=has_device, members=run.members | members)
    rows = [(n, 30, "slow_transfer", 60 if n in SLOW else 0) for n in range(10)]
    delays = pl.DataFrame(rows, schema=["iteration", "owner", "cause", "delay_ns"], orient="row")

    (found,) = search_transfers(run, delays)
    assert next_step(found, run).startswith(said)
