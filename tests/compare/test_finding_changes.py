"""What becomes of a finding from one run to the next, by the 95 % intervals of its cost."""

import pytest

from traceforge.compare.finding_changes import Turn, _turn


def cost(low_ns: int | None, high_ns: int | None) -> dict[str, int | None]:
    return {"low_ns": low_ns, "high_ns": high_ns}


@pytest.mark.parametrize(
    ("before", "after", "turn"),
    [
        (None, cost(8, 12), "new"),
        (cost(8, 12), None, "gone"),
        (cost(8, 12), cost(13, 17), "grown"),
        (cost(8, 12), cost(10, 14), "same"),  # the intervals meet: it may be as large as before
        (cost(10, 14), cost(8, 12), "same"),
        (cost(13, 17), cost(8, 12), "shrunk"),
        (cost(8, 12), cost(None, None), "same"),  # of fewer than three iterations nothing is known
    ],
)
def test_a_finding_has_changed_only_if_the_intervals_do_not_meet(
    before: dict[str, int | None] | None, after: dict[str, int | None] | None, turn: Turn
) -> None:
    assert _turn(before, after) == turn
