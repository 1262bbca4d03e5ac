"""What speaks for and against a finding, in words with numbers."""

from tests.attribute.jobs import STALLS, traces_of
from tests.given import US, Trace, rows_of
from tests.stories import told


def evidence_of(*traces: Trace, finding_id: int = 0) -> list[tuple[object, ...]]:
    with told(*traces) as store:
        return rows_of(
            store,
            "SELECT direction, statement FROM attribute.evidence WHERE finding_id = ? ORDER BY direction DESC, place",
            [finding_id],
        )


def test_a_straggler_has_everything_for_it() -> None:
    # given rank 1 that is 40 us late in all of 12 iterations
    found = evidence_of(*traces_of({(i, 1): 40 * US for i in range(12)}, iterations=12))

    assert found == [
        ("for", "Rank 1 makes 2 calls of gemm an iteration, the median rank 1: 40.0 µs more."),
        ("for", "It stands out in 12 of 12 iterations judged, by 40.0 µs each."),
        ("for", "100 % of the delay by this cause, over all ranks, is rank 1's."),
        # 3 ^ 12 orders, and three ranks that it could be
        ("for", "Chance explanation: p < 0.0001."),
        ("for", "Rank 1 arrives last at 12 of 12 collectives."),
        (
            "for",
            (
                "Each second lost here costs 2.0 rank-seconds of waiting; "
                "with this delay alone, an iteration would take 40.0 µs longer."
            ),
        ),
    ]


def test_one_iteration_speaks_against_itself() -> None:
    found = evidence_of(*traces_of({(0, 1): 40_000 * US}, iterations=1))

    assert ("for", "It stands out in the one iteration judged, by 40.0 ms.") in found
    assert (
        "against",
        "Only one iteration was judged; whether it recurs cannot be known from this trace.",
    ) in found


def test_two_culprits_alike_stand_together() -> None:
    # given two ranks that are both late in all iterations: only mending both gains anything
    late = {(i, rank): 40_000 * US for i in range(9) for rank in (0, 1)}

    found = evidence_of(*traces_of(late, iterations=9, ranks=6))

    assert ("for", "100 % of the delay by this cause, over all ranks, is these ranks'.") in found
    assert ("for", "One of these ranks arrives last at 9 of 9 collectives.") in found


def test_a_delay_that_others_have_too_speaks_against_one_rank() -> None:
    # given rank 0 that is 40 us late in every second of 30 iterations, and the four others in turn by 30 in the rest
    late = {(i, 0): 40 * US for i in range(0, 30, 2)} | {(i, 1 + i // 2 % 4): 30 * US for i in range(1, 30, 2)}

    found = evidence_of(*traces_of(late, iterations=30, ranks=5))

    assert any("other ranks have it too" in str(statement) for direction, statement in found if direction == "against")


def test_a_finding_of_several_causes_says_what_it_consists_of() -> None:
    # given rank 1 that loses 160 us of 3 ms in each iteration, now by input, now by its allocator, now by a checkpoint
    causes = ("input_stall", "allocator_stall", "checkpoint_pause")
    traces, lost = [Trace(rank) for rank in range(8)], 160 * US
    for i in range(18):
        now = i * (lost + 3_010 * US)
        end = now + lost + 3_010 * US
        for trace in traces:
            begin = now + (lost if trace.rank == 1 else 0)
            trace.step(i, now, end)
            if trace.rank == 1:
                STALLS[causes[i % 3]](trace, now, begin)
            trace.kernel(begin, begin + 3_000 * US).collective(begin + 3_000 * US, end)

    assert (
        "for",
        "In an iteration it consists of: allocator stall 0.1 ms, checkpoint pause 0.1 ms, input stall 0.1 ms.",
    ) in evidence_of(*traces)


def test_two_findings_say_what_mending_both_gains() -> None:
    # given rank 0 that loses 40 us of 110 by input in all of 12 iterations, and rank 1 that loses 30 by its allocator
    #   |lost 40|compute 100·|t 10|    without both an iteration takes 110 in the place of 150: 36.4 % faster
    traces = [Trace(rank) for rank in range(4)]
    for i in range(12):
        now = 150 * US * i
        for trace in traces:
            lost = {0: 40 * US, 1: 30 * US}.get(trace.rank, 0)
            trace.step(i, now, now + 150 * US)
            if lost:
                STALLS["input_stall" if trace.rank == 0 else "allocator_stall"](trace, now, now + lost)
            trace.kernel(now + lost, now + lost + 100 * US).collective(now + lost + 100 * US, now + 150 * US)

    assert (
        "for",
        "Without all findings of this run together the replayed job would be 36.4 % faster.",
    ) in evidence_of(*traces)


def test_slow_transfers_here_and_there_are_no_episode() -> None:
    transfers = [60_000 * US if i % 4 == 0 else 10 * US for i in range(12)]

    found = evidence_of(*traces_of({}, iterations=12, transfer_ns=transfers))

    assert (
        "against",
        "The affected iterations do not follow one another, as they would in an episode on the fabric.",
    ) in found


def test_a_healthy_run_has_no_evidence_to_weigh() -> None:
    assert evidence_of(*traces_of({})) == []


def test_collectives_of_groups_that_a_rank_is_no_member_of_say_nothing_about_it() -> None:
    # given two groups of three ranks with an all-reduce of their own each; rank 1 is 40 us late in all of 12 iterations
    groups = {"a": [0, 1, 2], "b": [3, 4, 5]}
    traces = [Trace(rank) for rank in range(6)]
    for group, members in groups.items():
        for trace in (traces[rank] for rank in members):
            for i in range(12):
                now = i * 150 * US
                arrival = now + (140 if trace.rank == 1 else 100) * US
                trace.step(i, now, now + 150 * US).kernel(now, arrival)
                trace.collective(arrival, now + 150 * US, ranks=members, group=group)

    found = evidence_of(*traces)

    assert ("for", "Rank 1 arrives last at 12 of 12 collectives.") in found
