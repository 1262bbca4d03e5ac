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

    found = owners_of(rows)

    assert [name for name, _ in found["names"]] == ["Stage 2: slow compute", "Rank 3: slow compute"]
    assert sum(us for _, owner, us in found["cells"] if owner == 0) == 15_000
