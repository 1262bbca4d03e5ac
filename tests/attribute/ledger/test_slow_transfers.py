"""Whose path is slow, and what is the fabric's."""

from dataclasses import replace

import numpy as np
import pytest

from tests.replay.models import lockstep_model
from traceforge.attribute.ledger.ledger_input import LedgerInput, MessagePath
from traceforge.attribute.ledger.slow_transfers import excess_of, peers_of, transfer_causes
from traceforge.replay.reference import references

PAIRS = [[0, 0, 1, 1, 2, 2, 3, 3]]
"""One place, at which four pairs of ranks meet."""


def causes_of(transfer_ns: np.ndarray, lacking: frozenset[int] = frozenset()) -> list[str]:
    """Cause of each pair's slow transfers; transfers by iteration and pair; pairs that lack a trace."""
    model = lockstep_model(np.full((len(transfer_ns), 1, 8), 100), groups=PAIRS)
    transfer = np.repeat(transfer_ns, 2, axis=1)[:, None, :]
    model.transfer_ns[:] = transfer
    communicator = np.broadcast_to(np.array(PAIRS), model.group.shape)
    return transfer_causes(LedgerInput(model, (10, 11, 12, 13), communicator, lacking), references(model))


def transfers(slow: dict[int, slice | list[int]]) -> np.ndarray:
    """Twelve iterations of transfers of 20, or 50 where a pair is slow."""
    result = np.full((12, 4), 20)
    for pair, iterations in slow.items():
        result[iterations, pair] = 50
    return result


@pytest.mark.parametrize(
    ("slow", "paths"),
    [
        ({}, []),
        ({2: slice(None)}, [2]),  # always slower than its three peers
        ({1: slice(None), 2: slice(None)}, [1, 2]),  # two of four
        ({2: slice(4, 9)}, []),  # for a while
        ({2: [0, 3, 7]}, []),  # now and then
        ({pair: slice(None) for pair in (0, 1, 2)}, []),  # most of them: the fabric's
    ],
)
def test_a_path_is_slow_if_it_is_slower_than_its_peers_all_the_time(
    slow: dict[int, slice | list[int]], paths: list[int]
) -> None:
    expected = ["slow_path" if pair in paths else "slow_transfer" for pair in range(4)]

    assert causes_of(transfers(slow)) == expected


def test_what_most_peers_have_as_well_is_no_path() -> None:
    # given pairs that take 20, 60, 30 and 30 in all iterations: three of four are slower than the fastest
    assert causes_of(np.tile([20, 60, 30, 30], (12, 1))) == [
        "slow_transfer",
        "slow_path",
        "slow_transfer",
        "slow_transfer",
    ]


def test_differences_that_are_small_are_no_path() -> None:
    # given a pair that takes 21 where the others take 20
    times = np.full((12, 4), 20)
    times[:, 3] = 21

    assert causes_of(times) == ["slow_transfer"] * 4


def test_a_communicator_without_peers_tells_nothing_of_its_path() -> None:
    model = lockstep_model(np.full((12, 1, 4), 100), transfer_ns=np.array([[20]] * 2 + [[60]] * 10))
    run = LedgerInput(model, (7,), np.zeros(model.group.shape, dtype=np.int64))

    assert transfer_causes(run, references(model)) == ["slow_transfer"]


@pytest.mark.parametrize("slow", [{2: slice(None)}, {2: slice(4, 9)}], ids=["all the time", "for a while"])
def test_a_pair_that_lacks_a_trace_may_wait_for_that_rank(slow: dict[int, slice | list[int]]) -> None:
    assert causes_of(transfers(slow), frozenset({2}))[2] == "unrecorded_rank"


def test_pairs_that_are_slow_together_wait_for_no_rank() -> None:
    # given all pairs slow for a while, of which one lacks a trace
    together = transfers({pair: slice(4, 9) for pair in range(4)})

    assert causes_of(together, frozenset({2})) == ["slow_transfer"] * 4
    # and if all lack one, nothing tells the network from late ranks
    assert causes_of(together, frozenset(range(4))) == ["unrecorded_rank"] * 4


def test_paths_of_messages_are_held_against_those_between_the_same_stages() -> None:
    # given two replicas of four stages, in which stage 0 sends to 1 while 2 sends to 3
    roles = np.array([0, 1, 0, 1, 2, 3, 2, 3])
    model = replace(lockstep_model(np.full((12, 1, 8), 100), groups=PAIRS), role=roles)
    paths = {number: MessagePath(0, 2 * place, 2 * place + 1) for place, number in enumerate((-4, -3, -2, -1))}
    run = LedgerInput(model, tuple(paths), np.broadcast_to(np.array(PAIRS), model.group.shape), paths=paths)

    assert [peers_of(run, path).tolist() for path in range(4)] == [[0, 1], [0, 1], [2, 3], [2, 3]]


def test_a_communicator_is_as_long_in_excess_as_its_members_on_average() -> None:
    # given the third pair at 50 where the others take 20, in both its members
    model = lockstep_model(np.full((12, 1, 8), 100), groups=PAIRS)
    model.transfer_ns[:] = np.repeat(transfers({2: slice(None)}), 2, axis=1)[:, None, :]
    run = LedgerInput(model, (10, 11, 12, 13), np.broadcast_to(np.array(PAIRS), model.group.shape))

    excess_ns, usual_ns = excess_of(run, references(model))

    assert excess_ns.tolist() == [[0, 0, 30, 0]] * 12
    assert usual_ns.tolist() == [[20] * 4] * 12
