"""What flight recorder dumps change in the verdict of a run that has a timeline, or nothing else."""

from traceforge.attribute.dump_text import of_dumps_without_rank, of_hang_beside

ROW = {"headline": "Rank 2 is slow.", "explanation": "The 8 iterations take 5 ms.", "next_step": "Look at rank 2."}
HANG = {"hang_summary": "Rank 3 never made call 7.", "hang_detail": "It made 6.", "hang_next_step": "See its stack."}


def test_a_hang_is_told_before_what_the_timeline_shows() -> None:
    told = of_hang_beside({"state": "finding", "is_sure_hang": True, **HANG}, ROW)

    assert told["headline"] == "The job hangs: Rank 3 never made call 7. In the timeline: Rank 2 is slow."
    assert told["next_step"] == "See its stack. Look at rank 2."


def test_what_may_be_a_moment_of_a_running_job_leaves_the_verdict_alone() -> None:
    for is_sure in (False, None):
        assert of_hang_beside({"state": "finding", "is_sure_hang": is_sure, **HANG}, ROW) == {}


def test_a_hang_without_a_timeline_is_the_verdict_itself() -> None:
    assert of_hang_beside({"state": "hang", "is_sure_hang": True, **HANG}, ROW) == {}


def test_dumps_whose_rank_is_unknown_ask_for_names() -> None:
    told = of_dumps_without_rank({"state": "no_timeline", "dumps": 8})

    assert "which rank it is of" in str(told["headline"])
    assert "--rank-regex" in str(told["next_step"])
    assert of_dumps_without_rank({"state": "no_timeline", "dumps": None}) == {}
