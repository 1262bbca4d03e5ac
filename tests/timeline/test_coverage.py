"""A part never passes as the whole: what follows where members of a collective have no trace."""

from tests.given import Trace, rows_of
from tests.stories import told
from traceforge.store.database import Store

MS = 1_000_000
PHASES = "SELECT phase, duration_ns FROM timeline.phase WHERE rank = ? AND iteration = 1 ORDER BY phase"
COLLECTIVES = """
SELECT last_rank, skew_ns, transfer_ns, bus_bandwidth_bytes_per_s IS NULL, complete
FROM timeline.collective ORDER BY ALL
"""
ARRIVALS = "SELECT rank, late_ns, wait_ns, below_resolution, wait_below_resolution FROM timeline.arrival ORDER BY rank"
COVERAGE = """
SELECT ranks, truncated_ranks, job_ranks, collectives, complete_collectives, unsplit_share, is_split
FROM timeline.coverage
"""


def _timeline(*traces: Trace, world_size: int | None = None) -> Store:
    return told(*traces, world_size=world_size, stage="timeline")


def test_one_rank_of_several_does_not_show_whether_it_waits_or_transfers() -> None:
    # rank 0   |compute 0–40|all-reduce of ranks 0 to 7 40–100|      (seven ranks have no trace)
    store = _timeline(Trace(0).step(1, 0, 100).kernel(0, 40).collective(40, 100, ranks=range(8)))

    assert rows_of(store, PHASES, [0]) == [("communication", 60), ("compute", 40)]
    assert rows_of(store, COLLECTIVES) == [(None, None, None, True, False)]
    assert rows_of(store, ARRIVALS) == [(0, None, None, True, True)]
    assert rows_of(store, COVERAGE) == [(1, 0, 8, 1, 0, 0.6, False)]
    assert rows_of(store, "SELECT size, recorded, matched_share FROM timeline.communicator") == [(8, 1, None)]


def test_waiting_for_a_recorded_rank_is_waiting_and_what_follows_is_not_known() -> None:
    # rank 0   |compute –40|wait 40–––70|communication –90|
    # rank 1   |compute 0–––––––––––––70|communication –90|
    # rank 2   (no trace)
    early = Trace(0).step(1, 0, 90).kernel(0, 40).collective(40, 90, ranks=range(3))
    late = Trace(1).step(1, 0, 90).kernel(0, 70).collective(70, 90, ranks=range(3))

    store = _timeline(early, late)

    assert rows_of(store, PHASES, [0]) == [("communication", 20), ("compute", 40), ("wait", 30)]
    assert rows_of(store, PHASES, [1]) == [("communication", 20), ("compute", 70)]
    assert rows_of(store, COLLECTIVES) == [(1, 30, None, True, False)]
    assert rows_of(store, COVERAGE) == [(2, 0, 3, 1, 0, 40 / 180, False)]


def test_the_group_of_a_call_that_names_none_is_the_whole_job_recorded_or_not() -> None:
    # given ranks 0 and 1 of a job that says it has four
    def job() -> list[Trace]:
        return [Trace(rank).step(1, 0, 50).collective(10, 50) for rank in (0, 1)]

    stated = _timeline(*job(), world_size=4)
    assert rows_of(stated, "SELECT ranks, origin FROM timeline.communicator") == [([0, 1, 2, 3], "assumed")]
    assert rows_of(stated, "SELECT complete FROM timeline.collective") == [(False,)]

    # and where nothing says so, what is here is taken for all
    unstated = _timeline(*job())
    assert rows_of(unstated, "SELECT complete FROM timeline.collective") == [(True,)]
    assert rows_of(unstated, PHASES, [0]) == [("idle", 10), ("transfer", 40)]


def test_a_rank_below_the_highest_one_is_a_member_although_it_has_no_file() -> None:
    # ranks 0 and 2 are here; there must be a rank 1
    store = _timeline(*(Trace(rank).step(1, 0, 50).collective(10, 50) for rank in (0, 2)))

    assert rows_of(store, "SELECT ranks FROM timeline.communicator") == [([0, 1, 2],)]
    assert rows_of(store, COVERAGE) == [(2, 0, 3, 1, 0, 0.8, False)]


def test_of_a_lone_rank_whose_group_nothing_names_nothing_is_complete() -> None:
    store = _timeline(Trace(0).step(1, 0, 50).collective(10, 50))

    assert rows_of(store, PHASES, [0]) == [("communication", 40), ("idle", 10)]
    assert rows_of(store, "SELECT origin, matched_share FROM timeline.communicator") == [("unknown", None)]
    assert rows_of(store, "SELECT matched_share FROM timeline.matching") == [(None,)]
    assert rows_of(store, COVERAGE) == [(1, 0, None, 1, 0, 0.8, False)]


def test_calls_whose_group_nobody_knows_count_as_not_matched() -> None:
    # ranks 0 to 3   |all 10–20|, and a call each that names no group, of which each ends before the next one starts
    pairs = [("1", "tp", [0, 1]), ("2", "tp", [2, 3]), ("3", "dp", [0, 2]), ("4", "dp", [1, 3])]
    steps = [Trace(rank, groups=pairs).step(1, 0, 100 * MS) for rank in range(4)]
    for rank, step in enumerate(steps):
        step.collective(10 * MS, 20 * MS, ranks=range(4)).collective((30 + 10 * rank) * MS, (35 + 10 * rank) * MS)
    store = _timeline(*steps)

    assert rows_of(store, "SELECT matched_share FROM timeline.communicator") == [(1.0,)]
    assert rows_of(store, "SELECT matched_share FROM timeline.matching") == [(0.5,)]


def test_a_job_of_one_rank_is_whole() -> None:
    store = _timeline(Trace(0).step(1, 0, 50).collective(10, 50), world_size=1)

    assert rows_of(store, PHASES, [0]) == [("idle", 10), ("transfer", 40)]
    assert rows_of(store, ARRIVALS) == [(0, 0, 0, False, False)]
    assert rows_of(store, COVERAGE) == [(1, 0, 1, 1, 1, 0.0, True)]


def test_a_stated_size_that_no_job_has_is_not_believed() -> None:
    store = _timeline(Trace(0).step(1, 0, 50).collective(10, 50), world_size=2**31 - 1)

    assert rows_of(store, "SELECT ranks, origin FROM timeline.communicator") == [([0], "unknown")]


def test_exposed_communication_of_incomplete_collectives_is_a_column_of_its_own() -> None:
    # compute      |0–––20|
    # all-reduce      |10–––––––50|      ranks 0 and 1 are members, rank 1 has no trace
    store = _timeline(Trace(0).step(1, 0, 50).kernel(0, 20).collective(10, 50, ranks=(0, 1)))

    exposure = "SELECT exposed_wait_ns, exposed_transfer_ns, exposed_unsplit_ns, hidden_ns FROM timeline."
    assert rows_of(store, exposure + "exposure") == [(0, 0, 30, 10)]
    assert rows_of(store, exposure + "exposed_communication") == [(None, None, 30, 10)]
    assert rows_of(store, "SELECT exposed_share FROM timeline.exposed_communication") == [(0.75,)]
