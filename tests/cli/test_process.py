"""However a command ends, it leaves no process, no file and no traceback behind."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.processes import (
    LARGE_EVENTS,
    PATIENCE_S,
    all_gone,
    children_of,
    ended,
    environment,
    found_below,
    readers_of,
    started,
)
from tests.conftest import ROOT
from traceforge.cli.process import prepared
from traceforge.store.database import Store


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc for processes")
def test_readers_die_with_a_parent_that_is_killed(tmp_path: Path, slow_job: Path) -> None:
    ingest = started(tmp_path, "ingest", slow_job, "--db", tmp_path / "job.duckdb", "--jobs", 2)
    readers = readers_of(ingest)

    ingest.kill()
    ingest.communicate()

    assert all_gone(readers)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc for processes")
def test_workers_that_make_tables_die_with_a_parent_that_is_killed(tmp_path: Path, large_job: Path) -> None:
    # given an ingest into a folder whose two workers make the tables of one rank each
    database = tmp_path / "out"
    ingest = started(tmp_path, "ingest", large_job, "--db", f"{database}/", "--jobs", 2)
    until = time.monotonic() + PATIENCE_S
    while not (parts := found_below(database, "*.spool/**/part*/*")) and time.monotonic() < until:
        time.sleep(0.01)
    assert parts, "no worker was given a part"
    workers = children_of(ingest.pid)

    # when it is killed
    ingest.kill()
    ingest.communicate()

    # then they end by themselves, and the next run leaves nothing of what they wrote and has each ns of each operation
    assert len(workers) >= 2
    assert all_gone(workers)
    again = ended(tmp_path, ["ingest", large_job, "--db", f"{database}/", "--jobs", 2])
    assert (again.returncode, "Traceback" in again.stderr) == (0, False)
    assert not list(database.glob("*.spool*"))
    with Store(f"{database}/", read_only=True) as store:
        found = store.rows("SELECT rank, SUM(duration_ns) FROM timeline.phase WHERE phase = 'compute' GROUP BY ALL")
    assert sorted(found) == [(rank, LARGE_EVENTS * 5_000) for rank in range(2)]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc for processes")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_readers_and_temporary_files_at_once(tmp_path: Path, slow_job: Path, number: int) -> None:
    report = started(tmp_path, "report", slow_job, "-o", tmp_path / "out.html", "--jobs", 2)
    readers = readers_of(report)

    report.send_signal(number)
    _, said = report.communicate(timeout=PATIENCE_S)

    assert report.returncode == 128 + number
    assert said.strip().splitlines()[-1].startswith("ended by SIG")
    assert "Traceback" not in said
    assert all_gone(readers)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_what_does_not_end_after_a_signal_is_ended_with_its_code() -> None:
    # given a command that never comes to an end with tidying up, and less patience than usual
    words = """
import signal, sys, threading
from traceforge.cli import process
process.ENDED_AT_ONCE_AFTER_S = 0.2
with process.prepared():
    try:
        signal.raise_signal(signal.SIGTERM)
    finally:
        threading.Event().wait()
"""

    done = subprocess.run([sys.executable, "-c", words], cwd=ROOT, check=False, timeout=PATIENCE_S)

    assert done.returncode == 128 + signal.SIGTERM


def test_a_signal_that_a_library_reports_as_an_error_of_its_own_is_still_that_signal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signal, "setitimer", lambda *_: None)  # it would end the tests later

    def query() -> None:
        with suppress(SystemExit):
            os.kill(os.getpid(), signal.SIGTERM)
        raise RuntimeError("Query interrupted")

    with pytest.raises(SystemExit) as ending, prepared():
        query()

    assert ending.value.code == 128 + signal.SIGTERM


def test_a_signal_that_comes_while_a_line_is_written_is_said_all_the_same() -> None:
    # given a command whose first line on standard error is just being written when the signal comes
    words = """
import io, os, signal, sys
from traceforge.cli.process import prepared
class Slow(io.RawIOBase):
    has_begun = False
    def writable(self):
        return True
    def write(self, data):
        if not self.has_begun:
            self.has_begun = True
            signal.raise_signal(signal.SIGHUP)
        return os.write(2, data)
sys.stderr = io.TextIOWrapper(io.BufferedWriter(Slow()), line_buffering=True)
with prepared():
    print("database: a.duckdb", file=sys.stderr)
"""

    done = subprocess.run(
        [sys.executable, "-c", words], cwd=ROOT, check=False, timeout=PATIENCE_S, capture_output=True, text=True
    )

    assert done.returncode == 128 + signal.SIGHUP
    said = "ended by SIGHUP; a database named by --db keeps the files that were read whole, but none of a --part"
    assert said in done.stderr.splitlines()


def test_what_a_killed_report_left_is_removed_by_the_next_one(tmp_path: Path, slow_job: Path, job: Path) -> None:
    report = started(tmp_path, "report", slow_job, "-o", tmp_path / "out.html", "--jobs", 1)
    until = time.monotonic() + PATIENCE_S
    while not list((tmp_path / "tmp").glob("*/traces.duckdb")) and time.monotonic() < until:
        time.sleep(0.05)
    report.kill()
    report.communicate()
    assert list((tmp_path / "tmp").iterdir())

    assert ended(tmp_path, ["info", job]).returncode == 0

    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_first_ingest_that_fails_leaves_no_database(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no trace")

    assert ended(tmp_path, ["ingest", tmp_path / "notes.txt", "--db", tmp_path / "job.duckdb"]).returncode == 3

    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "tmp"]


def _program(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A Python program, ended; `folder` holds what it may write."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment(folder), capture_output=True, text=True, check=False, timeout=60)


def test_ctrl_c_before_all_is_loaded_ends_without_a_traceback(tmp_path: Path) -> None:
    # given the signal in the midst of what is loaded before signals are handled
    code = (
        "import builtins, os, signal, sys; usual = builtins.__import__\n"
        "def loading(name, *rest):\n"
        "    if name.startswith('traceforge.cli.console'): os.kill(os.getpid(), signal.SIGINT)\n"
        "    return usual(name, *rest)\n"
        "builtins.__import__ = loading; sys.argv = ['traceforge', 'thresholds']\n"
        "from traceforge.__main__ import main; main()"
    )

    done = _program(code, tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_a_signal_that_was_ignored_stays_so(tmp_path: Path) -> None:
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.argv = ['traceforge', '--version']\n"
        "from traceforge.__main__ import main\n"
        "try: main()\n"
        "finally: print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    )

    done = _program(code, tmp_path)

    assert done.stdout.splitlines()[-1] == "True"
