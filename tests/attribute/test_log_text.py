"""What logs show beside iterations that show nothing."""

from traceforge.attribute.log_text import of_problems_beside

ROW = {"headline": "Nothing significant.", "next_step": "Send less.", "confidence": "high"}
PROBLEM = {"summary": "On host a, a NIC runs at 100.", "next_step": "Look at its cable."}


def test_a_problem_that_is_always_there_is_told_before_that_nothing_stands_out() -> None:
    told = of_problems_beside([PROBLEM], {"state": "nothing_significant"}, ROW)

    assert told == {
        "headline": "The logs show a problem that may slow all iterations alike: On host a, a NIC runs at 100. In the "
        "iterations: Nothing significant.",
        "next_step": "Look at its cable.",
        "confidence": "low",
    }


def test_of_several_problems_the_first_is_told() -> None:
    told = of_problems_beside([PROBLEM, {"summary": "b", "next_step": "c"}], {"state": "uncertain"}, ROW)

    assert str(told["headline"]).startswith("The logs show 2 problems, the first one that may slow")


def test_a_finding_speaks_for_itself_and_so_do_logs_without_a_problem() -> None:
    assert of_problems_beside([PROBLEM], {"state": "finding"}, ROW) == {}
    assert of_problems_beside([], {"state": "nothing_significant"}, ROW) == {}
