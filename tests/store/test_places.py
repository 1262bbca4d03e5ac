"""Folders of our own are marked, and nothing else is ever removed."""

import subprocess
import sys
from pathlib import Path

import pytest

from traceforge.store.places import is_ours, own_folder, place_beside, sweep, temporary_folder

MAKER = """
import sys, time
from pathlib import Path
from traceforge.store.places import own_folder
with own_folder(Path(sys.argv[1])) as folder:
    (folder / "rows").touch()
    print("made", flush=True)
    time.sleep(60)
"""


def test_a_folder_of_ours_is_gone_afterwards_whatever_happens(tmp_path: Path) -> None:
    def fail() -> None:
        with own_folder(tmp_path / "own") as folder:
            (folder / "rows").touch()
            assert is_ours(folder)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_the_users_is_left_alone_and_another_name_taken(tmp_path: Path) -> None:
    # given a folder that happens to have the name of a spool
    theirs = tmp_path / "job.duckdb.spool"
    theirs.mkdir()
    (theirs / "thesis.tex").touch()

    place = place_beside(tmp_path / "job.duckdb", is_shared=False)
    with own_folder(place):
        assert place == tmp_path / "job.duckdb.spool-2"

    assert [path.name for path in tmp_path.rglob("*")] == ["job.duckdb.spool", "thesis.tex"]
    with pytest.raises(FileExistsError), own_folder(theirs):
        pass
    assert (theirs / "thesis.tex").exists()


def test_a_link_to_a_marked_folder_is_none_of_ours(tmp_path: Path) -> None:
    with own_folder(tmp_path / "own"):
        (tmp_path / "link").symlink_to(tmp_path / "own")
        sweep(tmp_path, "link")
        assert not is_ours(tmp_path / "link")
        assert (tmp_path / "own").exists()


def test_what_a_killed_process_left_is_swept_and_what_lives_is_not(tmp_path: Path) -> None:
    # given folders of a process that lives, of one that was killed, and of nobody
    living = subprocess.Popen([sys.executable, "-c", MAKER, str(tmp_path / "own-1")], stdout=subprocess.PIPE)
    killed = subprocess.Popen([sys.executable, "-c", MAKER, str(tmp_path / "own-2")], stdout=subprocess.PIPE)
    for process in (living, killed):
        assert process.stdout is not None
        assert process.stdout.readline() == b"made\n"
    killed.kill()
    killed.wait()
    (tmp_path / "own-3").mkdir()
    try:
        # when
        sweep(tmp_path, "own-*")
        # then
        assert sorted(path.name for path in tmp_path.iterdir()) == ["own-1", "own-3"]
    finally:
        living.kill()
        living.communicate()
        killed.communicate()


def test_a_temporary_folder_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    with temporary_folder() as folder:
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o777 == 0o700
