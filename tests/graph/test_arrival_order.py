"""Calls whose orders of issue contradict: senders stand where they are ready, receives where they meet.

rank 0   |compute |A 10–11|······|compute|C 30–31|
rank 1   |recv A ··· 0–11|compute 11–20|send B 20····················61|       B and C run side by side
                                       |compute 20–28|recv C 28–31|
         |recv D, posted at 12 ··········································· 81|
rank 2   |pause 0–––––––––––––––––––––––––––––––––––––––––60|recv B 60–61|compute|send D 80–81|
"""

import polars as pl

from tests.given import Trace, rows_of
from tests.stories import told
from traceforge.graph.arrival_order import in_usual_order

# Call of rank 1 with which messages go: by sender and receiver.
MESSAGES = """
SELECT CONCAT(m.source_rank, '-', m.destination_rank), a.position, a.arrival_ns
FROM graph.arrival AS a
JOIN timeline.message AS m USING (run_id, collective_id)
WHERE a.rank = 1
ORDER BY a.position
"""


def test_a_send_that_its_receiver_is_late_for_is_not_ready_later_for_what_its_rank_receives_meanwhile() -> None:
    ranks = range(3)
    first, second, third = (Trace(rank).step(1, 0, 100) for rank in ranks)
    first.kernel(0, 10).exchange(10, 11, [("send", 1)], ranks=ranks, group="pp01", issue_ns=7)
    first.kernel(12, 30).exchange(30, 31, [("send", 1)], ranks=ranks, group="pp01", issue_ns=20)
    second.exchange(1, 11, [("recv", 0)], ranks=ranks, group="pp01", issue_ns=1).kernel(11, 20)
    second.exchange(12, 81, [("recv", 2)], ranks=ranks, group="back", issue_ns=12)
    second.exchange(20, 61, [("send", 2)], ranks=ranks, group="pp12", issue_ns=18).kernel(20, 28)
    second.exchange(28, 31, [("recv", 0)], ranks=ranks, group="pp01", issue_ns=26).kernel(31, 59)
    third.exchange(60, 61, [("recv", 1)], ranks=ranks, group="pp12", issue_ns=50).kernel(61, 80)
    third.exchange(80, 81, [("send", 1)], ranks=ranks, group="back", issue_ns=70)

    found = rows_of(told(first, second, third, stage="graph"), MESSAGES)

    # B was ready at 20, as was C at 28: it meets last but one, and holds nothing up that comes before
    assert [(between, arrival_ns) for between, _, arrival_ns in found] == [
        ("0-1", 1), ("1-2", 20), ("0-1", 28), ("2-1", 28),
    ]  # fmt: skip


def ordered(*calls: tuple[int, int, bool, int, int]) -> dict[int, list[int]]:
    """Calls of each rank in the usual order.

    Args:
        calls: in order of issue: rank, collective, whether it receives, when it is ready, when both are.
    """
    names = ("rank", "collective_id", "is_receiver", "arrival_ns", "last_arrival_ns")
    frame = pl.DataFrame(calls, schema=names, orient="row").with_columns(
        run_id=0, iteration=1, role=pl.col("rank"), start_ns=0, ahead_ns=0, behind=pl.lit(None, pl.Int64)
    )
    found = in_usual_order(frame, "role")
    return {rank: own["collective_id"].to_list() for (rank,), own in found.group_by("rank", maintain_order=True)}


def test_calls_that_ranks_put_around_in_a_circle_stand_in_the_order_in_which_they_meet() -> None:
    # given ranks that both send (7 at 1, 8 at 2) before they receive: 7 meets at 10, 8 at 9
    sends_first = (0, 7, False, 1, 10), (0, 8, True, 9, 9), (1, 8, False, 2, 9), (1, 7, True, 10, 10)

    assert ordered(*sends_first) == {0: [8, 7], 1: [8, 7]}


def test_what_stands_in_a_circle_does_not_move_what_comes_before_or_behind() -> None:
    # given such a pair, and a call before it and one behind it that meet late and early
    before, behind = ((0, 5, False, 0, 50), (1, 5, True, 0, 50)), ((0, 9, False, 60, 60), (1, 9, True, 55, 60))
    pair = (0, 7, False, 51, 58), (0, 8, True, 57, 57), (1, 8, False, 52, 57), (1, 7, True, 58, 58)

    assert ordered(*before, *pair, *behind) == {0: [5, 8, 7, 9], 1: [5, 8, 7, 9]}


def test_a_send_is_not_ready_before_what_its_stream_does_first() -> None:
    # given rank 1, whose send 8 is ready at 3, behind a receive of the same stream that meets at 6
    names = ("rank", "collective_id", "is_receiver", "arrival_ns", "ahead_ns", "last_arrival_ns", "behind")
    rows = [
        (0, 7, False, 6, 0, 6, None),
        (1, 7, True, 2, 0, 6, None),
        (1, 8, False, 7, 4, 7, 7),
        (2, 8, True, 6, 0, 7, None),
    ]
    frame = pl.DataFrame(rows, schema=names, orient="row").with_columns(
        run_id=0, iteration=1, role=pl.col("rank"), start_ns=0
    )

    assert in_usual_order(frame, "role")["collective_id"].to_list() == [7, 7, 8, 8]
