"""Collectives that stand behind one another on their stream, drawn by hand; and a run of them replayed."""

from dataclasses import replace

import numpy as np
import pytest

from tests.given import DEVICE, OF_MODEL, Trace, built, rows_of, store_of
from tests.stories import told
from traceforge.replay.engine import measured, replay
from traceforge.replay.model import load_model
from traceforge.store.database import Store

JOINTS = """
SELECT position, arrival_ns, end_ns, awaited_position, queued_position, behind_position
FROM graph.arrival
WHERE rank = ?
"""
PATH = "SELECT kind, start_ns, duration_ns FROM graph.critical_path ORDER BY piece"


def queue_of(*ready_ns: int) -> Store:
    """Ranks whose second collective is ready at some time, and has to wait for the first one to end at 60.

    compute      |0––20|20–––ready|                |100–110|
    collectives        |A 20–––––––60|B 60––––100|
    """
    traces = [
        Trace(rank)
        .step(1, 0, 110)
        .kernel(0, 20)
        .collective(20, 60, issue_ns=2)
        .kernel(20, ready, launch_ns=4)
        .collective(60, 100, issue_ns=6)
        .kernel(100, 110, launch_ns=8)
        for rank, ready in enumerate(ready_ns)
    ]
    return built(store_of(*traces), *OF_MODEL, "graph.critical_path")


def test_a_rank_has_reached_a_collective_that_its_stream_holds_back_when_its_work_was_done() -> None:
    store = queue_of(40, 50)

    # given it has waited for its stream, it was ready at 40 although the kernel started at 60
    assert rows_of(store, JOINTS, [0]) == [(0, 20, 60, None, None, None), (1, 40, 100, 1, 0, 0)]
    assert rows_of(store, JOINTS, [1]) == [(0, 20, 60, None, None, None), (1, 50, 100, 1, 0, 0)]


def late_on_a_free_stream() -> Store:
    """Two ranks whose second collective comes when the first has long ended.

    compute      |0––20|20–––––––––––––––––80|         |100–110|
    collectives        |A 20–––––––60|        |B 80–100|
    """
    traces = [
        Trace(rank)
        .step(1, 0, 110)
        .kernel(0, 20)
        .collective(20, 60, issue_ns=2)
        .kernel(20, 80, launch_ns=4)
        .collective(80, 100, issue_ns=6)
        .kernel(100, 110, launch_ns=8)
        for rank in range(2)
    ]
    return built(store_of(*traces), *OF_MODEL, "graph.critical_path")


def test_a_collective_that_starts_late_on_a_free_stream_was_held_up_by_nothing() -> None:
    store = late_on_a_free_stream()

    assert rows_of(store, JOINTS, [0]) == [(0, 20, 60, None, None, None), (1, 80, 100, 1, None, 0)]


@pytest.mark.parametrize(("longer", "end"), [(0, 110), (20, 110), (30, 120)])
def test_a_slower_collective_holds_up_the_next_one_of_its_stream_where_it_did_not_before(longer: int, end: int) -> None:
    model = load_model(late_on_a_free_stream(), 0)
    assert model is not None
    durations = measured(model)

    # when A takes 40 + longer: it ends at 60 + longer, and B, ready at 80, takes 20 from then on
    transfer = durations.transfer_ns + np.array([longer, 0])[None, :, None]
    slower = type(durations)(durations.before_arrival_ns, durations.before_wait_ns, transfer)

    assert replay(model, slower).end_ns.tolist() == [[end, end]]


def test_the_critical_path_goes_over_all_transfers_that_stand_behind_one_another() -> None:
    # given B, ready at 50 on the last rank, held up by A until 60
    store = queue_of(40, 50)

    assert rows_of(store, PATH) == [("work", 0, 20), ("transfer", 20, 40), ("transfer", 60, 40), ("work", 100, 10)]


def test_were_the_first_collective_faster_the_second_would_start_when_its_ranks_are_ready() -> None:
    model = load_model(queue_of(40, 50), 0)
    assert model is not None
    durations = measured(model)
    assert replay(model, durations).end_ns.tolist() == [[110, 110]]

    # when A takes 10 and not 40: it ends at 30, B starts at 50 (rank 1 is ready) and ends at 90
    transfer = durations.transfer_ns - np.array([30, 0])[None, :, None]
    faster = type(durations)(durations.before_arrival_ns, durations.before_wait_ns, transfer)

    assert replay(model, faster).end_ns.tolist() == [[100, 100]]


def test_a_run_says_where_nobody_waited_for_the_end_of_a_collective() -> None:
    # given A, whose end at 60 nobody awaits, as compute hides it
    model = load_model(late_on_a_free_stream(), 0)
    assert model is not None

    assert model.has_unfelt_ends
    assert not replace(model, awaited=np.array([[[0, 0], [1, 1]]])).has_unfelt_ends


def test_a_call_of_gloo_that_finds_no_free_thread_is_reached_when_the_host_asked_for_it() -> None:
    # rank 0  issues A at 5, B at 30; rank 1 comes to A at 60 only, so that gloo's thread is busy until 70
    # rank 0   |A 5–––––––––––––––––70|   |B 95––110|       the thread needs 25 to wake up
    # rank 1                   |A 60–70|   |B 90–110|
    ranks = [
        Trace(0).step(1, 0, 120).gloo(5, 70, issue_ns=4).gloo(95, 110, issue_ns=30),
        Trace(1).step(1, 0, 120).gloo(60, 70, issue_ns=59).gloo(90, 110, issue_ns=89),
    ]

    store = told(*ranks, stage="graph")

    # and were rank 1's thread not free, the other one might be
    arrivals = "SELECT rank, arrival_ns, queued_position, behind_position FROM graph.arrival WHERE position = 1"
    assert rows_of(store, f"{arrivals} ORDER BY rank") == [(0, 30, 0, 0), (1, 90, None, None)]


def test_what_comes_later_on_all_ranks_holds_nothing_up_on_one_whose_thread_took_it_first() -> None:
    # given an all-reduce and a broadcast that ranks issue in either order, of which the broadcast begins first
    #         |bc 10––––––––––––32|       on two threads
    #              |a-r 20–––30|
    # but for rank 2 in the last of three iterations, on one thread
    #         |a-r 12––22|bc 22–32|
    ranks = [Trace(rank) for rank in range(3)]
    for step, at in enumerate((0, 40, 80)):
        for rank, trace in enumerate(ranks):
            trace.step(step, at, at + 40).host_work("aten::mm", at, at + 4)
            if rank == 2 and step == 2:
                trace.gloo(at + 12, at + 22, issue_ns=at + 4).gloo(at + 22, at + 32, issue_ns=at + 6, op="broadcast")
                continue
            first = at + 4 + 2 * (rank % 2)
            trace.gloo(at + 20, at + 30, issue_ns=first, track_id=DEVICE)
            trace.gloo(at + 10, at + 32, issue_ns=2 * at + 10 - first, op="broadcast")

    store = told(*ranks, stage="attribute")

    behind = (
        "SELECT op, position, behind_position FROM graph.arrival AS a JOIN timeline.collective USING (collective_id)"
    )
    assert rows_of(store, f"{behind} WHERE rank = 2 AND a.iteration = 2 ORDER BY position") == [
        ("broadcast", 0, None),
        ("all_reduce", 1, None),
    ]
