"""When each rank reached each collective, who was last, and how fast it was then."""

from tests.given import Trace, data_parallel_job, rows_of
from tests.stories import told

ARRIVALS = "SELECT collective_id, rank, late_ns, wait_ns FROM timeline.arrival ORDER BY collective_id, rank"
COLLECTIVES = """
SELECT first_arrival_ns, last_arrival_ns, end_ns, last_rank, skew_ns, transfer_ns FROM timeline.collective
"""


def _meeting(*arrivals: int, end: int = 100) -> list[Trace]:
    """One step in which each rank arrives when told and all end together."""
    return [Trace(rank).step(1, 0, 200).collective(arrival, end) for rank, arrival in enumerate(arrivals)]


def test_a_rank_is_late_against_the_first_and_waits_for_the_last() -> None:
    # rank 0        |30––––––––––––100|     late 20, waits 40
    # rank 1   |10–––––––––––––––––100|     first,   waits 60
    # rank 2                   |70–100|     late 60, waits  0
    store = told(*_meeting(30, 10, 70), stage="timeline")

    assert rows_of(store, ARRIVALS) == [(0, 0, 20, 40), (0, 1, 0, 60), (0, 2, 60, 0)]


def test_a_collective_transfers_from_the_last_arrival_to_the_last_end() -> None:
    store = told(*_meeting(30, 10, 70), stage="timeline")

    assert rows_of(store, COLLECTIVES) == [(10, 70, 100, 2, 60, 30)]


def test_of_two_last_ranks_the_lower_one_is_named() -> None:
    store = told(*_meeting(70, 10, 70), stage="timeline")

    assert rows_of(store, "SELECT last_rank FROM timeline.collective") == [(0,)]


def test_who_left_a_broadcast_before_others_came_was_in_one_of_its_own() -> None:
    # rank 0   |10–50|                the root leaves
    # rank 1        |30–––––––90|     hands on what it has to rank 2, which comes late
    # rank 2              |70–––100|
    # rank 3                       |120–130|  finds all others gone
    times = {0: (10, 50), 1: (30, 90), 2: (70, 100), 3: (120, 130)}
    traces = [Trace(rank).step(1, 0, 300).collective(*own, op="broadcast") for rank, own in times.items()]
    for trace in traces:
        trace.collective(200, 210).collective(220, 230).collective(240, 250)

    store = told(*traces, stage="timeline")

    # then rank 1 waits for rank 2 alone, and nobody for rank 3; the last one keeps the number
    found = "SELECT collective_id, rank, late_ns, wait_ns FROM timeline.arrival WHERE match_id = 0 ORDER BY rank"
    assert rows_of(store, found) == [(4, 0, 0, 0), (5, 1, 0, 40), (5, 2, 40, 0), (0, 3, 0, 0)]
    # and all are of one number, complete, and show no bandwidth
    told_of = "SELECT collective_id, sequence, last_rank, transfer_ns, bus_bandwidth_bytes_per_s, complete"
    assert rows_of(store, f"{told_of} FROM timeline.collective WHERE op = 'broadcast'") == [
        (0, 0, 3, 10, None, True),
        (4, 0, 0, 40, None, True),
        (5, 0, 2, 30, None, True),
    ]


def test_bus_bandwidth_is_that_of_the_time_after_the_last_arrival() -> None:
    # 1000 floats, 2 ranks: 4000 bytes x 2 x (2 - 1) / 2 in 50 ns (50 – 100).
    store = told(*_meeting(20, 50), stage="timeline")

    assert rows_of(store, "SELECT op, size_bytes, bus_bandwidth_bytes_per_s FROM timeline.collective") == [
        ("all_reduce", 4_000, 4_000 / 50e-9)
    ]


def test_a_collective_that_took_no_time_has_no_bandwidth() -> None:
    # rank 1 comes when rank 0 is done, and stays for no time at all.
    store = told(*_meeting(20, 100), stage="timeline")

    assert rows_of(store, "SELECT transfer_ns, bus_bandwidth_bytes_per_s FROM timeline.collective") == [(0, None)]


def test_a_collective_is_complete_only_if_every_members_trace_is_here() -> None:
    # Ranks 0 and 1 of a group of three.
    traces = [Trace(rank).collective(10, 20, group="dp", ranks=[0, 1, 2]) for rank in range(2)]

    store = told(*traces, stage="timeline")

    assert rows_of(store, "SELECT complete FROM timeline.collective") == [(False,)]


def test_lateness_below_three_clock_residuals_is_below_resolution() -> None:
    # Ends differ by 0, 10, 20, 30 and 40 ns on rank 1: median 20, median distance 10, residual 15 ns.
    # Rank 1 arrives 44 ns late once (below 45: unsure) and 45 ns late another time (sure).
    first, second = Trace(0), Trace(1)
    for n, (late, jitter) in enumerate([(44, 0), (45, 10), (99, 20), (99, 30), (99, 40)]):
        first.collective(1_000 * n, 1_000 * n + 500)
        second.collective(1_000 * n + late + 20, 1_000 * n + 500 + jitter)

    store = told(first, second, stage="timeline")

    assert rows_of(store, "SELECT offset_ns, residual_ns FROM align.clock WHERE rank = 1") == [(20, 15)]
    assert rows_of(store, "SELECT late_ns, below_resolution FROM timeline.arrival WHERE rank = 1 ORDER BY 1") == [
        (44, True),
        (45, False),
        (99, False),
        (99, False),
        (99, False),
    ]


def test_who_left_a_broadcast_by_less_than_three_clock_residuals_was_surely_in_it() -> None:
    # The clock of the test above: rank 1's is ahead by 20 ns, with a residual of 15 ns.
    # rank 0   |broadcast 0–50|                 and leaves it 45 ns before rank 1 comes once (unsure), and 46 (sure)
    # rank 1                       |95–105|
    first, second = Trace(0), Trace(1)
    for n, jitter in enumerate([0, 10, 20, 30, 40]):
        first.collective(1_000 * n, 1_000 * n + 500)
        second.collective(1_000 * n + 119, 1_000 * n + 500 + jitter)
    for start, apart in ((5_000, 45), (6_000, 46)):
        first.collective(start, start + 50, op="broadcast")
        second.collective(start + 50 + apart + 20, start + 140 + 20, op="broadcast")

    store = told(first, second, stage="timeline")

    together = "SELECT COUNT(DISTINCT collective_id) FROM timeline.arrival WHERE match_id >= 5 GROUP BY match_id"
    assert rows_of(store, f"{together} ORDER BY match_id") == [(1,), (2,)]


def test_ranks_without_a_common_clock_are_not_compared() -> None:
    # Rank 0 is alone with its collectives; ranks 1 and 2 share theirs, but no clock with rank 0.
    traces = [Trace(rank, host="node0" if rank == 0 else "node1") for rank in range(3)]
    for n in range(3):
        traces[0].collective(100 * n, 100 * n + 50, group="a", ranks=[0, 9])
        for rank in (1, 2):
            traces[rank].collective(100 * n, 100 * n + 50, group="b", ranks=[1, 2])

    store = told(*traces, stage="timeline")

    assert rows_of(store, "SELECT DISTINCT rank FROM timeline.arrival") == [(0,)]


def test_a_communicator_tells_how_many_of_its_calls_were_matched() -> None:
    # Three collectives a rank; in iteration 1 rank 1 issues one more.
    traces = data_parallel_job([[60, 40], [60, 40], [60, 40]])
    traces[1].collective(80, 82, issue_ns=80)

    store = told(*traces, stage="timeline")

    # The call that is one more has no partner (6 of 7 calls do).
    assert rows_of(store, "SELECT size, origin, call_count, matched_share FROM timeline.communicator") == [
        (2, "assumed", 7, 6 / 7)
    ]
