"""Ranks in batches: as many at once as fit, every one once, and the same answers whatever fits."""

import pytest

from tests.given import Trace, built, data_parallel_job, rows_of, store_of, store_of_runs
from traceforge.align import rank_batches as module
from traceforge.align.rank_batches import file_batches, rank_batches

EVENTS = (
    "SELECT source_id, event_id FROM raw.occurrence WHERE source_id IN (SELECT UNNEST($1)) "
    "AND source_id BETWEEN $2 AND $3 ORDER BY event_id"
)
TABLES = ("align.payload", "timeline.segment", "timeline.gap", "timeline.exposure", "timeline.device_time")


def _job() -> list[Trace]:
    """Three ranks, which wait for one another and have a pause in the third step."""
    traces = data_parallel_job([[60, 40, 50], [30, 70, 65]])
    for trace in traces:
        trace.step(2, 500, 600).kernel(520, 560).kernel(570, 600)
    return traces


def test_as_many_ranks_as_fit_are_read_at_once_and_runs_are_apart() -> None:
    store = built(store_of_runs(_job(), _job()), "align")
    each = rows_of(store, "SELECT MAX(stored_count) FROM meta.source")[0][0]
    assert isinstance(each, int)

    batches = [(batch.run_id, [one.rank for one in batch.ranks]) for batch in rank_batches(store, 2 * each)]

    assert batches == [(0, [0, 1]), (0, [2]), (1, [0, 1]), (1, [2])]


def test_a_rank_that_fits_nowhere_is_read_alone() -> None:
    store = built(store_of(*_job()), "align")

    assert [len(batch.ranks) for batch in rank_batches(store, 1)] == [1, 1, 1]


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

    assert list(file_batches(store)) == [(first, last)]
    assert list(file_batches(store, 4 * each)) == [(first, first + 3), (first + 4, last)]
    assert list(file_batches(store, 1)) == [(first + n, first + n) for n in range(6)]


def test_how_many_ranks_fit_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    together = built(store_of(*_job()), "timeline")
    for batches in (module.rank_batches, module.file_batches):
        monkeypatch.setattr(batches, "__defaults__", (1,))
    apart = built(store_of(*_job()), "timeline")

    for table in TABLES:
        rows = rows_of(together, f"SELECT * FROM {table}")
        assert rows
        assert rows_of(apart, f"SELECT * FROM {table}") == rows
