"""How much of each collective was hidden by compute, drawn by hand."""

from tests.given import Trace, rows_of
from tests.stories import told

EXPOSURE = "SELECT rank, exposed_wait_ns, exposed_transfer_ns, hidden_ns FROM timeline.exposure ORDER BY rank"


def test_waiting_and_transfer_are_hidden_where_the_rank_computes() -> None:
    # rank 0   compute |0–––––50|
    #          all-reduce  |20––––––––80|90     rank 1 arrives at 60
    # rank 1   compute |0––––––––––60|          transfer 60–90, half of it hidden
    #                                |65––––80|
    early = Trace(0).step(1, 0, 100).kernel(0, 50).collective(20, 90)
    late = Trace(1).step(1, 0, 100).kernel(0, 60).kernel(65, 80, launch_ns=61).collective(60, 90)

    store = told(early, late, stage="timeline")

    assert rows_of(store, EXPOSURE) == [(0, 10, 30, 30), (1, 0, 15, 15)]


def test_the_parts_add_up_to_the_time_on_the_rank() -> None:
    traces = [Trace(rank).step(1, 0, 300).kernel(30 * rank, 90).collective(40 + rank, 120) for rank in range(3)]
    for trace in traces:
        trace.collective(100, 140, op="allgather").kernel(110, 125)

    store = told(*traces, stage="timeline")

    unequal = """
    SELECT * FROM timeline.exposure JOIN timeline.arrival USING (run_id, collective_id, rank)
    WHERE exposed_wait_ns + exposed_transfer_ns + hidden_ns <> end_ns - arrival_ns
    """
    assert rows_of(store, unequal) == []


def test_algorithm_bandwidth_is_size_over_transfer_and_bus_bandwidth_is_by_type() -> None:
    # An all-gather of 4 ranks leaves 4 x 4000 bytes on each; 100 ns after the last arrival.
    traces = [Trace(rank).step(1, 0, 300).collective(50, 150, op="allgather") for rank in range(4)]
    for trace in traces:
        trace.collectives[0]["out_elements"] = 4_000

    store = told(*traces, stage="timeline")

    rates = "SELECT algorithm_bandwidth_bytes_per_s, bus_bandwidth_bytes_per_s FROM timeline.collective"
    ((algorithm, bus),) = rows_of(store, rates)
    assert algorithm == 16_000 / 100e-9
    assert bus == 16_000 * 0.75 / 100e-9
