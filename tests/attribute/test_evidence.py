"""What speaks for and against a finding, in words with numbers."""

from tests.attribute.jobs import traces_of
from tests.given import US, Trace, built, rows_of, store_of


def evidence_of(*traces: Trace, finding_id: int = 0) -> list[tuple[object, ...]]:
    with built(store_of(*traces), "attribute") as store:
        return rows_of(
            store,
            "SELECT direction, statement FROM attribute.evidence WHERE finding_id = ? ORDER BY direction DESC, place",
            [finding_id],
        )


def test_a_straggler_has_everything_for_it() -> None:
    # given rank 1 that is 40 us late in all of 12 iterations
    found = evidence_of(*traces_of({(i, 1): 40 * US for i in range(12)}, iterations=12))

    assert found == [
        ("for", "It stands out in 12 of 12 iterations judged, by 40.0 µs each."),
        ("for", "100 % of the delay by this cause, over all ranks, is rank 1's."),
        ("for", "If ranks were interchangeable, so much delay would gather on one of them with probability 0.0005."),
        ("for", "Rank 1 arrives last at 12 of 12 collectives."),
        ("for", "Each second of it makes ranks wait 2.0 seconds in sum; alone it would cost an iteration 40.0 µs."),
    ]


def test_one_iteration_speaks_against_itself() -> None:
    found = evidence_of(*traces_of({(0, 1): 40_000 * US}, iterations=1))

    assert found[0] == ("for", "It stands out in the one iteration judged, by 40.0 ms.")
    assert (
        "against",
        "Only one iteration was judged; whether it recurs cannot be known from this trace.",
    ) in found


def test_two_culprits_speak_against_each_other() -> None:
    # given two ranks that are both late in all iterations: each has half, and fixing one gains nothing
    late = {(i, rank): 40_000 * US for i in range(9) for rank in (0, 1)}

    found = evidence_of(*traces_of(late, iterations=9, ranks=6))

    assert ("against", "Only 50 % of the delay by this cause is rank 0's; other ranks have it too.") in found
    assert (
        "against",
        "Without it the replayed job would be only 0.0 % faster: other lateness takes its place.",
    ) in found


def test_slow_transfers_here_and_there_are_no_episode() -> None:
    transfers = [60_000 * US if i % 4 == 0 else 10 * US for i in range(12)]

    found = evidence_of(*traces_of({}, iterations=12, transfer_ns=transfers))

    assert (
        "against",
        "The affected iterations do not follow one another, as they would in an episode on the fabric.",
    ) in found


def test_a_healthy_run_has_no_evidence_to_weigh() -> None:
    assert evidence_of(*traces_of({})) == []
