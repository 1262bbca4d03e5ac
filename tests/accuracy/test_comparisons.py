"""The grid of comparisons, on pairs that once went wrong; and how it judges."""

from tests.accuracy.comparisons import Judged, judged, pairs, table


def test_other_noise_is_no_change() -> None:
    # given the same job twice; its reference durations differ by more than half a per cent
    null = next(iter(pairs(2, 1)))

    assert judged(null) == Judged("null", True, "")


def test_what_comes_and_goes_is_named_first_with_its_rank() -> None:
    # given a launch stall on rank 0 in every third iteration
    intermittent = list(pairs(0, 1))[1]

    assert judged(intermittent) == Judged("intermittent", True, "new late_launch of rank 0")


def test_the_table_says_what_was_said_instead() -> None:
    results = [Judged("null", True, ""), Judged("null", False, "cause reference"), Judged("episodic", True, "new x")]

    assert table(results) == ["| null | 1 of 2 | cause reference |", "| episodic | 1 of 1 |  |"]
