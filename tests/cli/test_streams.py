"""Any name of a file, and any stream, closed or full: commands end with their code and a sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.processes import ended, environment, trace
from tests.cli.running import run
from traceforge.store.database import Store


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
