"""What must hold for any job: phases sum to the iteration, and clocks and file order change no answer."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.given import MS, Trace, built, data_parallel_job, rows_of, store_of_runs
from traceforge.timeline.rank_events import Events, RankEvents, classes
from traceforge.timeline.segment import rank_layers, segments

NAMES = {
    "kernel": "gemm", "gpu_memcpy": "Memcpy HtoD", "cpu_op": "aten::mm", "user_annotation": "load_batch",
    "cuda_runtime": "cudaDeviceSynchronize",
}  # fmt: skip

UNBALANCED = """
SELECT p.iteration, p.rank FROM (
  SELECT run_id, iteration, rank, SUM(duration_ns) AS duration_ns FROM timeline.phase GROUP BY ALL
) AS p FULL JOIN timeline.rank_iteration AS r USING (run_id, iteration, rank)
WHERE p.duration_ns IS DISTINCT FROM r.duration_ns
"""

ANSWERS = {
    "arrivals": "SELECT collective_id, iteration, rank, late_ns, wait_ns, below_resolution FROM timeline.arrival",
    "phases": "SELECT iteration, rank, phase, duration_ns FROM timeline.phase",
    "iterations": "SELECT iteration, duration_ns, ranks, is_warmup, is_partial FROM timeline.iteration",
    "collectives": "SELECT collective_id, last_rank, skew_ns, transfer_ns, complete FROM timeline.collective",
    "chains": "SELECT iteration, rank, position, awaited_position FROM graph.arrival",
    "work": "SELECT iteration, rank, position, part, phase, activity, duration_ns FROM graph.work",
}

spans = st.tuples(st.integers(0, 100), st.integers(1, 40))


@st.composite
def events_of_a_rank(draw: st.DrawFn) -> RankEvents:
    """Events of any class at any time, as rank_layers takes them."""
    rows = draw(st.lists(st.tuples(st.sampled_from(classes()), spans, st.booleans()), max_size=12))
    every = {name: [row for row in rows if row[0] == name] for name in dict.fromkeys(name for name, *_ in rows)}
    own = {name: [row for row in some if row[2]] for name, some in every.items()}
    return RankEvents(
        {name: events_of(*(span for _, span, _ in some)) for name, some in every.items()},
        {name: events_of(*(span for _, span, _ in some)) for name, some in own.items() if some},
    )


def events_of(*starts_and_lengths: tuple[int, int]) -> Events:
    """Events by start and duration."""
    starts, lengths = np.array(starts_and_lengths, dtype=np.int64).T
    return Events(starts, starts + lengths)


@st.composite
def matched_frames(draw: st.DrawFn) -> pl.DataFrame:
    """Collectives of the rank with the last arrival of any rank, which may lie anywhere; complete or not."""
    rows = draw(st.lists(st.tuples(spans, st.integers(0, 20), st.integers(0, 150), st.booleans()), max_size=4))
    times = ("start_ns", "end_ns", "recorded_end_ns", "last_arrival_ns")
    return pl.DataFrame(
        [(start, start + length, start + length + more, last, whole) for (start, length), more, last, whole in rows],
        schema=dict.fromkeys(times, pl.Int64) | {"complete": pl.Boolean},
        orient="row",
    )


@settings(deadline=None)
@given(events_of_a_rank(), matched_frames(), st.booleans(), st.integers(0, 100), st.integers(1, 60))
def test_segments_fill_the_window_without_gap_or_overlap(
    events: RankEvents, matched: pl.DataFrame, has_device: bool, start: int, length: int
) -> None:
    pieces = segments(
        rank_layers(events, matched, has_device=has_device), np.array([start]), np.array([start + length])
    )
    found = pieces.frame()

    starts, durations = found["start_ns"].to_numpy(), found["duration_ns"].to_numpy()
    assert (durations > 0).all()
    np.testing.assert_array_equal(np.append(start, (starts + durations)), np.append(starts, start + length))


@settings(deadline=None)
@given(events_of_a_rank(), matched_frames(), st.booleans())
def test_neighbouring_segments_differ_and_hide_no_more_than_they_last(
    events: RankEvents, matched: pl.DataFrame, has_device: bool
) -> None:
    pieces = segments(rank_layers(events, matched, has_device=has_device), np.array([0]), np.array([150]))
    found = pieces.frame()

    kinds = found.select("phase", "activity").rows()
    assert all(before != after for before, after in pairwise(kinds))
    assert (found["hidden_communication_ns"] <= found["duration_ns"]).all()
    assert (found.filter(pl.col("phase") != "compute")["hidden_communication_ns"] == 0).all()


@st.composite
def jobs(draw: st.DrawFn) -> list[Trace]:
    """Two ranks with three steps, collectives and any other events anywhere."""
    traces = [Trace(rank) for rank in range(2)]
    for trace in traces:
        for number in range(3):
            base = 100 * number
            trace.step(number, base, base + 100)
            start, length = draw(spans)
            trace.collective(base + start, base + start + length, issue_ns=base)
        for category, (start, length) in draw(st.lists(st.tuples(st.sampled_from(sorted(NAMES)), spans), max_size=5)):
            trace.event(category, NAMES[category], 3 * start, 3 * start + length)
    return traces


@examples(2)
@given(st.lists(jobs(), min_size=5, max_size=5))
def test_phases_sum_to_the_iteration_to_the_ns(runs: list[list[Trace]]) -> None:
    with built(store_of_runs(*runs), "timeline") as store:
        assert rows_of(store, UNBALANCED) == []
        counts = rows_of(store, "SELECT COUNT(DISTINCT iteration) FROM timeline.phase GROUP BY run_id")
        assert counts == [(3,)] * len(runs)


Answers = dict[str, list[tuple[object, ...]]]


def _answers(*runs: list[Trace]) -> list[Answers]:
    """What is found of each run."""
    with built(store_of_runs(*runs), *(sql.rpartition(" ")[2] for sql in ANSWERS.values())) as store:
        return [
            {name: rows_of(store, f"{sql} WHERE run_id = ? ORDER BY ALL", [run]) for name, sql in ANSWERS.items()}
            for run in range(len(runs))
        ]


def _four_ranks(clocks: list[int]) -> list[Trace]:
    # Two hosts of two ranks; who is late changes from iteration to iteration, and one host also fetches data.
    computes = [[60, 40, 50, 45], [30, 70, 65, 20], [80, 20, 30, 40], [50, 50, 50, 90]]
    traces = data_parallel_job(computes, transfer_ns=15, clock_ns=clocks, hosts=["a", "a", "b", "b"])
    traces[2].host_work("load_batch", 2, 71, "user_annotation")
    return traces


@pytest.fixture(scope="module")
def true_answers() -> Answers:
    """What is found of four ranks whose clocks are right."""
    (answers,) = _answers(_four_ranks([0, 0, 0, 0]))
    return answers


@pytest.mark.parametrize(("host", "moved_ns"), [("a", 250 * MS), ("b", 1), ("b", -3_600_000 * MS)])
def test_setting_the_clock_of_one_host_changes_no_answer(host: str, moved_ns: int, true_answers: Answers) -> None:
    clocks = [moved_ns if home == host else 0 for home in ("a", "a", "b", "b")]

    assert _answers(_four_ranks(clocks)) == [true_answers]


two_rank_jobs = st.tuples(
    st.lists(st.lists(st.integers(1, 200), min_size=2, max_size=2), min_size=3, max_size=5),
    st.lists(st.integers(0, 9), min_size=5, max_size=5),
    st.integers(-(10**9), 10**9),
)


def _job_that_scatters(computes: list[list[int]], jitters: list[int], clock_ns: int) -> list[Trace]:
    # Rank 1 leaves each collective up to 9 ns later than rank 0.
    traces, now = [Trace(0), Trace(1, clock_ns=clock_ns)], 0
    for number, (durations, jitter) in enumerate(zip(computes, jitters, strict=False)):
        end = now + max(durations) + 10
        for rank, (trace, duration) in enumerate(zip(traces, durations, strict=True)):
            trace.step(number, now, end + 10).kernel(now, now + duration)
            trace.collective(now + duration, end + rank * jitter)
        now = end + 10
    return traces


@examples(2)
@given(st.lists(two_rank_jobs, min_size=3, max_size=3))
def test_a_clock_that_is_off_changes_no_answer_even_where_ends_scatter(
    jobs: list[tuple[list[list[int]], list[int], int]],
) -> None:
    found = _answers(*(_job_that_scatters(*job, clock_ns) for *job, moved_ns in jobs for clock_ns in (moved_ns, 0)))

    assert found[::2] == found[1::2]


@pytest.mark.parametrize("order", [(3, 2, 1, 0), (1, 3, 0, 2)])
def test_the_order_of_files_changes_no_answer(order: tuple[int, ...], true_answers: Answers) -> None:
    traces = _four_ranks([0, 500, -300, 40])

    assert _answers([traces[rank] for rank in order]) == [true_answers]


def test_renaming_the_files_of_ranks_changes_no_answer(true_answers: Answers) -> None:
    renamed = _four_ranks([0, 0, 0, 0])
    for number, trace in enumerate(renamed):
        trace.path = f"{9 - number}.pt.trace.json"

    assert _answers(renamed) == [true_answers]
