"""Who holds up a hung job, told from flight recorder dumps of jobs whose trouble is known."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.fabric.dumps import Groups, Recorder, recorders
from tests.fabric.logs import add_dumps, fabric_of_folder
from tests.given import built
from traceforge.store.database import Store

WORLD: Groups = {"0": [0, 1, 2, 3], "5": [0, 1], "6": [2, 3], "9": [0, 2], "10": [1, 3]}


def hangs(ranks: Iterable[Recorder], *, without: Iterable[int] = ()) -> list[dict[str, Any]]:
    with fabric_of_dumps(ranks, without=without, asked="fabric.hang") as store:
        return store.query("SELECT * FROM fabric.hang ORDER BY place").to_dicts()


def fabric_of_dumps(ranks: Iterable[Recorder], *, without: Iterable[int] = (), asked: str = "fabric") -> Store:
    store = Store(None, threads=1, is_kept=False)
    add_dumps(store, *(rank.dump() for rank in ranks if rank.rank not in set(without)))
    return built(store, *asked.split())


def tensor_hang() -> list[Recorder]:
    """Rank 1 does not make call 8 of group 5; rank 0 waits in it, and the others wait for rank 0 and 1."""
    ranks = recorders(WORLD)
    ranks[0].got("5", 8, 7).calls("5", 8, "all_gather", line=31)
    ranks[1].got("5", 7, 7).calls("5", 7, state="completed", line=12)
    for rank, group in ((2, "9"), (3, "10")):
        ranks[rank].got(group, 4, 3).calls(group, 4)
    ranks[0].got("9", 3, 3)
    ranks[1].got("10", 3, 3)
    return ranks


def test_a_rank_that_never_made_the_call_is_named_with_the_call_and_its_frames() -> None:
    (hang,) = hangs(tensor_hang())

    assert (hang["kind"], hang["ranks"], hang["waiting_ranks"]) == ("absent", [1], [0, 2, 3])
    assert hang["summary"].startswith("Rank 1 never made the call that 1 rank waits in: all_gather 8 ([8] Float)")
    assert hang["summary"].endswith("(ranks 0\N{EN DASH}1); because of that, 2 more wait in other calls.")
    assert hang["stack"].splitlines()[1] == "step at train.py:31"
    assert "made in step at train.py:31" in hang["detail"]
    assert "The last call of rank 1 is all_reduce 7" in hang["detail"]
    assert "made in step at train.py:12" in hang["detail"]


def test_the_earliest_blocked_call_comes_first() -> None:
    # given rank 0, that waits in group 5 and, later in its program, in group 9: rank 1 is absent in the first,
    # and rank 2, which stopped as well, in the second
    ranks = recorders(WORLD)
    ranks[0].got("5", 8, 7).got("9", 4, 3).calls("9", 4).calls("5", 8)
    ranks[1].got("5", 7, 7)
    ranks[2].got("9", 3, 3)

    (hang,) = hangs(ranks)

    assert (hang["kind"], hang["group_id"], hang["ranks"]) == ("absent", 3, [2])


def test_a_rank_that_waits_itself_is_a_victim() -> None:
    # given a chain: 3 waits for 2 in group 6, 2 waits for 0 in group 9, 0 waits for 1 in group 5
    ranks = recorders(WORLD)
    ranks[3].got("6", 5, 4).calls("6", 5)
    ranks[2].got("6", 4, 4).got("9", 2, 1).calls("9", 2)
    ranks[0].got("9", 1, 1).got("5", 8, 7).calls("5", 8)
    ranks[1].got("5", 7, 7)

    (hang,) = hangs(ranks)

    assert (hang["ranks"], hang["waiting_ranks"], hang["sequence"]) == ([1], [0, 2, 3], 8)
    assert "(ranks 0\N{EN DASH}1)" in hang["summary"]


def test_a_device_that_does_not_end_what_others_ended_is_stuck() -> None:
    ranks = recorders(WORLD)
    for rank in (0, 1, 2):
        ranks[rank].got("0", 9, 8).calls("0", 9)
    ranks[3].got("0", 9, 6).calls("0", 7).calls("0", 8).calls("0", 9)

    (hang,) = hangs(ranks)

    assert (hang["kind"], hang["ranks"], hang["sequence"]) == ("stuck", [3], 7)
    assert hang["waiting_ranks"] == [0, 1, 2]


def test_the_root_of_a_broadcast_ends_early_and_accuses_nobody() -> None:
    # given rank 0, whose broadcast is sent, rank 1, which waits for it, and rank 3, which never came
    ranks = recorders(WORLD)
    ranks[0].got("0", 9, 9)
    for rank in (1, 2):
        ranks[rank].got("0", 9, 8).calls("0", 9, "broadcast")
    ranks[3].got("0", 8, 8)

    (hang,) = hangs(ranks)

    assert (hang["kind"], hang["ranks"]) == ("absent", [3])


@pytest.mark.parametrize(
    ("op", "size", "words"), [("all_gather", 8, "calls all_gather"), ("all_reduce", 9, "[9] Float")]
)
def test_ranks_that_make_different_calls_are_named_with_both(op: str, size: int, words: str) -> None:
    ranks = recorders(WORLD)
    for rank in ranks:
        odd = rank.rank == 2
        rank.got("0", 4, 3).calls("0", 4, op if odd else "all_reduce", size if odd else 8)

    (hang,) = hangs(ranks)

    assert (hang["kind"], hang["ranks"], hang["sequence"]) == ("mismatch", [2], 4)
    assert words in hang["summary"]
    assert "where rank 0 calls all_reduce ([8] Float)" in hang["summary"]


def test_an_all_to_all_may_send_another_size_on_every_rank() -> None:
    ranks = recorders(WORLD)
    for rank in ranks:
        rank.got("0", 4, 3).calls("0", 4, "all_to_all", 8 + rank.rank)

    (hang,) = hangs(ranks)

    assert hang["kind"] == "transfer"


def test_ranks_that_wait_for_each_other_in_two_groups_made_calls_in_different_order() -> None:
    groups: Groups = {"0": [0, 1], "4": [0, 1]}
    ranks = recorders(groups)
    ranks[0].got("0", 5, 4).got("4", 2, 2).calls("0", 5)
    ranks[1].got("0", 4, 4).got("4", 3, 2).calls("4", 3)

    (hang,) = hangs(ranks)

    assert (hang["kind"], hang["ranks"]) == ("order", [0, 1])
    assert "rank 0 in all_reduce 5" in hang["summary"]
    assert "rank 1 in all_reduce 3" in hang["summary"]


def test_where_everybody_is_in_the_same_call_nobody_is_accused() -> None:
    ranks = recorders(WORLD)
    for rank in ranks:
        rank.got("0", 4, 3).calls("0", 4)

    (hang,) = hangs(ranks)

    assert (hang["kind"], hang["ranks"], hang["waiting_ranks"]) == ("transfer", [], [0, 1, 2, 3])


def test_where_no_call_waits_nothing_hangs() -> None:
    ranks = recorders(WORLD)
    for rank in ranks:
        rank.got("0", 4, 4).calls("0", 4, state="completed")

    (hang,) = hangs(ranks)

    assert hang["kind"] == "none"
    assert "the dumps of all 4 ranks" in hang["summary"]


def test_where_a_dump_is_missing_silence_proves_nothing() -> None:
    (hang,) = hangs([rank.got("0", 4, 4) for rank in recorders(WORLD)], without=[3])

    assert (hang["kind"], hang["without_dump"]) == ("unknown", [3])
    assert "rank 3 of 4 ranks has no dump" in hang["summary"]


def test_whose_dump_is_missing_is_said_where_it_decides() -> None:
    ranks = recorders(WORLD)
    for rank in ranks:
        rank.got("0", 4, 3).calls("0", 4)

    (hang,) = hangs(ranks, without=[3])

    assert (hang["kind"], hang["ranks"], hang["without_dump"]) == ("unknown", [], [3])
    assert "Ranks 0\N{EN DASH}2 wait, first in all_reduce 4" in hang["detail"]


def test_one_name_is_another_group_where_it_has_other_members() -> None:
    # given that name 5 is the group of 0 and 1, far ahead, and also that of 2 and 3, where rank 3 is absent
    ranks = [*recorders({"5": [0, 1]}), *(Recorder(rank, {"5": [2, 3]}) for rank in (2, 3))]
    ranks[0].got("5", 90, 90)
    ranks[1].got("5", 90, 90)
    ranks[2].got("5", 8, 7).calls("5", 8)
    ranks[3].got("5", 7, 7)

    (hang,) = hangs(ranks)

    assert (hang["ranks"], hang["waiting_ranks"]) == ([3], [2])


def of_all(rank: int, made: int, *, size: int = 8) -> dict[str, object]:
    """A dump as PyTorch 2.3 wrote it: calls of the group of all ranks up to one number, and no members."""
    call = {"pg_id": 0, "profiling_name": "nccl:all_reduce", "time_created_ns": 1, "time_discovered_started_ns": 1}
    calls = [
        {**call, "record_id": number, "seq_id": number, "state": "completed" if number < 13 else "started"}
        for number in range(11, made + 1)
    ]
    sizes = [{"input_sizes": [[size if call["seq_id"] == 13 else 8]], **call} for call in calls]
    return {"version": "1.1", "entries": sizes}


def hangs_of(*dumps: dict[str, object]) -> dict[str, Any]:
    store = Store(None, threads=1, is_kept=False)
    add_dumps(store, *dumps)
    with built(store, "fabric.hang"):
        return store.query("SELECT * FROM fabric.hang ORDER BY place").to_dicts()[0]


def test_dumps_that_name_no_group_tell_who_never_made_a_call_of_all_ranks() -> None:
    hang = hangs_of(of_all(0, 13), of_all(1, 13), of_all(2, 12), of_all(3, 13))

    assert (hang["kind"], hang["ranks"], hang["waiting_ranks"]) == ("absent", [2], [0, 1, 3])


def test_dumps_that_name_no_group_tell_calls_that_do_not_match() -> None:
    hang = hangs_of(of_all(0, 13), of_all(1, 13), of_all(2, 13), of_all(3, 13, size=7))

    assert (hang["kind"], hang["ranks"], hang["waiting_ranks"]) == ("mismatch", [3], [0, 1, 2])


def test_where_no_dump_states_members_a_dump_may_be_missing() -> None:
    hang = hangs_of(*(of_all(rank, 13) for rank in range(3)))

    assert (hang["kind"], hang["ranks"], hang["waiting_ranks"]) == ("unknown", [], [0, 1, 2])
    assert "do not state who takes part; all 3 ranks with a dump do" in hang["summary"]


def test_messages_count_by_themselves_and_lead_to_their_other_end() -> None:
    # given a pipeline in which rank 0's counter of its own messages is ahead, and rank 1 is silent
    ranks = recorders({"0": [0, 1, 2], "3": [1, 2]})
    ranks[0].got("0", 812, 811).sends("0", "send 0->1")
    ranks[1].got("0", 77, 77)
    ranks[2].got("0", 40, 39).sends("0", "recv 2<-1")

    (hang,) = hangs(ranks)

    assert (hang["kind"], hang["ranks"], hang["waiting_ranks"]) == ("absent", [1], [0, 2])


def test_a_file_name_that_contradicts_the_groups_is_not_believed(tmp_path: Path) -> None:
    # given the dump of rank 2 under the name of rank 1
    ranks = recorders({"0": [0, 1, 2], "4": [0, 2]})
    with fabric_of_dumps([ranks[0].got("0", 1, 1), ranks[2].got("0", 1, 1)]) as store:
        found = store.query("SELECT rank FROM fabric.hang_dump ORDER BY rank").to_series().to_list()
        issues = store.query("SELECT code FROM meta.issue WHERE stage = 'fabric'").to_series().to_list()

    assert found == [0]
    assert issues == ["hang_rank_is_no_member"]


def test_a_dump_in_which_no_call_waits_is_used() -> None:
    # given rank 1, which is behind in the group and waits for nothing
    ranks = recorders({"0": [0, 1]})
    dumps = [ranks[0].got("0", 2, 1).calls("0", 2), ranks[1].got("0", 1, 1)]
    with fabric_of_dumps(dumps, asked="fabric.hang align.file") as store:
        assert store.query("SELECT ranks FROM fabric.hang").rows() == [([1],)]
        assert store.query("SELECT is_used, reason FROM align.file").rows() == [(True, None)] * 2


KNOWN = {"gpu_error_1st": [12, 14], "lock_gil_1st": [9, 14]}


def corpus(name: str) -> Path:
    folder = Path(os.environ.get("TRACEFORGE_CORPUS", "/nowhere"), "traces/flight_recorder", name, "dumps")
    return folder if folder.is_dir() else pytest.skip("needs TRACEFORGE_CORPUS")


@pytest.mark.parametrize("name", KNOWN)
def test_injected_ranks_of_recorded_hangs_are_found_and_no_other(name: str) -> None:
    with fabric_of_folder(corpus(name)) as store:
        found = store.query("SELECT ranks, waiting_ranks FROM fabric.hang").rows()

    assert found == [(KNOWN[name], [rank for rank in range(16) if rank not in KNOWN[name]])]


@pytest.mark.parametrize("name", KNOWN)
def test_without_the_dumps_of_the_guilty_the_others_are_not_accused(name: str, tmp_path: Path) -> None:
    for file in corpus(name).iterdir():
        if int(file.name.removeprefix("_dump_")) not in KNOWN[name]:
            shutil.copy(file, tmp_path)

    with fabric_of_folder(tmp_path, asked="fabric.hang") as store:
        found = store.query("SELECT kind, ranks, without_dump FROM fabric.hang").rows()

    assert found == [("unknown", [], KNOWN[name])]
