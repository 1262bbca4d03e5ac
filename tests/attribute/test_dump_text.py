"""What flight recorder dumps change in the verdict of a run that has a timeline, or nothing else."""

from tests.fabric.dumps import recorders
from tests.fabric.logs import add_dumps
from tests.given import built
from traceforge.attribute.dump_text import of_dumps_without_rank, of_hang_beside
from traceforge.store.database import Store

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


def test_a_hang_is_sure_only_where_the_dumps_of_all_ranks_are_there() -> None:
    # given ranks 0 and 2, that wait in call 5, which rank 1 never made; and the same without the dump of rank 2
    def confidence(*shown: int) -> list[tuple[object, ...]]:
        ranks = recorders({"0": [0, 1, 2]})
        for rank in ranks:
            stopped = rank.rank == 1
            rank.got("0", 4 if stopped else 5, 4).calls("0", 4 if stopped else 5, state="scheduled")
        ranks[1].entries[0]["state"] = "completed"
        store = Store(None, threads=1, is_kept=False)
        add_dumps(store, *(ranks[rank].dump() for rank in shown))
        built(store, "attribute.verdict_state")
        return store.rows("SELECT state, confidence, is_sure_hang FROM attribute.verdict_state")

    assert confidence(0, 1, 2) == [("hang", "high", True)]
    assert confidence(0, 1) == [("hang", "medium", False)]
