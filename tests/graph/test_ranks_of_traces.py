"""Whose traces these are, and whose are absent, by what the traces say themselves."""

import pytest

from tests.given import Trace, rows_of, store_of
from tests.graph.recordings import add_execution_trace, compared
from traceforge.graph.absent_rank import ranges_said
from traceforge.store.database import Store

WORLD = {"process_group_name": "world", "size": 4, "ranks": [0, 1, 2, 3]}
STATED = "SELECT rank, stated_rank, basis, call_count FROM graph.stated_rank"


def traces(*calls: dict[str, object], group: dict[str, object] = WORLD) -> Store:
    """One call a file, the first file taken for rank 0."""
    store = store_of()
    for rank, one in enumerate(calls):
        plain = {"position": 0, "collective_name": "all_reduce", "process_group_name": "world", "group_size": 4}
        add_execution_trace(store, [{"name": "call"}], calls=[{**plain, **one}], groups=[group], rank=rank)
    return compared(store)


def test_files_swapped_between_ranks_are_told_by_their_place_in_the_group() -> None:
    # given that the file of rank 0 states place 1 of its group, and that of rank 1 place 0
    store = traces(*({"group_rank": place} for place in (1, 0, 2, 3)))

    assert rows_of(store, STATED) == [(0, 1, "group", 1), (1, 0, "group", 1)]
    issues = rows_of(
        store, "SELECT first_at, detail FROM meta.issue WHERE code = 'rank_contradicted' ORDER BY first_at"
    )
    assert [place for place, _ in issues] == ["rank0.et.json", "rank1.et.json"]
    assert "taken for rank 0, but its place in its process groups is that of rank 1" in str(issues[0][1])


def test_files_that_state_their_own_rank_are_not_doubted() -> None:
    assert rows_of(traces(*({"group_rank": place} for place in range(4))), STATED) == []


def test_a_sender_that_is_another_rank_contradicts_the_file() -> None:
    message = {"source_rank": 1, "destination_rank": 0}

    store = traces({**message, "collective_name": "send"}, {**message, "collective_name": "recv"})

    assert rows_of(store, STATED) == [(0, 1, "message", 1), (1, 0, "message", 1)]


def test_a_process_of_the_timeline_of_another_rank_contradicts_the_file() -> None:
    store = store_of(*(Trace(rank).step(1, 0, 100).kernel(0, 90) for rank in range(2)))
    for source_id, process in enumerate(("4711", "4712")):
        store.execute("INSERT INTO raw.track (source_id, track_id, process) VALUES (?, 1, ?)", [source_id, process])
    for rank, process_id in enumerate((4712, 4711)):
        add_execution_trace(store, [{"name": "a"}], rank=rank, file={"process_id": process_id})

    assert rows_of(compared(store), STATED) == [(0, 1, "process_id", None), (1, 0, "process_id", None)]


def test_members_without_a_file_are_named() -> None:
    # given files of ranks 0 and 1, in a group of eight
    store = traces({}, {}, group={"process_group_name": "world", "size": 8, "ranks": list(range(8))})

    assert rows_of(store, "SELECT rank FROM graph.absent_rank") == [(rank,) for rank in range(2, 8)]
    said = "process groups list 6 ranks without a file: 2-7. Nothing is known of them. Give their files, too"
    assert rows_of(store, "SELECT count, detail FROM meta.issue WHERE code = 'members_without_file'") == [(6, said)]


def test_a_whole_job_has_no_absent_members() -> None:
    assert rows_of(traces({}, {}, {}, {}), "SELECT rank FROM graph.absent_rank") == []


@pytest.mark.parametrize(("ranks", "said"), [([4, 5, 6, 7], "4-7"), ([1, 3, 4], "1 and 3-4")])
def test_neighbours_are_one_range(ranks: list[int], said: str) -> None:
    assert ranges_said(ranks) == said


def test_a_rank_of_which_only_a_timeline_is_there_is_not_absent() -> None:
    # given timelines of two ranks, and an execution trace of the first one
    store = store_of(*(Trace(rank).step(1, 0, 100).kernel(0, 90) for rank in range(2)))
    pair = {"process_group_name": "world", "size": 2, "ranks": [0, 1]}
    call = {"position": 0, "collective_name": "all_reduce", "process_group_name": "world", "group_size": 2}
    add_execution_trace(store, [{"name": "call"}], calls=[call], groups=[pair], rank=0)

    assert rows_of(compared(store), "SELECT rank FROM graph.absent_rank") == []


def test_calls_that_disagree_contradict_nothing() -> None:
    # given a file of rank 0 of which one call states place 1 of the group, and one place 2
    store = store_of()
    plain = {"collective_name": "all_reduce", "process_group_name": "world", "group_size": 4}
    calls = [{**plain, "position": at, "group_rank": at + 1} for at in range(2)]
    add_execution_trace(store, [{"name": "call"}] * 2, calls=calls, groups=[WORLD], rank=0)

    assert rows_of(compared(store), STATED) == []
