"""Which message a kernel of several ends with, drawn by hand."""

from tests.given import US, Trace, rows_of
from tests.stories import told


def test_a_message_between_two_ranks_that_both_wait_for_others_ends_at_its_own_pace() -> None:
    # In two steps messages go 0 to 1 to 2 to 0, each rank's in one call with what it receives, and take 10.
    # rank 0   | sends A, receives C   100––––––––––––––––––––900| A was there at 100, C at 890
    # rank 1   | receives A, sends B    102–––––––––––––––––––––904| B at 890, as rank 2 is late
    # rank 2   |compute 0–––––––––––––––––––––890| sends C, receives B 890–900|
    ranks = [0, 1, 2]
    calls = {0: [("send", 1), ("recv", 2)], 1: [("recv", 0), ("send", 2)], 2: [("send", 0), ("recv", 1)]}
    traces = [Trace(rank) for rank in ranks]
    for n, (ready, ends) in enumerate([((100, 100, 100), (110, 110, 110))] * 3 + [((100, 102, 890), (900, 904, 900))]):
        for rank, trace in enumerate(traces):
            begin = 1000 * n
            trace.step(n, begin * US, (begin + 1000) * US).kernel(begin * US, (begin + ready[rank]) * US)
            trace.exchange((begin + ready[rank]) * US, (begin + ends[rank]) * US, calls[rank], ranks=ranks)

    store = told(*traces, stage="graph")

    # then A takes as long in the last step as in the others on both sides: 10 after 102
    query = """
    SELECT DISTINCT a.iteration, (a.end_ns - c.last_arrival_ns) // 1000
    FROM graph.arrival AS a
    JOIN timeline.message AS m USING (collective_id)
    JOIN timeline.collective AS c USING (collective_id)
    WHERE m.source_rank = 0
    ORDER BY ALL
    """
    assert rows_of(store, query) == [(0, 10), (1, 10), (2, 10), (3, 10)]
