"""Where a finding shows best: at the call before which the blamed rank works, not at one before which it waits, too."""

from dataclasses import replace

import polars as pl

from tests.report.test_next_steps import FINDING
from traceforge.report.job import Iteration
from traceforge.report.timeline.moments import detailed_iterations, moments_of, normal_of

SEGMENTS = {"iteration": pl.Int32, "rank": pl.Int32, "phase": pl.String, "start_ns": pl.Int64, "duration_ns": pl.Int64}
ARRIVALS = (
    "iteration", "collective_id", "communicator_id", "op", "rank", "arrival_ns", "last_rank", "below_resolution"
)  # fmt: skip


def message(
    number: int, early: tuple[int, int], late: tuple[int, int], op: str = "send_recv"
) -> list[tuple[object, ...]]:
    """A call of two ranks, each with when it arrives; the second comes last."""
    return [(3, number, 0, op, rank, at_ns, late[0], False) for rank, at_ns in (early, late)]


def test_a_stage_is_shown_where_it_works_before_a_message_not_where_the_pipeline_fills() -> None:
    # given rank 2, the third stage, ns since an iteration that begins at 1,000
    #         0         50   62
    # rank 2  |wait······|work|
    # rank 3  waits for it from 0 to 51 in message 7; rank 1 from 52 to 62 in message 8
    segments = pl.DataFrame([(3, 2, "wait", 0, 50), (3, 2, "compute", 50, 12)], schema=SEGMENTS, orient="row")
    rows = [*message(7, (3, 1_000), (2, 1_051)), *message(8, (1, 1_052), (2, 1_062))]
    arrivals = pl.DataFrame(rows, schema=ARRIVALS, orient="row")
    finding = replace(FINDING, moment_iteration=3, moment_rank=2)

    # when its moment is sought
    (moment,) = moments_of([finding], arrivals, segments, {(3, 2): 1_000})

    # then it is the message before which it works for 10 ns, not that for which it is 51 ns late
    assert (moment.collective_id, moment.span) == (8, (1_052, 1_062))
    assert moment.awaited == ("a message", "rank 1")


def test_a_call_of_many_ranks_is_no_message_whatever_kernel_moves_it() -> None:
    segments = pl.DataFrame([(3, 2, "compute", 0, 60)], schema=SEGMENTS, orient="row")
    rows = [*message(7, (0, 1_010), (2, 1_060)), *message(7, (1, 1_020), (2, 1_060))[:1]]
    arrivals = pl.DataFrame(rows, schema=ARRIVALS, orient="row")

    (moment,) = moments_of([replace(FINDING, moment_iteration=3, moment_rank=2)], arrivals, segments, {(3, 2): 1_000})

    assert moment.span == (1_015, 1_060)
    assert moment.awaited == ("a collective", "the median of the other ranks")


def test_what_makes_a_rank_late_for_the_first_call_of_the_next_iteration_shows_in_its_own() -> None:
    # given iterations that begin with a call, ns since one that begins at 1,000; rank 2 works on for 40
    #         0          60        100
    # rank 2  |compute ––––––––––––|call 8, of the next iteration
    # rank 1  |compute ––|waits for it
    segments = pl.DataFrame([(3, 2, "compute", 0, 100)], schema=SEGMENTS, orient="row")
    rows = [(4, *row[1:]) for number in (8, 9) for row in message(number, (1, 1_060), (2, 1_100), "all_reduce")]
    arrivals = pl.DataFrame(rows, schema=ARRIVALS, orient="row")

    (moment,) = moments_of([replace(FINDING, moment_iteration=3, moment_rank=2)], arrivals, segments, {(3, 2): 1_000})

    assert (moment.iteration, moment.collective_id, moment.span) == (3, 8, (1_060, 1_100))


def test_a_slow_link_is_shown_by_a_message_between_its_ranks() -> None:
    # given a message between ranks 4 and 5, one between 3 and 4, and a reduction of all, which takes longest
    rows = [
        (3, number, 0, "send_recv", rank, 1_000, 1_000, 1_000 + took_ns, took_ns)
        for number, ranks, took_ns in ((7, (4, 5), 60), (8, (3, 4), 50), (9, (3, 4, 5), 90))
        for rank in ranks
    ]
    names = ("iteration", "collective_id", "communicator_id", "op", "rank", "arrival_ns", "last_arrival_ns", "end_ns")
    arrivals = pl.DataFrame(rows, schema=(*names, "transfer_ns"), orient="row")
    link = replace(FINDING, subject_kind="link", subject="3, 4", moment_iteration=3, moment_rank=None)

    (moment,) = moments_of([link], arrivals, pl.DataFrame(schema=SEGMENTS), {})
    (of_hosts,) = moments_of([replace(link, subject="host0, host1")], arrivals, pl.DataFrame(schema=SEGMENTS), {})

    assert (moment.collective_id, moment.ranks, moment.span) == (8, (3, 4), (1_000, 1_050))
    assert of_hosts.collective_id == 9


def test_the_normal_iteration_is_none_that_the_finding_slows() -> None:
    # given ten iterations, the last seven of them slow
    used = [
        Iteration(number, 0, 100 + number + (50 if number >= 3 else 0), is_warmup=False, is_partial=False)
        for number in range(10)
    ]
    slow = replace(FINDING, first_iteration=3, last_iteration=9, confidence="high")

    # then the one to compare with is the middle of the first three; a mere hint slows none
    normal, anyhow = normal_of([slow], used), normal_of([replace(slow, confidence="low")], used)
    assert normal is not None
    assert anyhow is not None
    assert (normal.number, anyhow.number) == (1, 4)


def test_why_an_iteration_is_shown_in_detail_reads_as_a_list() -> None:
    # given two iterations, the first of which is the moment of a hint, the worst and, of two, the one in the middle
    used = [Iteration(number, 0, 100 - number, is_warmup=False, is_partial=False) for number in range(2)]
    hint = replace(FINDING, confidence="low", moment_iteration=0)

    assert detailed_iterations([hint], used)[0] == "a hint, median and worst"
