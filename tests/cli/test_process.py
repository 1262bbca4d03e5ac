"""However a command ends, it leaves no process, no file and no traceback behind."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.conftest import ROOT
from traceforge.cli.process import prepared
from traceforge.store.database import Store

PATIENCE_S = 30
LARGE_EVENTS = 250_001  # more than half of what is looked at together, see align/rank_batches.py


def trace(rank: int, events: int = 50) -> bytes:
    listed = [
        {"ph": "X", "cat": "cpu_op", "name": f"op {n % 50}", "pid": 1, "tid": 1, "ts": 10 * n, "dur": 5}
        for n in range(events)
    ]
    return json.dumps({"distributedInfo": {"rank": rank, "world_size": 4}, "traceEvents": listed}).encode()


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(4):
        (folder / f"rank{rank}.json.gz").write_bytes(gzip.compress(trace(rank)))
    return folder


@pytest.fixture
def slow_job(tmp_path: Path) -> Path:
    """Two ranks that take seconds to read, even by the fast reader: nothing in them is plain."""
    folder = tmp_path / "slow"
    folder.mkdir()
    for rank in range(2):
        events = b",".join([b'{"ph": "X", "name": "\\ud800", "pid": [1], "tid": 1, "ts": "x", "dur": 1}'] * 300_000)
        (folder / f"rank{rank}.json").write_bytes(b'{"schemaVersion": 1, "traceEvents": [' + events + b"]}")
    return folder


@pytest.fixture
def large_job(tmp_path: Path) -> Path:
    """Two ranks of so many operations that each is a part of the tables by itself."""
    folder = tmp_path / "large"
    folder.mkdir()
    for rank in range(2):
        (folder / f"rank{rank}.json").write_bytes(trace(rank, LARGE_EVENTS))
    return folder


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    (tmp_path / "tmp").mkdir(exist_ok=True)
    return {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path / "tmp"), "COLUMNS": "200", **more}


def started(tmp_path: Path, *words: object) -> subprocess.Popen[str]:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background would ignore it
    return subprocess.Popen(
        [sys.executable, "-m", "traceforge", *map(str, words)],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(tmp_path: Path, words: Sequence[object], **more: object) -> subprocess.CompletedProcess[str]:
    given = {"env": environment(tmp_path), "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.run(
        [sys.executable, "-m", "traceforge", *map(str, words)],
        text=True,
        check=False,
        timeout=120,
        **given,  # type: ignore[call-overload]
    )


def children_of(pid: int) -> set[int]:
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.add(int(status.parent.name))
    return found


def readers_of(process: subprocess.Popen[str]) -> set[int]:
    """The processes that read for another one, once there are some, and their helper."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if len(found := children_of(process.pid)) >= 3:
            return found
        time.sleep(0.05)
    raise AssertionError("no readers were started")


def all_gone(pids: set[int]) -> bool:
    until = time.monotonic() + 5
    while time.monotonic() < until:
        if not any(_lives(pid) for pid in pids):
            return True
        time.sleep(0.1)
    return False


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc for processes")
def test_readers_die_with_a_parent_that_is_killed(tmp_path: Path, slow_job: Path) -> None:
    ingest = started(tmp_path, "ingest", slow_job, "--db", tmp_path / "job.duckdb", "--jobs", 2)
    readers = readers_of(ingest)

    ingest.kill()
    ingest.communicate()

    assert all_gone(readers)


def found_below(folder: Path, pattern: str) -> list[Path]:
    """What a pattern finds; nothing where folders go while it looks."""
    try:
        return list(folder.glob(pattern))
    except FileNotFoundError:
        return []


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
process._PATIENCE_S = 0.2
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


def test_a_database_may_have_any_name(tmp_path: Path, job: Path) -> None:
    name = "job[1] a*? with 'quotes' \".duckdb"

    done = ended(tmp_path, ["ingest", job, f"--db={tmp_path / name}", "--jobs", 1])

    assert done.returncode == 0, done.stderr
    with Store(tmp_path / name, read_only=True) as store:
        assert store.query("SELECT COUNT(*) FROM meta.source").item() == 4
        columns = "FROM duckdb_columns() WHERE database_name = 'trace'"
        assert store.query(f"SELECT COUNT(*) {columns} AND comment IS NULL").item() == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["job", "tmp", name])


def test_names_that_are_no_utf8_are_shown_with_escapes(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/job\xff"))
    folder.mkdir()
    (Path(os.fsdecode(os.fsencode(folder) + b"/rank0_\xff\xfe.json"))).write_bytes(trace(0))

    done = run("ingest", folder, "--db", tmp_path / "job.duckdb")

    assert done.returncode == 0, done.stderr
    with Store(tmp_path / "job.duckdb", read_only=True) as store:
        names = "SELECT run_name, path FROM meta.source JOIN meta.run USING (run_id)"
        assert store.query(names).rows() == [("job\\xff", "job\\xff/rank0_\\xff\\xfe.json")]
    assert run("check", tmp_path / "job.duckdb", "--run", folder.name, "--max", "iteration_ms=1").returncode == 3


def test_names_may_look_like_options(tmp_path: Path) -> None:
    (tmp_path / "--db").mkdir()
    (tmp_path / "--db" / "--quiet.json").write_bytes(trace(0))

    done = ended(tmp_path, ["ingest", "--db=--out.duckdb", "--", "--db"], cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["--db", "--out.duckdb", "tmp"]
    with Store(tmp_path / "--out.duckdb", read_only=True) as store:
        assert store.query("SELECT path FROM meta.source").item() == "--db/--quiet.json"


def test_a_database_name_that_is_no_utf8_is_refused_in_a_sentence(tmp_path: Path, job: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/job\xff.duckdb")

    done = ended(tmp_path, ["ingest", job, "--db", name])

    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert "bug in traceforge" not in done.stderr


def test_a_terminal_of_ascii_gets_escapes(tmp_path: Path, healthy: Path) -> None:
    env = environment(tmp_path, PYTHONIOENCODING="ascii", LC_ALL="C")

    done = ended(tmp_path, ["report", healthy, "-o", tmp_path / "out.html"], env=env)

    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("redirection", "words", "expected"),
    [
        (">&-", "sql {healthy} 'SELECT 1 AS one'", (0, "")),
        ("2>&-", "sql {healthy} 'SELECT 1 AS one'", (0, "one\n  1\n")),
        ("<&-", "sql {healthy} 'SELECT 1 AS one'", (0, "one\n  1\n")),
        ("2>&-", "info nowhere.duckdb", (3, "")),
        ("2>/dev/full", "info nowhere.duckdb", (3, "")),
        ("2>/dev/full", "ingest {job} --db {folder}/job.duckdb --jobs 1", (0, "")),
    ],
)
def test_what_a_stream_does_not_take_changes_no_exit_code(
    tmp_path: Path, job: Path, healthy: Path, redirection: str, words: str, expected: tuple[int, str]
) -> None:
    words = words.format(healthy=healthy, job=job, folder=tmp_path)

    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m traceforge {words} {redirection}"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert (done.returncode, done.stdout) == expected
    assert done.stderr == ""
    assert (tmp_path / "job.duckdb").exists() == ("ingest" in words)


def test_remarks_that_nobody_reads_end_no_ingest(tmp_path: Path, job: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = ended(tmp_path, ["ingest", job, "--db", tmp_path / "job.duckdb", "--jobs", 1], stderr=writing)
    finally:
        os.close(writing)

    assert done.returncode == 0
    assert (tmp_path / "job.duckdb").exists()


@pytest.mark.parametrize("redirection", [">&- 2>&- <&-"])
def test_streams_may_be_closed(tmp_path: Path, healthy: Path, redirection: str) -> None:
    words = f"{sys.executable} -m traceforge report {healthy} -o {tmp_path / 'out.html'} {redirection}"

    done = subprocess.run(["sh", "-c", words], env=environment(tmp_path), check=False, timeout=120)

    assert done.returncode == 0
    assert (tmp_path / "out.html").read_bytes().startswith(b"<!")


@pytest.mark.parametrize("buffering", ["0", "1"])
@pytest.mark.parametrize(("limit_ms", "code"), [("0.001", 10), ("1000000", 3)])
def test_a_check_whose_answer_cannot_be_written_says_so_and_keeps_its_verdict(
    tmp_path: Path, healthy: Path, buffering: str, limit_ms: str, code: int
) -> None:
    # given a standard output whose disk is full, found at the first line or when all is written
    env = environment(tmp_path, **({"PYTHONUNBUFFERED": "1"} if buffering == "0" else {}))
    with Path("/dev/full").open("w") as full:
        done = ended(tmp_path, ["check", healthy, "--max", f"iteration_ms={limit_ms}"], env=env, stdout=full)

    assert done.returncode == code
    assert done.stderr.count("cannot be written to standard output: No space left on device") == 1
    assert "Traceback" not in done.stderr


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


def test_a_stream_that_takes_nothing_is_said_so(tmp_path: Path, healthy: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = ended(tmp_path, ["info", healthy], stdout=full)

    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert "bug in traceforge" not in done.stderr


@pytest.mark.parametrize(
    "words", [["ingest", "{job}", "--db", "/proc/a.duckdb"], ["report", "{healthy}", "-o", "/proc/x.html"]]
)
def test_places_where_nothing_can_be_written_are_said_so(
    tmp_path: Path, job: Path, healthy: Path, words: list[str]
) -> None:
    done = ended(tmp_path, [word.format(job=job, healthy=healthy) for word in words])

    assert done.returncode == 3, done.stderr
    assert "hint:" in done.stderr
    assert "bug in traceforge" not in done.stderr
    assert "Traceback" not in done.stderr
