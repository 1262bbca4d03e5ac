"""By how much each rank's clock is off, and how sure that is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.given import MS, US, Trace, data_parallel_job, rows_of
from tests.stories import told
from traceforge.align.collective_matching import _setting
from traceforge.align.pairwise_offset import bounded_offset, common_end_offset, jump_place
from traceforge.align.sequence_alignment import CallSequence

CLOCKS = "SELECT rank, offset_ns, residual_ns, anchors, status FROM align.clock ORDER BY rank"


@pytest.mark.parametrize("offset_ns", [0, 1, -1, 37 * US, -5 * MS, 3_600_000_000_000])
def test_on_devices_a_known_offset_is_recovered_to_the_ns(offset_ns: int) -> None:
    # Collectives end together: rank 0 reads 70, rank 1 reads 70 + offset.
    job = data_parallel_job([[60, 40], [30, 55], [60, 40]], clock_ns=[0, offset_ns])

    store = told(*job, stage="align")

    assert rows_of(store, CLOCKS) == [(0, 0, 0, 0, "reference"), (1, offset_ns, 0, 3, "fitted")]


def test_an_offset_of_an_epoch_is_exact_too() -> None:
    # Rank 0 counts from its boot, rank 1 from 1970: their difference lies between two floats.
    offset_ns = 1_700_000_000_000_000_001

    store = told(*data_parallel_job([[60, 40], [30, 55], [60, 40]], clock_ns=[0, offset_ns]), stage="align")

    assert rows_of(store, "SELECT offset_ns FROM align.clock WHERE rank = 1") == [(offset_ns,)]


def test_the_residual_is_the_spread_of_the_ends() -> None:
    # Ends on rank 1 against rank 0: 98, 100, 100, 102, 104 ns later. Their median is 100, the median distance from it
    # 2, which for a normal distribution is a standard deviation of 1.4826 x 2, or 3 ns.
    offset = common_end_offset(np.array([10, 20, 30, 40, 50]), np.array([108, 120, 130, 142, 154]))

    assert (offset.offset_ns, offset.residual_ns, offset.anchors) == (100, 3, 5)


def test_one_stray_end_does_not_move_the_offset() -> None:
    offset = common_end_offset(np.array([10, 20, 30]), np.array([15, 25, 9_000]))

    assert offset.offset_ns == 5


JUMPS = "SELECT count, first_at, detail FROM meta.issue WHERE code = 'clock_set'"


@pytest.mark.parametrize("jump_ns", [40 * MS, 110 * MS, -2 * MS])
def test_a_clock_that_is_set_in_mid_run_is_aligned_on_both_sides_and_said(jump_ns: int) -> None:
    # given twelve steps of 110 ms, in the seventh of which rank 1's clock is set, by less than a step or a whole one
    job = data_parallel_job([[100 * MS, 90 * MS]] * 12, transfer_ns=10 * MS, clock_ns=[0, 5 * US])
    for event in job[1].events:
        start = int(str(event["raw_start_ns"]))
        end = start + int(str(event["duration_ns"]))
        start, end = (time + jump_ns * (time > 6 * 110 * MS + 50 * MS) for time in (start, end))
        event |= {"raw_start_ns": start, "duration_ns": end - start}

    store = told(*job, stage="timeline")

    pieces = rows_of(store, "SELECT offset_ns, drift_ppb FROM align.clock_piece WHERE rank = 1 ORDER BY raw_from_ns")
    assert pieces[0] == (5 * US, 0)
    assert pieces[2] == (5 * US + jump_ns, 0)
    ((count, first_at, detail),) = rows_of(store, JUMPS)
    assert (count, first_at) == (1, "rank 1")
    assert f"1 of 2 jump against rank 0's, rank 1's by {jump_ns / 1e6:.1f} ms" in str(detail)
    assert rows_of(store, "SELECT COUNT(*) FROM align.match") == [(24,)]
    # then the step in which it was set is not judged, nor what is no longer known of its neighbour
    partial = rows_of(store, "SELECT LIST(iteration) FROM timeline.iteration WHERE is_partial")
    assert partial == [([6],)]


def test_strays_drifts_and_jumps_near_an_end_are_no_setting_of_a_clock() -> None:
    still = np.zeros(20, dtype=np.int64)
    one = np.arange(20)

    assert jump_place(still + 40 * MS * (one >= 8)) == (8, 8)
    assert jump_place(still + 40 * MS * (one == 8)) is None
    assert jump_place(still + 40 * MS * (one >= 3)) is None
    assert jump_place(one * MS) is None
    assert jump_place(still + 400 * US * (one >= 8)) is None


def test_a_clock_that_stands_still_until_it_is_right_is_set_once() -> None:
    # place        7    8    9   10   11
    # difference   0   -9  -29  -40  -40  (ms)
    one = np.arange(20)
    stands = np.select([one < 8, one == 8, one == 9], [0, -9, -29], -40) * MS

    assert jump_place(stands) == (8, 10)
    # neither what goes on for long nor what comes back is one
    assert jump_place(np.clip(one - 6, 0, 7) * -9 * MS) is None
    assert jump_place(np.where(one == 9, 20 * MS, stands)) is None


@pytest.mark.parametrize(
    ("third", "expected"),
    [
        ([0] * 8 + [40] * 12, (8, 8)),
        ([0] * 8 + [25] + [40] * 11, (8, 9)),  # the ninth collective ends while it stands still
        ([0] * 12 + [40] * 8, None),  # another clock, set later
    ],
)
def test_a_clock_is_set_for_all_ranks_of_its_host_at_once(third: list[int], expected: tuple[int, int] | None) -> None:
    # given the ends of three ranks in ms, of which the second is set after the eighth of twenty collectives
    one, sets = np.arange(20), ([0] * 20, [0] * 8 + [40] * 12, third)
    ends = [100 * MS * one + MS * np.array(by_ms) for by_ms in sets]
    calls = [CallSequence(one, one, one, end - MS, end) for end in ends]

    assert _setting(np.repeat(one[:, None], 3, axis=1), calls) == expected


def test_a_clock_is_no_more_certain_than_its_halves_agree() -> None:
    # Of 20 ends all lie on the line but every other one of the last twelve, 0.4 ms behind it: most of one half.
    places = np.arange(20)
    ends = 10 * MS * places

    offset = common_end_offset(ends, ends + 400 * US * ((places % 2 == 1) & (places >= 8)))

    assert (offset.offset_ns, offset.half_error_ns, offset.residual_ns) == (0, 400 * US, 400 * US)


def test_ranks_that_never_meet_the_reference_are_tied_through_others() -> None:
    # rank 0 ══ rank 1 (group a, 3 collectives), rank 1 ══ rank 2 (group b); clocks 0, +100, -50
    traces = [Trace(0), Trace(1, clock_ns=100), Trace(2, clock_ns=-50)]
    for n in range(3):
        for rank in (0, 1):
            traces[rank].collective(100 * n + 10, 100 * n + 30, group="a", ranks=[0, 1])
        for rank in (1, 2):
            traces[rank].collective(100 * n + 50, 100 * n + 70, group="b", ranks=[1, 2])

    store = told(*traces, stage="align")

    assert rows_of(store, "SELECT rank, offset_ns, status FROM align.clock ORDER BY rank") == [
        (0, 0, "reference"),
        (1, 100, "fitted"),
        (2, -50, "fitted"),
    ]


def test_a_time_since_1970_and_one_since_the_host_s_start_are_not_of_one_clock() -> None:
    # given two ranks of one host that never meet, of which one wrote times since the host's start
    now = 1_700_000_000_000_000_000
    traces = [Trace(0, clock_ns=now), Trace(1, clock_ns=now + 5), Trace(2)]
    for trace in traces:
        trace.step(0, 0, 100).step(1, 100, 200)

    store = told(*traces, stage="align")

    assert rows_of(store, "SELECT rank, status FROM align.clock ORDER BY rank") == [
        (0, "reference"),
        (1, "shared_clock"),
        (2, "unaligned"),
    ]


def test_ranks_of_one_host_that_share_no_collective_share_its_clock_roughly() -> None:
    # rank 0 ══ rank 1      rank 2 ══ rank 3      all on node0
    traces = [Trace(rank) for rank in range(4)]
    for n in range(3):
        for rank, trace in enumerate(traces):
            pair = [0, 1] if rank < 2 else [2, 3]
            trace.collective(100 * n + 10, 100 * n + 30, group=str(pair), ranks=pair)

    store = told(*traces, stage="align")

    assert rows_of(store, "SELECT rank, offset_ns, residual_ns, status FROM align.clock WHERE rank >= 2") == [
        (2, 0, 100_000, "shared_clock"),
        (3, 0, 100_000, "fitted"),
    ]


def test_ranks_that_share_no_collective_with_the_reference_are_called_unaligned() -> None:
    # rank 0 ══ rank 1      rank 2 ══ rank 3
    traces = [Trace(rank, host="node0" if rank < 2 else "node1") for rank in range(4)]
    for n in range(3):
        for rank, trace in enumerate(traces):
            pair = [0, 1] if rank < 2 else [2, 3]
            trace.collective(100 * n + 10, 100 * n + 30, group=str(pair), ranks=pair)

    store = told(*traces, stage="align")

    assert rows_of(store, CLOCKS) == [
        (0, 0, 0, 0, "reference"),
        (1, 0, 0, 3, "fitted"),
        (2, None, None, 0, "unaligned"),
        (3, None, None, 0, "unaligned"),
    ]


def test_operations_that_may_end_at_different_times_tie_no_clock() -> None:
    # The root of a broadcast is done as soon as it has sent.
    traces = [Trace(rank, host=f"node{rank}") for rank in range(2)]
    for n in range(3):
        for rank, trace in enumerate(traces):
            trace.collective(100 * n, 100 * n + 10 + 40 * rank, op="broadcast")

    store = told(*traces, stage="align")

    assert rows_of(store, "SELECT status FROM align.clock WHERE rank = 1") == [("unaligned",)]


@examples(50)
@given(
    st.lists(st.tuples(st.integers(0, 1_000), st.integers(-9, 9)), min_size=3, max_size=8),
    st.integers(-(2**61), 2**61),
)
def test_setting_a_clock_by_some_time_moves_its_offset_by_just_that(
    drawn: list[tuple[int, int]], moved_ns: int
) -> None:
    ends = np.array([end for end, _ in drawn])
    other_ends = ends + np.array([jitter for _, jitter in drawn])

    before, after = common_end_offset(ends, other_ends), common_end_offset(ends, other_ends + moved_ns)

    assert after.offset_ns == (before.offset_ns or 0) + moved_ns
    assert after.residual_ns == before.residual_ns


class TestHostThreads:
    """gloo's collectives do not end together."""

    # rank 0   |gloo 0 – 10 ms|  …every 100 ms
    # rank 1   |gloo 2 – 14 ms|  …ends 4 ms later than rank 0

    @staticmethod
    def _job(hosts: tuple[str | None, str | None], clock_ns: int = 0) -> list[Trace]:
        traces = [Trace(0, host=hosts[0]), Trace(1, host=hosts[1], clock_ns=clock_ns)]
        for n in range(4):
            traces[0].gloo(100 * n * MS, (100 * n + 10) * MS)
            traces[1].gloo((100 * n + 2) * MS, (100 * n + 14) * MS)
        return traces

    def test_on_one_host_they_read_one_clock(self) -> None:
        store = told(*self._job(("node0", "node0")), stage="align")

        assert rows_of(store, CLOCKS)[1] == (1, 0, 10 * US, 4, "shared_clock")

    def test_files_of_one_host_whose_times_contradict_one_clock_are_aligned_as_of_two(self) -> None:
        # The times of each file begin at a zero of its own, 1 s apart: rank 0 would be done before rank 1 starts.
        one, two = (
            told(*self._job(hosts, clock_ns=1_000 * MS), stage="align")
            for hosts in (("node0", "node0"), ("node0", "node1"))
        )

        assert rows_of(one, CLOCKS)[1][-1] == "bounded"
        assert rows_of(one, CLOCKS) == rows_of(two, CLOCKS)

    def test_across_hosts_their_ends_give_a_coarse_offset(self) -> None:
        # Rank 1's clock is 1 s ahead, its ends 1.004 s: within [992, 1014] ms, which order allows.
        store = told(*self._job(("node0", "node1"), clock_ns=1_000 * MS), stage="align")

        assert rows_of(store, CLOCKS)[1] == (1, 1_004 * MS, 10 * US, 4, "bounded")

    def test_two_unknown_hosts_are_not_taken_for_one(self) -> None:
        store = told(*self._job((None, None)), stage="align")

        assert rows_of(store, "SELECT status FROM align.clock WHERE rank = 1") == [("bounded",)]

    def test_an_offset_that_order_forbids_is_moved_to_the_nearest_that_it_allows(self) -> None:
        # reference   |0 – 10|    |100 – 110|    |200 – 210|
        # other       |0 – 12|    |100 – 130|       |215 – 230|
        # The ends lie 2, 20 and 20 apart. But the other cannot end its first one, at 12, before the reference starts
        # it, at 0: the offset is 12 at most (and 5 at least, by the last one's start).
        offset = bounded_offset(
            np.array([0, 100, 200]), np.array([10, 110, 210]), np.array([0, 100, 215]), np.array([12, 130, 230])
        )

        assert offset is not None
        assert offset.offset_ns == 12

    @pytest.mark.parametrize(("ahead_ns", "found_ns"), [(0, 0), (20_000, 35_000), (-30_000, -15_000)])
    def test_clocks_that_may_agree_as_they_are_are_left_alone(self, ahead_ns: int, found_ns: int) -> None:
        # Both come at once and take 20 µs, the other one 5 to 25 µs more, whose ends would make it 15 µs ahead.
        start = np.arange(5) * 1_000_000
        late = np.array([5_000, 10_000, 15_000, 20_000, 25_000])

        offset = bounded_offset(start, start + 20_000, start + ahead_ns, start + ahead_ns + 20_000 + late)

        # then clocks that agree are not moved; where order forbids that they do, the ends tell how far they are apart
        assert offset is not None
        assert offset.offset_ns == found_ns

    def test_an_offset_is_known_no_worse_than_order_bounds_it(self) -> None:
        # The other ends at once or 1 ms later, by what else it does; but for one call it comes 30 µs before an end.
        start, end = np.arange(10) * 5_000_000, np.arange(10) * 5_000_000 + 20_000
        other_end = end + np.repeat([0, 1_000_000], 5)
        other_start = np.where(np.arange(10) == 3, end - 30_000, start)
        other_end[3] = start[3] + 40_000

        offset = bounded_offset(start, end, other_start, other_end)

        # then ends scatter by 1 ms, while the offset is at most as far off as the farther bound
        assert offset is not None
        assert (offset.offset_ns, offset.residual_ns) == (0, 20_000)

    def test_where_order_allows_no_offset_at_all_there_is_none(self) -> None:
        # Once the other ends 50 before the reference starts, once it starts 50 after the reference has ended.
        offset = bounded_offset(np.array([100, 200]), np.array([110, 210]), np.array([40, 260]), np.array([50, 270]))

        assert offset is None

    @examples(50)
    @given(
        st.integers(-(10**12), 10**12),
        st.lists(
            st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(1, 50), st.integers(1, 50)),
            min_size=1,
            max_size=8,
        ),
    )
    def test_under_the_offset_no_rank_ends_a_collective_before_the_other_starts_it(
        self, true_offset_ns: int, drawn: list[tuple[int, int, int, int]]
    ) -> None:
        # Each rank arrives, and is done some time after both have arrived.
        start = np.array([1_000 * n + first for n, (first, _, _, _) in enumerate(drawn)])
        other_start = np.array([1_000 * n + second for n, (_, second, _, _) in enumerate(drawn)])
        both = np.maximum(start, other_start)
        end = both + np.array([tail for _, _, tail, _ in drawn])
        other_end = both + np.array([tail for _, _, _, tail in drawn])

        offset = bounded_offset(start, end, other_start + true_offset_ns, other_end + true_offset_ns)

        assert offset is not None
        assert offset.offset_ns is not None
        aligned_start = other_start + true_offset_ns - offset.offset_ns
        aligned_end = other_end + true_offset_ns - offset.offset_ns
        assert (aligned_start <= end).all()
        assert (start <= aligned_end).all()
