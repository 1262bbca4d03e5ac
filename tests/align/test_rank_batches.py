"""Ranks in batches: as many at once as fit, every one once, and the same answers whatever fits."""

import pytest

from tests.given import Trace, built, data_parallel_job, rows_of, store_of, store_of_runs
from traceforge.align import rank_batches as module
from traceforge.align.rank_batches import planned_batches, planned_files, rank_batches
from traceforge.graph import arrival

EVENTS = (
    "SELECT source_id, event_id FROM raw.occurrence WHERE source_id IN (SELECT UNNEST($1)) "
    "AND source_id BETWEEN $2 AND $3 ORDER BY event_id"
)
ISSUES = "SELECT run_id, code, count, first_at FROM meta.issue WHERE stage = 'graph' ORDER BY ALL"
TABLES = (
    "align.payload",
    "align.communication_kernel",
    "align.call",
    "timeline.segment",
    "timeline.gap",
    "timeline.exposure",
    "timeline.device_time",
    "graph.queued",
    "graph.arrival",
)


def _job() -> list[Trace]:
    """Three ranks, which wait for one another and have a pause in the third step."""
    traces = data_parallel_job([[60, 40, 50], [30, 70, 65]])
    for trace in traces:
        trace.step(2, 500, 600).kernel(520, 560).kernel(570, 600)
    return traces


def _queued_job() -> list[Trace]:
    """Two ranks whose second collective stands behind the first one on its stream."""
    return [
        Trace(rank)
        .step(1, 0, 110)
        .kernel(0, 20)
        .collective(20, 60, issue_ns=2)
        .kernel(20, ready_ns, launch_ns=4)
        .collective(60, 100, issue_ns=6)
        .kernel(100, 110, launch_ns=8)
        for rank, ready_ns in enumerate([40, 50])
    ]


def _job_out_of_step() -> list[Trace]:
    """Two ranks that issue one collective in different steps."""
    return [
        Trace(rank).step(1, 0, 100).step(2, 100, 200).step(3, 200, 300)
        .kernel(0, 30).collective(30, 40, issue_ns=5)
        .kernel(40, issue_ns).collective(issue_ns, 120, issue_ns=issue_ns)
        .kernel(120, 230, launch_ns=issue_ns + 1).collective(230, 250, issue_ns=210)
        for rank, issue_ns in enumerate([90, 110])
    ]  # fmt: skip


def test_as_many_ranks_as_fit_are_read_at_once_and_runs_are_apart() -> None:
    store = built(store_of_runs(_job(), _job()), "align")
    each = rows_of(store, "SELECT MAX(stored_count) FROM meta.source")[0][0]
    assert isinstance(each, int)

    batches = [(batch.run_id, [one.rank for one in batch.ranks]) for batch in planned_batches(store, 2 * each)]

    assert batches == [(0, [0, 1]), (0, [2]), (1, [0, 1]), (1, [2])]


def test_a_rank_that_fits_nowhere_is_read_alone() -> None:
    store = built(store_of(*_job()), "align")

    assert [len(batch.ranks) for batch in planned_batches(store, 1)] == [1, 1, 1]


def test_what_a_query_finds_is_told_apart_by_file_whatever_its_order() -> None:
    store = built(store_of(*_job()), "align")
    (batch,) = rank_batches(store)

    found = batch.by_file(store, EVENTS)

    for one in batch.ranks:
        own = found.of(one.source_id)
        assert own["source_id"].unique().to_list() == [one.source_id]
        assert own["event_id"].to_list() == list(range(own.height))
    assert found.of(99).is_empty()


def test_files_are_taken_in_order_as_many_at_once_as_fit() -> None:
    store = built(store_of_runs(_job(), _job()), "align")
    each = rows_of(store, "SELECT MAX(stored_count) FROM meta.source")[0][0]
    assert isinstance(each, int)
    first, *_, last = (number for (number,) in rows_of(store, "SELECT source_id FROM meta.source ORDER BY source_id"))
    assert isinstance(first, int)

    assert list(planned_files(store)) == [(first, last)]
    assert list(planned_files(store, 4 * each)) == [(first, first + 3), (first + 4, last)]
    assert list(planned_files(store, 1)) == [(first + n, first + n) for n in range(6)]


def test_a_large_rank_comes_in_pieces_that_hold_each_event_once(monkeypatch: pytest.MonkeyPatch) -> None:
    store = built(store_of(*_job()), "align")
    monkeypatch.setattr(module.planned_batches, "__defaults__", (1,))
    (batch, *_) = planned_batches(store)
    pieces_of_events = EVENTS.replace("ORDER BY", "AND event_id BETWEEN $4 AND $5 ORDER BY")
    assert [piece.frame.height for piece in batch.in_pieces(store, pieces_of_events)] == [batch.most_events]

    monkeypatch.setattr(module, "_MOST_EVENTS", 4)
    pieces = [piece.frame["event_id"].to_list() for piece in batch.in_pieces(store, pieces_of_events)]

    assert [event for piece in pieces for event in piece] == batch.by_file(store, EVENTS).frame["event_id"].to_list()
    assert {len(piece) for piece in pieces[:-1]} == {4}


def test_how_many_ranks_fit_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    together = built(store_of_runs(_job(), _queued_job(), _job_out_of_step()), "timeline", "graph")
    for batches in (module.planned_batches, module.planned_files):
        monkeypatch.setattr(batches, "__defaults__", (1,))
    monkeypatch.setattr(module, "_MOST_EVENTS", 4)
    monkeypatch.setattr(arrival, "_MOST_ARRIVALS", 1)
    apart = built(store_of_runs(_job(), _queued_job(), _job_out_of_step()), "timeline", "graph")

    for table in TABLES:
        rows = rows_of(together, f"SELECT * FROM {table}")
        assert rows
        assert rows_of(apart, f"SELECT * FROM {table}") == rows
    left_out = ("iteration_irregular", "iteration_order_unknown")
    assert rows_of(together, ISSUES) == [(2, code, 2, "iteration 1") for code in left_out]
    assert rows_of(apart, ISSUES) == rows_of(together, ISSUES)
