"""Phases on one line of time: every ns before thinning, the same span after it, gaps where nothing was recorded."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceforge.report.job import Iteration
from traceforge.report.palette import PHASES
from traceforge.report.timeline import runs
from traceforge.report.timeline.axis import read_axis
from traceforge.report.timeline.runs import Lanes, runs_of, thinned

MS = 1_000_000


def lanes_of(*rows: list[tuple[str, int, int]]) -> Lanes:
    """A picture of these rows of (phase, start, end)."""
    marks = [(place, PHASES.index(phase), start, end) for place, row in enumerate(rows) for phase, start, end in row]
    columns = [np.array(column, dtype=np.int64) for column in zip(*marks, strict=True)]
    return Lanes(len(rows), *columns)


def intervals_of(lanes: Lanes, place: int = 0) -> list[tuple[str, int, int]]:
    own = lanes.row == place
    columns = (lanes.phase[own].tolist(), lanes.start_ns[own].tolist(), lanes.end_ns[own].tolist())
    return [(PHASES[phase], start, end) for phase, start, end in zip(*columns, strict=True)]


@given(st.lists(st.integers(0, 1_000_000 * len(PHASES) - 1), min_size=1, max_size=60), st.integers(1, 40))
def test_thinning_keeps_the_span_and_never_leaves_a_gap(pieces: list[int], slots: int) -> None:
    # given phase and length of each piece, drawn as one number: drawing takes longer than what is tested
    intervals, start = [], 0
    for length, phase in (divmod(piece, len(PHASES)) for piece in pieces):
        intervals.append((PHASES[phase], start, start + length + 1))
        start += length + 1
    thin = intervals_of(thinned(lanes_of(intervals), start / slots))
    assert len(thin) <= slots + 1
    assert thin[0][1] == 0
    assert thin[-1][2] == start
    assert all(one[2] == other[1] for one, other in pairwise(thin))
    assert all(one[0] != other[0] for one, other in pairwise(thin))


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_thinning_gives_a_slot_to_the_phase_that_fills_most_of_it(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    # however many intervals are looked at together
    monkeypatch.setattr(runs, "_LANES_AT_ONCE", at_once)
    # slots of 10:  |cccccccwww|wwwwwwwccc|     and a row that begins later and ends earlier
    row = [("compute", 0, 7), ("wait", 7, 17), ("compute", 17, 20)]
    thin = thinned(lanes_of(row, [("input", 3, 14)]), 10)
    assert intervals_of(thin, 0) == [("compute", 0, 10), ("wait", 10, 20)]
    assert intervals_of(thin, 1) == [("input", 3, 14)]


def story(*rows: tuple[int, int, str, int, int]) -> pl.DataFrame:
    """Segments of (iteration, rank, phase, start, end), since the iteration began."""
    columns = ["iteration", "rank", "phase", "start_ns", "end_ns"]
    frame = pl.DataFrame(rows, schema=columns, orient="row", schema_overrides={"iteration": pl.Int32, "rank": pl.Int32})
    return frame.select("iteration", "rank", "phase", "start_ns", duration_ns=pl.col("end_ns") - pl.col("start_ns"))


def origins_of(
    *rows: tuple[int, int, int, int, int], unaligned: tuple[int, ...] = ()
) -> tuple[list[Iteration], pl.DataFrame]:
    """Iterations and rows of (iteration, rank, start, duration, origin)."""
    columns = ["iteration", "rank", "start_ns", "duration_ns", "origin_ns"]
    frame = pl.DataFrame(rows, schema=columns, orient="row", schema_overrides={"iteration": pl.Int32, "rank": pl.Int32})
    starts = dict(frame.group_by("iteration").agg(pl.col("origin_ns").min()).sort("iteration").iter_rows())
    iterations = [Iteration(number, start, MS, is_warmup=False, is_partial=False) for number, start in starts.items()]
    return iterations, frame.with_columns(is_unaligned=pl.col("rank").is_in(unaligned))


def test_runs_say_where_nothing_was_recorded() -> None:
    # µs since the run began:   |wait 5..25| nothing |compute 30..31|     next iteration from 1,000 on: |idle 10..20|
    axis = read_axis(*origins_of((4, 0, 0, MS, 0), (5, 0, MS, MS, MS)))
    segments = story(
        (4, 0, "wait", 5_000, 25_000), (4, 0, "compute", 30_000, 31_000), (5, 0, "idle", 10_000, 20_000)
    )  # fmt: skip

    runs = runs_of(segments, axis, 100, [])

    wait, compute, idle = (PHASES.index(name) for name in ("wait", "compute", "idle"))
    assert runs.by_rank == {0: (f"-{wait}-{compute}-{idle}", [5, 20, 5, 1, 979, 10])}
    assert (runs.slot_ns, runs.count) == (None, 6)


def test_what_is_shown_in_detail_is_not_thinned() -> None:
    # given three iterations of two ranks, 200 pieces each, and room for 900 runs of 1,200
    pieces = [
        (number, rank, PHASES[at % 2], at * 5_000, (at + 1) * 5_000)
        for rank in (0, 1)
        for number in (1, 2, 3)
        for at in range(200)
    ]
    axis = read_axis(
        *origins_of(*[(number, rank, number * MS, MS, number * MS) for number in (1, 2, 3) for rank in (0, 1)])
    )

    runs = runs_of(story(*pieces), axis, 900, [2])

    # then iteration 2 (from 1,000 to 2,000 µs) has all of them, and the others share what is left
    edges = {rank: np.cumsum(lengths) for rank, (_, lengths) in runs.by_rank.items()}
    assert [sum(1_000 < edge <= 2_000 for edge in own) for own in edges.values()] == [200, 200]
    assert runs.slot_ns is not None
    assert runs.count <= 900
    assert [own[-1] for own in edges.values()] == [3_000, 3_000]


def test_a_rank_shown_in_detail_is_exact_in_all_iterations() -> None:
    # given rank 0 of 1,000 pieces and rank 1 of 100, and room for 500
    pieces = [(1, 0, PHASES[at % 2], at * 1_000, (at + 1) * 1_000) for at in range(1_000)]
    pieces += [(1, 1, PHASES[at % 2], at * 10_000, (at + 1) * 10_000) for at in range(100)]
    axis = read_axis(*origins_of((1, 0, 0, MS, 0), (1, 1, 0, MS, 0)))

    runs = runs_of(story(*pieces), axis, 500, [], [1])

    assert len(runs.by_rank[1][0]) == 100
    assert len(runs.by_rank[0][0]) <= 400


def test_iterations_in_detail_that_do_not_fit_are_thinned_like_the_others() -> None:
    pieces = [(number, 0, PHASES[at % 2], at * 5_000, (at + 1) * 5_000) for number in (1, 2) for at in range(200)]
    axis = read_axis(*origins_of((1, 0, 0, MS, 0), (2, 0, MS, MS, MS)))
    runs = runs_of(story(*pieces), axis, 240, [2, 1])
    assert runs.count <= 240
    assert sum(runs.by_rank[0][1]) == 2_000


def test_time_without_records_between_iterations_is_left_out() -> None:
    # given a profiler that records iterations 3 and 4, and then 50 ms later iteration 9
    axis = read_axis(*origins_of((3, 0, 0, MS, 0), (4, 0, MS, MS, MS), (9, 0, 52 * MS, MS, 52 * MS)))

    assert axis.offset_ns == {3: 0, 4: MS, 9: 2 * MS}


def test_a_rank_on_its_own_clock_begins_with_the_others() -> None:
    # rank 1 reads a clock that is an hour ahead; its iteration counts from its own start
    hour = 3_600_000 * MS
    axis = read_axis(*origins_of((1, 0, 0, MS, 0), (1, 1, hour, MS, hour), unaligned=(1,)))

    assert axis.step_at(1, 0, MS // 2) == axis.step_at(1, 1, hour + MS // 2) == 500
    assert axis.extent_ns == {1: MS}
    assert axis.unaligned == (1,)


def test_short_iterations_are_told_apart_in_finer_steps() -> None:
    axis = read_axis(*origins_of((1, 0, 0, 40_000, 0)))
    assert axis.step_at(1, 0, 1_230) == 123
