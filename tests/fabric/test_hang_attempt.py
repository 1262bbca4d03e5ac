"""Which dumps are used where a folder holds several attempts or jobs, or names that say little."""

import pickle
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from tests.fabric.dumps import Recorder, recorders
from tests.fabric.logs import fabric_of_folder
from traceforge.fabric.hang_attempt import RankDump, of_latest_attempt


def used(*files: tuple[str, int, int]) -> list[str]:
    """Paths of the dumps used, given (path, rank, latest call)."""
    dumps = [RankDump(number, PurePosixPath(path), rank, at) for number, (path, rank, at) in enumerate(files)]
    kept = of_latest_attempt(dumps)
    return [str(dump.path) for dump in dumps if dump.source_id in kept]


def test_an_earlier_attempt_fills_no_gap_of_the_last() -> None:
    # given that rank 1's dump of the second attempt is lost
    files = [("job/a0/dump_0", 0, 10), ("job/a0/dump_1", 1, 12), ("job/a1/dump_0", 0, 90)]

    assert used(*files) == ["job/a1/dump_0"]


def test_folders_of_hosts_belong_together() -> None:
    files = [("job/node0/dump_0", 0, 10), ("job/node1/dump_1", 1, 12)]

    assert used(*files) == [path for path, _, _ in files]


def test_attempts_within_folders_of_hosts_are_told_apart() -> None:
    files = [
        ("job/node0/a0/dump_0", 0, 10),
        ("job/node0/a1/dump_0", 0, 90),
        ("job/node1/a0/dump_1", 1, 12),
        ("job/node1/a1/dump_1", 1, 91),
    ]

    assert used(*files) == ["job/node0/a1/dump_0", "job/node1/a1/dump_1"]


def test_folders_do_not_tell_attempts_apart_that_lie_in_one() -> None:
    files = [("job/dump_0", 0, 10), ("job/again_0", 0, 90), ("job/dump_1", 1, 12)]

    assert used(*files) == [path for path, _, _ in files]


def write(folder: Path, ranks: Sequence[Recorder], name: str = "nccl_trace_rank_{}") -> None:
    folder.mkdir(parents=True)
    for rank in ranks:
        (folder / name.format(rank.rank)).write_bytes(pickle.dumps(rank.dump(), protocol=2))


def waiting_for(absent: int, *, size: int = 3, at: int = 0) -> list[Recorder]:
    """Ranks of which one has not made call 5; `at` is added to the moments."""
    ranks = recorders({"0": list(range(size)), "2": list(range(size))})
    for rank in ranks:
        stopped = rank.rank == absent
        rank.got("0", 4 if stopped else 5, 4).calls(
            "0", 4 if stopped else 5, state="completed" if stopped else "scheduled"
        )
        for entry in rank.entries:
            entry["time_created_ns"] = at + rank.rank
    return ranks


def test_of_two_jobs_the_later_is_told_of_and_the_other_is_left_out_whole(tmp_path: Path) -> None:
    write(tmp_path / "first", waiting_for(3, size=4, at=10))
    write(tmp_path / "second", waiting_for(1, at=1_000))

    with fabric_of_folder(tmp_path) as store:
        found = store.query("SELECT ranks, without_dump FROM fabric.hang").rows()
        issues = store.query("SELECT code, count FROM meta.issue WHERE stage = 'fabric'").rows()

    assert found == [([1], [])]
    assert issues == [("hang_other_attempt", 4)]


def test_the_only_number_that_differs_between_names_is_the_rank(tmp_path: Path) -> None:
    # given names that end with the size of the job, which is no rank
    write(tmp_path / "job", waiting_for(2), "fr-{}-of-3")

    with fabric_of_folder(tmp_path, asked="fabric.hang") as store:
        assert store.query("SELECT ranks FROM fabric.hang").rows() == [([2],)]


def test_numbers_that_are_no_members_are_no_ranks(tmp_path: Path) -> None:
    write(tmp_path / "job", waiting_for(2), "host7-44{}-dump")

    with fabric_of_folder(tmp_path) as store:
        assert store.query("SELECT kind FROM fabric.hang").rows() == []
        assert store.query("SELECT code FROM meta.issue WHERE stage = 'fabric'").rows() == [("hang_rank_unknown",)]
