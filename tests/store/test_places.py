"""Folders of our own are marked, and nothing else is ever removed."""

import gzip
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import IO

import pytest

from tests.fuzz.samples import exports, sqlite_file
from traceforge.errors import StoreBusyError
from traceforge.reading.sqlite_file import open_sqlite
from traceforge.store import places
from traceforge.store.database import Store
from traceforge.store.places import is_ours, own_folder, place_beside, sweep, temporary_folder
from traceforge.store.spool import spool_folder

MAKER = """
import sys, time
from pathlib import Path
from traceforge.store.places import own_folder
with own_folder(Path(sys.argv[1])) as folder:
    (folder / "rows").touch()
    print("made", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends what is running by an exception, as in a command."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("ended_by_sigterm")
@pytest.mark.parametrize("step", ["mkdir", "_locked_mark", "_remove"])
def test_a_signal_while_a_folder_is_made_or_removed_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    owner = Path if step == "mkdir" else places
    usual = getattr(owner, step)

    def signalled(path: Path) -> object:
        done = usual(path) if step != "_remove" else None
        signal.raise_signal(signal.SIGTERM)
        return usual(path) if step == "_remove" else done

    def make() -> None:
        with own_folder(tmp_path / "own") as folder:
            (folder / "rows").write_bytes(b"")

    monkeypatch.setattr(owner, step, signalled)
    with pytest.raises(SystemExit) as ending:
        make()

    assert ending.value.code == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def test_what_is_killed_while_it_removes_its_folder_leaves_one_that_is_known_as_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = shutil.rmtree

    def killed(path: Path, **_options: object) -> None:
        if path.parent == tmp_path and path.exists():
            raise KeyboardInterrupt
        usual(path, ignore_errors=True)

    def make() -> None:
        with own_folder(tmp_path / "job.duckdb.spool") as folder:
            (folder / "rows").touch()
            (folder / "parts").mkdir()

    # given a process that ends when nearly all is gone that lay in its folder
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            make()
    (left,) = tmp_path.iterdir()
    assert is_ours(left)

    # when somebody writes into the database
    Store(tmp_path / "job.duckdb").close()

    # then
    assert [path.name for path in tmp_path.iterdir()] == ["job.duckdb"]


def test_who_only_reads_a_database_removes_what_killed_readers_left_and_no_spool(tmp_path: Path) -> None:
    database = tmp_path / "job[1].duckdb"
    Store(database).close()
    left = [database.with_name(f"{database.name}.{kind}") for kind in ("export-1", "spool")]
    for folder in left:
        folder.mkdir()
        (folder / ".made-by-traceforge").touch()

    Store(database, read_only=True).close()

    assert sorted(path.name for path in tmp_path.iterdir()) == ["job[1].duckdb", "job[1].duckdb.spool"]


def test_copies_made_for_reading_lie_in_the_spool_and_go_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    packed = tmp_path / "a.sqlite.gz"
    packed.write_bytes(gzip.compress(sqlite_file(exports()[0])))

    with spool_folder(tmp_path / "spool") as spool, open_sqlite(packed):
        copies = [path.suffix for path in spool.iterdir()]
        assert list((tmp_path / "tmp").iterdir()) == []

    assert copies == [".sqlite"]
    assert tempfile.tempdir == str(tmp_path / "tmp")


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


@pytest.mark.parametrize("read_only", [False, True])
def test_what_a_killed_process_spilled_is_swept_by_the_next_one(tmp_path: Path, *, read_only: bool) -> None:
    # given a process that is killed while DuckDB has something on disk
    database = tmp_path / "job.duckdb"
    Store(database).close()
    killed = (
        "import os, signal, sys; from traceforge.store.database import Store; from pathlib import Path;"
        f"store = Store(sys.argv[1], read_only={read_only});"
        "((place,),) = store.rows(\"SELECT current_setting('temp_directory')\");"
        "Path(place, 'duckdb_temp_storage_DEFAULT-0.tmp').write_bytes(b'rows'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", killed, str(database)], check=False)
    left = list(tmp_path.glob("*/duckdb_temp_storage_DEFAULT-0.tmp"))
    assert [file.parent.name.startswith(f"job.duckdb.{'spill-' if read_only else 'tmp'}") for file in left] == [True]

    # when somebody opens the database as it was opened
    Store(database, read_only=read_only).close()

    assert [path.name for path in tmp_path.iterdir()] == ["job.duckdb"]


def test_what_somebody_spills_who_still_reads_is_left_alone(tmp_path: Path) -> None:
    database = tmp_path / "job.duckdb"
    Store(database).close()

    with Store(database, read_only=True) as reader:
        place = Path(reader.value("SELECT current_setting('temp_directory')"))
        Store(database, read_only=True).close()
        assert place.is_dir()

    assert [path.name for path in tmp_path.iterdir()] == ["job.duckdb"]


def test_who_finds_a_database_held_leaves_what_its_holder_spills(tmp_path: Path) -> None:
    with Store(tmp_path / "job.duckdb") as holder:
        place = Path(holder.value("SELECT current_setting('temp_directory')"))
        (place / "duckdb_temp_storage_DEFAULT-0.tmp").write_bytes(b"rows")

        with pytest.raises(StoreBusyError):
            Store(tmp_path / "job.duckdb")

        assert (place / "duckdb_temp_storage_DEFAULT-0.tmp").read_bytes() == b"rows"

    assert [path.name for path in tmp_path.iterdir()] == ["job.duckdb"]


def test_a_folder_of_the_users_in_the_place_of_what_spills_is_left_alone(tmp_path: Path) -> None:
    own = tmp_path / "job.duckdb.tmp"
    own.mkdir()
    (own / "duckdb_temp_storage_DEFAULT-0.tmp").write_bytes(b"of another program")

    with Store(tmp_path / "job.duckdb") as store:
        place = store.value("SELECT current_setting('temp_directory')")

    assert place == str(tmp_path / "job.duckdb.tmp-2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.duckdb", "job.duckdb.tmp"]
    assert [path.name for path in own.iterdir()] == ["duckdb_temp_storage_DEFAULT-0.tmp"]


@pytest.mark.parametrize(
    ("name", "age_s", "inside", "is_left"),
    [
        ("job.duckdb.spool.new-0123456789abcdef", 60, None, False),
        ("job.duckdb.spool.new-0123456789abcdef", 0, None, True),
        ("job.duckdb.spool.new-0123456789abcdef", 60, "notes", True),
        ("job.duckdb.spool-mine", 60, None, True),
    ],
    ids=["killed before its mark", "still being made", "with something in it", "of another name"],
)
def test_an_empty_folder_that_nobody_lived_to_mark_is_swept(
    tmp_path: Path, name: str, age_s: float, inside: str | None, is_left: bool
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    if inside:
        (folder / inside).touch()
    made = time.time() - age_s
    os.utime(folder, (made, made))

    Store(tmp_path / "job.duckdb").close()

    assert folder.exists() == is_left


def test_a_folder_is_never_seen_without_its_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "job.duckdb.spool"
    seen = []

    def marked(folder: Path) -> IO[bytes]:
        seen.append(place.exists())
        return usual(folder)

    usual = places._locked_mark
    monkeypatch.setattr(places, "_locked_mark", marked)
    with own_folder(place):
        assert is_ours(place)

    assert seen == [False]
    assert list(tmp_path.iterdir()) == []
