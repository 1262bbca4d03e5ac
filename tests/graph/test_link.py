"""An execution trace gets the times of its rank's timeline, by the best method that names confirm, or not at all."""

import pytest

from tests.given import Trace, rows_of, store_of
from tests.graph.recordings import add_execution_trace, compared, operation
from traceforge.store.database import Store

NAMES = [
    "aten::linear",
    "aten::addmm",
    "aten::relu",
    "aten::mul",
    "aten::sum",
    "autograd::add",
    "aten::copy_",
    "aten::t",
]
ATTEMPTS = "SELECT method, matched_count, name_agreement, is_accepted FROM graph.link ORDER BY source_id, method"


def job(*, handle_step: int | None = None, external_offset: int | None = None, names: list[str] = NAMES) -> Store:
    """One rank whose timeline and execution trace show the same eight operations."""
    trace = Trace(0).step(1, 0, 100).kernel(0, 90)
    for place, name in enumerate(names):
        ids = {
            "record_function_id": None if handle_step is None else handle_step * place + 1,
            "external_id": None if external_offset is None else place + 1 + external_offset,
        }
        trace.event("cpu_op", name, 10 * place, 10 * place + 8, **ids)
    store = store_of(trace)
    # Written as PyTorch does: callees before callers, so not in order of time.
    recorded = [operation(name, place + 1) for place, name in enumerate(NAMES)]
    add_execution_trace(store, [*reversed(recorded), operation("process", 0, 0)])
    return compared(store)


def test_handles_that_the_timeline_repeats_come_first() -> None:
    store = job(handle_step=1, external_offset=3)

    assert rows_of(store, ATTEMPTS) == [("rf_id", 8, 1.0, True)]
    assert rows_of(store, "SELECT position, event_id FROM graph.linked_node ORDER BY position")[:2] == [(0, 10), (1, 9)]


def test_without_handles_a_constant_apart_from_the_external_id_will_do() -> None:
    assert rows_of(job(external_offset=2), ATTEMPTS) == [("external_id", 8, 1.0, True), ("rf_id", 0, 0.0, False)]


def test_without_either_the_order_of_names_will_do() -> None:
    store = job()

    assert rows_of(store, ATTEMPTS)[-1] == ("sequence", 8, 1.0, True)
    assert rows_of(store, "SELECT COUNT(*) FROM graph.linked_node WHERE is_same_name") == [(8,)]


def test_a_timeline_of_another_program_is_refused_and_said_aloud() -> None:
    store = job(handle_step=1, names=["x::other", *NAMES[:0:-1]])

    assert not any(accepted for *_, accepted in rows_of(store, ATTEMPTS))
    assert rows_of(store, "SELECT COUNT(*) FROM graph.linked_node") == [(0,)]
    assert rows_of(store, "SELECT code, first_at FROM meta.issue WHERE stage = 'graph'") == [("link_refused", "rank 0")]


@pytest.mark.parametrize(("names", "volumes"), [(NAMES, 1), (["x::other", *NAMES[:0:-1]], 0), (["x::other"], 1)])
def test_what_a_trace_of_another_job_communicates_is_not_taken_for_this_one(names: list[str], volumes: int) -> None:
    # given an execution trace with an all-reduce beside a timeline: of the same job, of another one, and one that shows
    # too little of its host to tell
    trace = Trace(0).step(1, 0, 100).kernel(0, 90)
    for place, name in enumerate(names):
        trace.event("cpu_op", name, 10 * place, 10 * place + 8)
    store = store_of(trace)
    recorded = [operation(name, place + 1) for place, name in enumerate(NAMES)]
    call = {"collective_name": "all_reduce", "in_bytes": 8, "process_group_name": "dp", "group_size": 2}
    add_execution_trace(store, [*recorded, {"name": "all"}], calls=[{"position": len(NAMES), **call}])

    found = rows_of(compared(store), "SELECT call_count FROM graph.volume")

    assert len(found) == volumes


def test_the_process_tells_the_rank_where_nothing_else_does() -> None:
    traces = [Trace(rank).step(1, 0, 100).kernel(0, 90) for rank in range(2)]
    store = store_of(*traces)
    for source_id, process in enumerate(("4711", "4712")):
        store.execute("INSERT INTO raw.track (source_id, track_id, process) VALUES (?, 1, ?)", [source_id, process])
    add_execution_trace(store, [operation("a", 1)], rank=None, file={"process_id": 4712})

    known = rows_of(compared(store), "SELECT rank, rank_origin, timeline_source_id FROM graph.trace")

    assert known == [(1, "process_id", 1)]


@pytest.mark.parametrize(("first", "second"), [("et_0.json", "et_1.json"), ("a.v2.0.et", "a.v2.1.et")])
def test_the_one_number_that_tells_file_names_apart_is_the_rank(first: str, second: str) -> None:
    store = store_of(Trace(0).step(1, 0, 10), Trace(1).step(1, 0, 10))
    for name in (first, second):
        source_id = add_execution_trace(store, [operation("a", 1)], rank=None)
        store.execute("UPDATE meta.source SET path = ? WHERE source_id = ?", [f"job/{name}", source_id])

    known = rows_of(compared(store), "SELECT rank, rank_origin FROM graph.trace ORDER BY source_id")

    assert known == [(0, "file_number"), (1, "file_number")]
