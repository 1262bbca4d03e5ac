"""Who owns the lost time of the strip: what a finding blames together is one owner, as in the verdict."""

from typing import Any

from traceforge.report.timeline.owners import owners_of


def lost(rank: int | None, subject: str | None, delay_ns: int) -> dict[str, Any]:
    """Time lost in iteration 13 by slow compute."""
    mode = "synchronization_amplification"
    return {
        "iteration": 13,
        "rank": rank,
        "subject": subject,
        "mode": mode,
        "cause": "slow_compute",
        "delay_ns": delay_ns,
    }


def test_the_ranks_of_a_blamed_stage_are_one_owner() -> None:
    # given a stage of two ranks that a finding blames, and a rank of another stage
    rows = [lost(4, "stage 2", 8_000_000), lost(5, "stage 2", 7_000_000), lost(3, None, 1_000_000)]

    found = owners_of(rows, {13})

    assert [name for name, _ in found["names"]] == ["Stage 2: slow compute", "Rank 3: slow compute"]
    assert sum(us for _, owner, us in found["cells"] if owner == 0) == 15_000


def test_owners_are_ranked_by_judged_iterations_and_so_coloured_alike_in_every_strip() -> None:
    # given rank 3 that loses most in a warm-up, and rank 4 that loses most afterwards
    warm_up = {**lost(3, None, 9_000_000), "iteration": 1}
    rows = [warm_up, lost(3, None, 1_000_000), lost(4, None, 5_000_000)]

    every, of_judged = owners_of(rows, {13}), owners_of(rows[1:], {13})

    assert every["names"] == of_judged["names"]
    assert every["names"][0][0] == "Rank 4: slow compute"
    assert [1, 1, 9_000] in every["cells"]
