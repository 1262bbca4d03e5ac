"""Culprits that are more than one rank: a slow node, and a stall that all ranks share."""

import polars as pl

from tests.given import US, data_parallel_job, rows_of
from tests.stories import Run, told

FINDINGS = """
SELECT subject_kind, subject, cause, pattern, confidence
FROM attribute.finding WHERE confidence <> 'low' ORDER BY finding_id
"""


def job_on_hosts(compute_us: list[list[int]], hosts: list[str]) -> Run:
    traces = data_parallel_job([[us * US for us in row] for row in compute_us], transfer_ns=10 * US)
    for trace, host in zip(traces, hosts, strict=True):
        trace.host = host
    return told(*traces)


def test_a_slow_node_is_named_where_none_of_its_ranks_stands_out_alone() -> None:
    # given four nodes of four ranks; those of node 2 all compute 140 instead of 100
    #   node0 … node1 … node3 …   |100  |wait|t|
    #   node2                     |140       |t|
    row = [140 if rank // 4 == 2 else 100 for rank in range(16)]
    store = job_on_hosts([row] * 12, [f"node{rank // 4}" for rank in range(16)])

    assert rows_of(store, FINDINGS) == [("host", "node2", "slow_compute", "persistent", "high")]


def test_ranks_of_one_node_that_are_slow_in_turns_are_that_node() -> None:
    # given four nodes of two ranks; those of node 1 compute 140 instead of 100, now one and now the other
    rows = [[140 if rank == 2 + i % 2 else 100 for rank in range(8)] for i in range(12)]
    store = job_on_hosts(rows, [f"node{rank // 2}" for rank in range(8)])

    # then it is always one of that node's: no rank is at fault alone
    assert rows_of(store, FINDINGS) == [("host", "node1", "slow_compute", "persistent", "high")]


def test_a_lone_slow_rank_is_named_itself_not_its_node() -> None:
    row = [140 if rank == 9 else 100 for rank in range(16)]
    store = job_on_hosts([row] * 12, [f"node{rank // 4}" for rank in range(16)])

    assert rows_of(store, FINDINGS) == [("rank", "9", "slow_compute", "persistent", "high")]


def test_of_two_ranks_the_slower_owns_all_of_the_difference() -> None:
    # given two ranks that compute 100 and 140
    store = job_on_hosts([[100, 140]] * 12, ["node0", "node1"])

    owned = store.query("SELECT rank, SUM(delay_ns) FROM attribute.delay GROUP BY rank")
    assert owned.filter(pl.col("rank") == 1).row(0)[1] == 12 * 40 * US


def test_a_rank_that_is_always_slow_and_one_that_is_so_now_and_then_are_two_faults() -> None:
    # given eight ranks that compute 100, rank 3 always 120, rank 5 in each third iteration 154: 18 more on average
    rows = [[120 if rank == 3 else 154 if rank == 5 and i % 3 == 1 else 100 for rank in range(8)] for i in range(30)]
    store = job_on_hosts(rows, [f"node{rank // 4}" for rank in range(8)])

    assert rows_of(store, FINDINGS) == [
        ("rank", "5", "slow_compute", "transient", "high"),
        ("rank", "3", "slow_compute", "persistent", "medium"),
    ]
    # then each costs the mean of what it would cost alone, and of what it costs beside the other
    costs = rows_of(store, "SELECT delay_ns_per_iteration FROM attribute.finding ORDER BY subject")
    assert costs == [(round((20 + 20 * 2 / 3) / 2 * US),), (round((18 + 34 / 3) / 2 * US),)]


def test_ranks_that_are_slow_alike_in_the_usual_iteration_are_named_together() -> None:
    # given ranks 3 and 5 that compute 120 and 122 in turns
    rows = [[120 + 2 * ((i + rank) % 4 == 1) if rank in (3, 5) else 100 for rank in range(8)] for i in range(30)]
    store = job_on_hosts(rows, [f"node{rank // 4}" for rank in range(8)])

    assert rows_of(store, FINDINGS) == [("ranks", "3, 5", "slow_compute", "persistent", "high")]


def test_ranks_that_are_struck_together_now_and_then_are_named_together_whatever_little_they_differ_by_else() -> None:
    # given ranks 3 and 5 that compute 140 in each third iteration; in all others rank 5 takes 101
    rows = [[140 if rank in (3, 5) and i % 3 == 1 else 100 + (rank == 5) for rank in range(8)] for i in range(30)]
    store = job_on_hosts(rows, [f"node{rank // 4}" for rank in range(8)])

    assert ("ranks", "3, 5", "slow_compute", "transient", "high") in rows_of(store, FINDINGS)
