"""Clocks that drift and wobble, many of them: how well they are brought to one, and what says so."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.given import MS, US, Trace, rows_of
from tests.stories import told
from traceforge.align.clock import causality_repairs
from traceforge.align.clock_sync import Calls, RankCalls, chain, components, solve
from traceforge.align.pairwise_offset import Offset, common_end_offset

SECOND = 1_000_000_000
CONFLICTS = "SELECT rank, causality_repairs, largest_repair_ns FROM align.clock ORDER BY rank"


@dataclass(frozen=True)
class Cluster:
    """Clocks that were made up: what each rank wrote down, and its true clock as offset and ppm, by rank."""

    calls: Calls
    true_end_ns: NDArray[np.int64]
    offset_ns: NDArray[np.int64]
    drift_ppm: NDArray[np.float64]

    def error_ns(self, offsets: dict[int, Offset]) -> NDArray[np.float64]:
        """Error of the aligned times, shape (ranks, collectives), but for what all ranks have in common."""
        aligned = []
        for rank in sorted(self.calls):
            raw = self.reading(rank, self.true_end_ns)
            aligned.append(raw - offsets[rank].course.at(raw))
        error = np.array(aligned) - self.reading(0, self.true_end_ns)
        return (error - error.mean(axis=0)).astype(np.float64)

    def reading(self, rank: int, true_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """What a rank's clock shows at true times."""
        return true_ns + self.offset_ns[rank] + (true_ns * self.drift_ppm[rank] * 1e-6).astype(np.int64)


def cluster(
    *, ranks: int, collectives: int, seconds: float, per_host: int = 1, groups: int = 0, seed: int = 1
) -> Cluster:
    """Clocks within ±2 ms and ±20 ppm; ranks leave a collective up to ±5 µs apart, and exponentially 8 µs late.

    With `groups` there is no collective of all ranks, but those of a grid: rows of that many ranks, and columns.
    """
    rng = np.random.default_rng(seed)
    hosts = np.arange(ranks) // per_host
    offset = rng.integers(-2 * MS, 2 * MS, ranks)
    drift = rng.uniform(-20, 20, ranks)[hosts]
    true_end = np.sort(rng.integers(0, int(seconds * SECOND), collectives))
    skew = rng.uniform(-5 * US, 5 * US, ranks)[:, None] + rng.exponential(8 * US, (ranks, collectives))
    made = Cluster({}, true_end, offset, drift)
    calls = {}
    for rank in range(ranks):
        end = made.reading(rank, true_end + skew[rank].astype(np.int64))
        row_or_column = np.arange(collectives) % 2
        communicator = np.where(row_or_column == 0, rank // groups, 1_000 + rank % groups) if groups else 0 * end
        arrival = end - rng.integers(1 * MS, 3 * MS, collectives)
        every = np.ones(collectives, dtype=np.bool_)
        number = communicator * collectives + np.arange(collectives)
        order = np.argsort(number)
        calls[rank] = RankCalls(
            f"node{hosts[rank]}", number[order], communicator[order], arrival[order], end[order], every, every, 0 * end
        )
    return Cluster(calls, true_end, offset, drift)


@pytest.mark.parametrize(("collectives", "seconds"), [(2_000, 60.0), (100, 10.0)])
def test_sixty_four_drifting_clocks_are_brought_together_within_5_us(collectives: int, seconds: float) -> None:
    made = cluster(ranks=64, collectives=collectives, seconds=seconds)

    error = made.error_ns(solve(made.calls))

    assert np.sqrt(np.mean(error**2)) <= 5 * US


def test_clocks_are_tied_over_rows_and_columns_where_no_collective_joins_all() -> None:
    # 64 ranks as 8 x 8: rank 63 meets rank 0 through rank 7 or rank 56 only.
    made = cluster(ranks=64, collectives=2_000, seconds=60.0, groups=8)

    offsets = solve(made.calls)

    error = made.error_ns(offsets)
    assert {offset.status for offset in offsets.values()} == {"reference", "fitted"}
    assert np.sqrt(np.mean(error**2)) <= 8 * US
    # The error of two ties is that of both.
    assert (offsets[63].residual_ns or 0) > 1.2 * (offsets[1].residual_ns or 0)


def test_the_error_is_told_by_comparing_halves_of_the_anchors() -> None:
    made = cluster(ranks=4, collectives=400, seconds=60.0)

    offsets = solve(made.calls)

    for rank in (1, 2, 3):
        assert offsets[rank].half_error_ns is not None
        assert 0 < (offsets[rank].half_error_ns or 0) <= 2 * (offsets[rank].residual_ns or 0)


def test_half_errors_need_six_anchors() -> None:
    ends = np.arange(5) * 100

    assert common_end_offset(ends, ends + 7).half_error_ns is None
    assert common_end_offset(np.arange(6) * 100, np.arange(6) * 100 + 7).half_error_ns == 0


def test_a_drift_is_found_and_used() -> None:
    # Rank 1 gains 50 µs a second, and is 10 ms ahead when it shows 0.
    ends = np.arange(100) * 10 * MS
    other = 10 * MS + ends + ends // 20_000

    offset = common_end_offset(ends, other)

    assert offset.drift_ppb == pytest.approx(50_000, abs=10)
    assert np.abs(other - offset.course.at(other) - ends).max() <= 100


def test_ranks_of_a_host_drift_as_one() -> None:
    # Two hosts of four ranks; few anchors, so that one rank alone knows its drift less well than four together.
    made = cluster(ranks=8, per_host=4, collectives=60, seconds=4.0)

    offsets = solve(made.calls)

    assert len({offsets[rank].drift_ppb for rank in (4, 5, 6, 7)}) == 1
    assert {offsets[rank].drift_ppb for rank in (0, 1, 2, 3)} == {0}
    true_ppb = 1_000 * (made.drift_ppm[4] - made.drift_ppm[0])
    assert offsets[4].drift_ppb == pytest.approx(true_ppb, abs=2_000)


class TestWobble:
    """A clock that runs now fast, now slow."""

    @staticmethod
    def _ends(amplitude_ns: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rng = np.random.default_rng(3)
        true = np.sort(rng.integers(0, 120 * SECOND, 4_000))
        wobble = amplitude_ns * np.sin(2 * np.pi * true / (40 * SECOND))
        noise = rng.exponential(8 * US, (2, len(true))).astype(np.int64)
        return true + noise[0], true + noise[1] + wobble.astype(np.int64) + 3 * MS

    def test_a_clock_that_wobbles_gets_a_line_of_pieces(self) -> None:
        ends, other = self._ends(50 * US)

        offset = common_end_offset(ends, other)

        assert offset.pieces is not None
        left = other - offset.course.at(other) - ends
        # The noise of two exponentials is about 11 µs; a line leaves 37 µs.
        assert np.sqrt(np.mean(left.astype(float) ** 2)) <= 13 * US
        assert np.diff(offset.pieces.raw_ns).min() >= 5 * SECOND

    def test_noise_alone_gets_one_line(self) -> None:
        assert common_end_offset(*self._ends(0.0)).pieces is None

    def test_a_wobble_is_handed_on_to_ranks_that_are_tied_through_it(self) -> None:
        # rank 0 ══ rank 1 (wobbles) ══ rank 2 (wobbles with it)
        ends, other = self._ends(50 * US)
        every = np.ones(len(ends), dtype=np.bool_)
        number = np.arange(len(ends))
        early = ends - MS
        calls = {
            0: RankCalls("a", number, 0 * number, early, ends, every, every, 0 * number),
            1: RankCalls(
                "b",
                np.concatenate([number, number + len(ends)]),
                np.concatenate([0 * number, 0 * number + 1]),
                np.concatenate([other - MS, other - MS]),
                np.concatenate([other, other]),
                np.concatenate([every, every]),
                np.concatenate([every, every]),
                np.concatenate([0 * number, 0 * number]),
            ),
            2: RankCalls("b", number + len(ends), 0 * number + 1, other, other + 7 * MS, every, every, 0 * number),
        }

        offsets = solve(calls)

        left = (other + 7 * MS) - offsets[2].course.at(other + 7 * MS) - ends
        assert np.sqrt(np.mean(left.astype(float) ** 2)) <= 13 * US

    def test_the_database_gives_the_same_times_as_the_fit(self) -> None:
        ends, other = (values[::40] for values in self._ends(200 * US))
        # Offsets of an epoch, so that times are as long as real ones.
        traces = [Trace(0, clock_ns=10**18), Trace(1, clock_ns=10**18, host="node1")]
        for n, (end, other_end) in enumerate(zip(ends.tolist(), other.tolist(), strict=True)):
            traces[0].collective(end - MS, end, issue_ns=1_200_000 * n * MS // 1_000)
            traces[1].collective(other_end - MS, other_end, issue_ns=1_200_000 * n * MS // 1_000)
        offset = common_end_offset(ends + 10**18, other + 10**18)
        assert offset.pieces is not None

        store = told(*traces, stage="timeline")

        found = [row[0] for row in rows_of(store, "SELECT end_ns FROM timeline.arrival WHERE rank = 1 ORDER BY end_ns")]
        raw = np.sort(other) + 10**18
        assert found == (raw - offset.course.at(raw)).tolist()


class TestCausality:
    """Nobody ends a collective before the last one has arrived."""

    # rank 0   |all-reduce 0–50|             …four times, ends with rank 1's
    # rank 1        |all-reduce 20–50|
    # the fifth: rank 0 ends at 450, but rank 1 arrives at 460 only

    @staticmethod
    def _job() -> list[Trace]:
        traces = [Trace(0), Trace(1)]
        for n in range(4):
            traces[0].collective(100 * n, 100 * n + 50)
            traces[1].collective(100 * n + 20, 100 * n + 50)
        traces[0].collective(400, 450)
        traces[1].collective(460, 470)
        return traces

    def test_an_end_before_the_last_arrival_is_counted_as_repaired(self) -> None:
        store = told(*self._job(), stage="timeline")

        assert rows_of(store, CONFLICTS) == [(0, 1, 10), (1, 0, 0)]
        issues = "SELECT code, severity, count, first_at FROM meta.issue WHERE code = 'causality_repaired'"
        # Clocks known to the ns do not explain it.
        assert rows_of(store, issues) == [("causality_repaired", "warning", 1, "rank 0")]

    def test_the_wait_is_cut_at_the_ranks_own_end(self) -> None:
        store = told(*self._job(), stage="timeline")

        assert rows_of(store, "SELECT rank, wait_ns FROM timeline.arrival WHERE collective_id = 4 ORDER BY rank") == [
            (0, 50),
            (1, 0),
        ]

    def test_times_that_fit_need_no_repair(self) -> None:
        made = cluster(ranks=4, collectives=100, seconds=1.0)

        assert causality_repairs(made.calls, solve(made.calls)) == {}


class TestComponents:
    """Ranks that no path ties."""

    # rank 0 ══ rank 1      rank 2 ══ rank 3      rank 4

    @staticmethod
    def _traces() -> list[Trace]:
        traces = [Trace(rank, host=f"node{rank}") for rank in range(5)]
        for n in range(3):
            for rank, trace in enumerate(traces[:4]):
                pair = [0, 1] if rank < 2 else [2, 3]
                trace.collective(100 * n + 10, 100 * n + 30, group=str(pair), ranks=pair)
        traces[4].kernel(0, 90)
        return traces

    def test_each_component_is_numbered(self) -> None:
        store = told(*self._traces(), stage="align")

        assert rows_of(store, "SELECT rank, component, status FROM align.clock ORDER BY rank") == [
            (0, 0, "reference"),
            (1, 0, "fitted"),
            (2, 1, "unaligned"),
            (3, 1, "unaligned"),
            (4, 2, "unaligned"),
        ]

    def test_each_component_that_stays_apart_is_named(self) -> None:
        store = told(*self._traces(), stage="align")

        named = rows_of(
            store, "SELECT count, first_at, detail FROM meta.issue WHERE code = 'clock_unaligned' ORDER BY 2"
        )
        assert [row[:2] for row in named] == [(2, "rank 2"), (1, "rank 4")]
        assert "ranks 2, 3 " in str(named[0][2])

    def test_a_single_rank_is_no_component_apart(self) -> None:
        calls = cluster(ranks=1, collectives=3, seconds=1.0).calls

        assert components(calls, solve(calls)) == {0: 0}


def test_many_common_ends_leave_out_those_that_are_only_about_common() -> None:
    # 30 all-reduces end together; 40 all-to-alls end 500 ns later on rank 1.
    first, second = Trace(0), Trace(1)
    for n in range(70):
        start, is_common = 10_000 * n, n < 30
        op = "allreduce" if is_common else "all_to_all"
        first.collective(start, start + 1_000, op=op)
        second.collective(start, start + (1_000 if is_common else 1_500), op=op)

    store = told(first, second, stage="align")

    assert rows_of(store, "SELECT offset_ns, anchors FROM align.clock WHERE rank = 1") == [(0, 30)]


def test_sends_both_ways_bound_the_offset_of_two_stages() -> None:
    # stage 0   |send 0–50 µs|          |recv 80–130 µs|        every ms; stage 1's clock is 3 ms ahead
    # stage 1      |recv 20–70 µs|      |send 90–110 µs|        what is sent waits in a buffer
    traces = [Trace(0, host="a"), Trace(1, host="b", clock_ns=3 * MS)]
    for base in range(0, 5 * MS, MS):
        traces[0].collective(base, base + 50 * US, op="send").collective(base + 80 * US, base + 130 * US, op="recv")
        traces[1].collective(base + 20 * US, base + 70 * US, op="recv")
        traces[1].collective(base + 90 * US, base + 110 * US, op="send")

    store = told(*traces, stage="align")

    # Ends lie 20 µs apart, one way and the other; order alone allows -40 to +70 µs.
    ((offset_ns, status),) = rows_of(store, "SELECT offset_ns, status FROM align.clock WHERE rank = 1")
    assert status == "bounded"
    assert abs(int(str(offset_ns)) - 3 * MS) <= 20 * US


def test_a_bound_on_a_clock_that_drifts_has_the_instant_of_that_clock() -> None:
    # given a clock that runs 20 ppm fast, 2 ms ahead at an instant of today, and one 3 ms ahead of that at all times
    today_ns = 1_735_689_610_000_000_000
    fast = Offset(2 * MS, 1_000, 9, "fitted", 20_000, today_ns)

    both = chain(fast, Offset(3 * MS, 50_000, 4, "bounded"))

    assert (both.offset_ns, both.raw_anchor_ns) == (5 * MS, today_ns + 3 * MS)
    # 20 us a second, also where it is asked for: the product of drift and time since 1970 would not fit
    assert both.course.at(np.array([both.raw_anchor_ns + SECOND])).tolist() == [5 * MS + 20 * US]


def test_a_wait_below_three_residuals_is_below_resolution() -> None:
    # Residual 15 ns, as ends differ by 0, 10, 20, 30 and 40 ns; rank 0 waits 44 ns once and 45 ns another time.
    first, second = Trace(0), Trace(1)
    for n, (late, jitter) in enumerate([(44, 0), (45, 10), (99, 20), (99, 30), (99, 40)]):
        first.collective(1_000 * n, 1_000 * n + 500)
        second.collective(1_000 * n + late + 20, 1_000 * n + 500 + jitter)

    store = told(first, second, stage="timeline")

    flags = "SELECT wait_ns, wait_below_resolution FROM timeline.arrival WHERE rank = 0 ORDER BY 1"
    assert rows_of(store, flags) == [(44, True), (45, False), (99, False), (99, False), (99, False)]
