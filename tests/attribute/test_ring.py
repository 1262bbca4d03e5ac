"""Ranks that pass data round in a ring, as attention over a shared context does: who is slow, and which link."""

import pytest

from tests.given import MS, Trace, rows_of
from tests.stories import Run, told

RANKS, ROUNDS, ITERATIONS = 4, 3, 12
TRANSFER = 2 * MS


def ring_job(slow_rank: int | None = None, slow_link: tuple[int, int] | None = None) -> Run:
    """Each rank computes, then sends to the next and receives from the one before in one call, and waits for both.

        rank 0   |compute···|to 1, from 3|compute···|to 1, from 3| …
        rank 1   |compute···|to 2, from 0|compute···|to 2, from 0| …

    A message begins when both its ranks are there; a call ends with its later message.
    """
    traces = [Trace(rank) for rank in range(RANKS)]
    free = [0] * RANKS
    for n in range(ITERATIONS):
        start = list(free)
        for hop in range(ROUNDS):
            ready = [
                at + (8 if rank == slow_rank else 5) * MS + (n * 7919 + hop * 613 + rank * 104_729) % 20_000
                for rank, at in enumerate(free)
            ]
            over = [_over_ns(ready, rank, slow_link) for rank in range(RANKS)]
            for rank, trace in enumerate(traces):
                after, before = (rank + 1) % RANKS, (rank - 1) % RANKS
                end = max(over[rank], over[before])
                trace.kernel(free[rank], ready[rank])
                trace.exchange(ready[rank], end, [("send", after), ("recv", before)], ranks=range(RANKS), group="g")
                free[rank] = end
        end = max(free)
        for rank, trace in enumerate(traces):
            trace.collective(free[rank], end + MS, group="all").step(n, start[rank], end + MS)
        free = [end + MS] * RANKS
    return told(*traces, world_size=RANKS)


def _over_ns(ready: list[int], source: int, slow_link: tuple[int, int] | None) -> int:
    """When the message of a rank to the next one has arrived."""
    other = (source + 1) % RANKS
    return max(ready[source], ready[other]) + TRANSFER * (4 if (source, other) == slow_link else 1)


def test_a_ring_has_no_stages() -> None:
    store = ring_job()

    assert rows_of(store, "SELECT DISTINCT stage FROM timeline.role") == [(None,)]
    assert rows_of(store, "SELECT kind FROM attribute.verdict") == [("nothing_significant",)]


def test_a_slow_rank_of_a_ring_is_held_against_the_others() -> None:
    # given rank 2, which computes 3 ms longer three times an iteration
    store = ring_job(slow_rank=2)

    ((subject, cause, delay_ns),) = rows_of(
        store, "SELECT subject, cause, delay_ns_per_iteration FROM attribute.finding WHERE confidence <> 'low'"
    )
    assert (subject, cause) == ("2", "slow_compute")
    assert delay_ns == pytest.approx(9 * MS, rel=0.02)


def test_a_slow_link_of_a_ring_is_named_though_both_its_ranks_seem_slow_to_others() -> None:
    # given messages from rank 1 to rank 2 that take 6 ms longer, three times an iteration
    store = ring_job(slow_link=(1, 2))

    ((kind, subject, cause, delay_ns),) = rows_of(
        store,
        "SELECT subject_kind, subject, cause, delay_ns_per_iteration FROM attribute.finding WHERE confidence <> 'low'",
    )
    assert (kind, subject, cause) == ("link", "1, 2", "slow_path")
    assert delay_ns == pytest.approx(18 * MS, rel=0.02)
    # and the ledger owns it by the two ranks
    owned = "SELECT DISTINCT low_rank, high_rank FROM attribute.delay WHERE cause = 'slow_path' AND delay_ns > 0"
    assert rows_of(store, owned) == [(1, 2)]
