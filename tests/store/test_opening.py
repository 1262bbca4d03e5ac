"""A database that cannot be opened, or into which nothing came, says why or leaves nothing."""

import errno
import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from tests.conftest import ROOT
from traceforge.errors import InputUnusableError
from traceforge.store.database import Store
from traceforge.store.opening import open_error

# The system kills it as soon as a file grows beyond the first two of the three blocks that a new database begins with.
KILLED_AS_IT_MAKES_ONE = """
import resource, signal, sys
from traceforge.store.database import Store
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
Store(sys.argv[1])
"""


@pytest.mark.parametrize("name", ["job.duckdb", "job/"])
def test_a_process_that_is_killed_while_it_makes_a_database_leaves_none_that_is_damaged(
    tmp_path: Path, name: str
) -> None:
    words = [sys.executable, "-c", KILLED_AS_IT_MAKES_ONE, f"{tmp_path}/{name}"]

    killed = subprocess.run(words, cwd=ROOT, check=False)

    assert killed.returncode == -signal.SIGXFSZ
    Store(f"{tmp_path}/{name}").close()
    left = {path.name for path in tmp_path.iterdir()} | {path.name for path in (tmp_path / "job").glob("*")}
    assert left <= {"job.duckdb", "job", "catalogue.duckdb"}


def test_a_database_that_another_process_makes_at_the_same_time_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, link = tmp_path / "job.duckdb", Path.hardlink_to

    def too_late(place: Path, made: Path) -> None:
        monkeypatch.setattr(Path, "hardlink_to", link)
        with Store(path) as first:
            first.execute("INSERT INTO meta.run (run_id, run_name) VALUES (7, 'first')")
        link(place, made)

    monkeypatch.setattr(Path, "hardlink_to", too_late)

    def ended() -> None:
        with Store(path) as second:
            assert second.rows("SELECT run_name FROM meta.run") == [("first",)]
            raise SystemExit(143)

    with pytest.raises(SystemExit):
        ended()
    assert path.exists()


def test_a_disk_without_links_takes_a_new_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_place: Path, _made: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "hardlink_to", refused)

    Store(tmp_path / "job.duckdb").close()

    assert [path.name for path in tmp_path.iterdir()] == ["job.duckdb"]


def test_a_new_database_is_gone_when_a_signal_ends_it_before_the_first_file(tmp_path: Path) -> None:
    def ended() -> None:
        with Store(tmp_path / "job.duckdb"):
            raise SystemExit(143)

    with pytest.raises(SystemExit):
        ended()

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("reason", [errno.EROFS, errno.EACCES])
def test_a_database_that_is_write_protected_is_not_called_damaged(tmp_path: Path, reason: int) -> None:
    path = tmp_path / "job.duckdb"
    Store(path).close()

    error = open_error(path, duckdb.IOException(f'Cannot open file "{path}": {os.strerror(reason)}'), is_new=False)

    assert "the database is write-protected" in str(error)


def test_a_database_that_may_not_be_read_is_not_called_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "job.duckdb"
    Store(path).close()
    monkeypatch.setattr(os, "access", lambda *_: False)

    error = open_error(path, duckdb.IOException(f'Cannot open file "{path}": Permission denied'), is_new=False)

    assert "cannot be read: you have no right to" in str(error)


def test_a_file_that_is_no_database_is_called_so(tmp_path: Path) -> None:
    path = tmp_path / "notes.duckdb"
    path.write_text("no database" * 1000)

    with pytest.raises(Exception, match="not a DuckDB database, or a damaged one"):
        Store(path)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("name", ["rank0.json", "rank0.json.gz"])
def test_a_trace_is_no_database(tmp_path: Path, name: str, read_only: bool) -> None:
    # DuckDB takes files that it can query for databases in memory: all that was stored there would be lost.
    path = tmp_path / name
    text = b'{"traceEvents": []}'
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)

    with pytest.raises(InputUnusableError, match="not a DuckDB database, or a damaged one"):
        Store(path, read_only=read_only)


@pytest.mark.parametrize("name", [":memory:", "md:run", "sqlite:run.db"])
def test_a_name_with_a_meaning_to_duckdb_is_a_file_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)

    Store(Path(name)).close()

    assert [one.name for one in tmp_path.iterdir()] == [name]
