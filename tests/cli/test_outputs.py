"""What a command writes never takes the place of what somebody recorded: traces and databases stay as they are."""

import errno
import gzip
import json
import os
import stat
import tempfile
from pathlib import Path

import pytest

from tests.cli.running import run, run_process
from traceforge.errors import InputUnusableError
from traceforge.outputs import write_text
from traceforge.store.database import Store
from traceforge.store.targets import new_place

TRACE = json.dumps(
    {"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}
)


@pytest.fixture
def place(tmp_path: Path, healthy: Path) -> Path:
    """A folder with a trace, the head of a database, and each of them under another name."""
    (tmp_path / "rank0.json").write_text(TRACE)
    (tmp_path / "rank1.json.gz").write_bytes(gzip.compress(TRACE.encode()))
    with healthy.open("rb") as database:
        (tmp_path / "job.duckdb").write_bytes(database.read(4096))
    os.link(tmp_path / "rank0.json", tmp_path / "hard.html")
    (tmp_path / "soft.html").symlink_to("job.duckdb")
    return tmp_path


@pytest.mark.parametrize("name", ["rank0.json", "rank1.json.gz", "job.duckdb", "hard.html", "soft.html"])
@pytest.mark.parametrize(
    "command",
    [
        ["report", "{in}", "-o", "{out}"],
        ["report", "{in}", "--json", "{out}"],
        ["report", "{in}", "--md", "{out}"],
        ["check", "{in}", "--max", "iteration_ms=1", "--junit", "{out}"],
        ["check", "{in}", "--max", "iteration_ms=1", "--markdown", "{out}"],
        ["history", "report", "{in}", "-o", "{out}"],
        ["history", "metrics", "{in}", "-o", "{out}"],
    ],
    ids=lambda command: " ".join(command).replace(" {in}", "").replace(" {out}", ""),
)
def test_no_answer_is_written_over_a_trace_or_a_database(place: Path, name: str, command: list[str]) -> None:
    before = {one.name: one.read_bytes() for one in place.iterdir()}
    output = place / name

    finished = run(*(word.replace("{in}", str(place / "rank0.json")).replace("{out}", str(output)) for word in command))

    assert finished.returncode == 2
    assert f"{name}: " in finished.stderr
    assert "no answer is written over that" in finished.stderr
    assert {one.name: one.read_bytes() for one in place.iterdir()} == before


def test_two_answers_do_not_share_a_file(tmp_path: Path, healthy: Path) -> None:
    finished = run("report", healthy, "-o", tmp_path / "a.html", "--json", tmp_path / "." / "a.html")

    assert finished.returncode == 2
    assert "two answers would be written to it" in finished.stderr
    assert not list(tmp_path.iterdir())


def test_a_page_goes_to_the_standard_output_alone(tmp_path: Path, healthy: Path) -> None:
    finished = run_process("report", healthy, "-o", "-", folder=tmp_path)

    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("<!doctype html>")
    assert "VERDICT (" not in finished.stdout.rpartition("</html>")[2]
    assert not list(tmp_path.iterdir())


def test_two_answers_do_not_share_the_standard_output(healthy: Path) -> None:
    finished = run("report", healthy, "-o", "-", "--md", "-")

    assert (finished.returncode, finished.stdout) == (2, "")
    assert "two answers would be written to it" in finished.stderr


def test_a_baseline_is_not_written_over(tmp_path: Path, healthy: Path) -> None:
    (tmp_path / "good.json").write_text("{}")

    finished = run("check", healthy, "--baseline", tmp_path / "good.json", "--markdown", tmp_path / "good.json")

    assert finished.returncode == 2
    assert (tmp_path / "good.json").read_text() == "{}"


@pytest.mark.parametrize(("output", "why"), [("folder", "it is a folder"), ("none/a.html", "there is no folder")])
def test_where_nothing_can_be_written_is_said_before_anything_is_read(tmp_path: Path, output: str, why: str) -> None:
    (tmp_path / "folder").mkdir()

    finished = run("report", tmp_path / "no-such-trace", "-o", tmp_path / output)

    assert finished.returncode == 3
    assert why in finished.stderr


def test_an_earlier_answer_is_replaced(tmp_path: Path, healthy: Path) -> None:
    (tmp_path / "junit.xml").write_text("<testsuite/>")

    finished = run("check", healthy, "--max", "iteration_ms=1000000", "--junit", tmp_path / "junit.xml")

    assert finished.returncode == 0
    assert "iteration_ms" in (tmp_path / "junit.xml").read_text()


def test_where_the_disk_is_full_the_earlier_answer_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a disk on which half of an answer has room
    (tmp_path / "report.html").write_text("the earlier one")
    real = Path.write_text

    def full(path: Path, text: str, encoding: str) -> None:
        real(path, text[: len(text) // 2], encoding=encoding)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)

    with pytest.raises(InputUnusableError, match="cannot be written: No space left on device"):
        write_text(tmp_path / "report.html", "a new one")

    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text() == "the earlier one"


def test_a_replaced_answer_is_read_by_those_who_could_read_the_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "report.html").touch(mode=0o600)

    write_text(tmp_path / "report.html", "text")

    assert stat.S_IMODE((tmp_path / "report.html").stat().st_mode) == 0o600


@pytest.mark.parametrize("command", ["synth", "demo"])
def test_made_up_traces_are_not_written_among_recorded_ones(tmp_path: Path, command: str) -> None:
    traces = tmp_path / "traces" if command == "demo" else tmp_path
    traces.mkdir(exist_ok=True)
    (traces / "rank0.pt.trace.json.gz").write_bytes(gzip.compress(TRACE.encode()))

    finished = run(command, "-o", tmp_path)

    assert finished.returncode == 2
    assert "files lie in it that `synth` did not make" in finished.stderr
    assert [path.name for path in traces.iterdir()] == ["rank0.pt.trace.json.gz"]


def test_a_made_up_job_is_made_again_in_its_folder(tmp_path: Path) -> None:
    words = ("synth", "-o", tmp_path / "job", "--iterations", 1, "--nodes", 1, "--devices", 1)

    assert [run(*words).returncode for _ in range(2)] == [0, 0]


def test_a_scenario_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text('name = "mine"  # with remarks\n')

    finished = run("synth", tmp_path / "scenario.toml", "-o", tmp_path)

    assert finished.returncode == 2
    assert (tmp_path / "scenario.toml").read_text() == 'name = "mine"  # with remarks\n'


def test_a_demo_is_not_written_over_a_trace(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(TRACE)

    finished = run("demo", "-o", tmp_path)

    assert finished.returncode == 2
    assert "no answer is written over that" in finished.stderr
    assert (tmp_path / "report.html").read_text() == TRACE


@pytest.mark.parametrize(("umask", "rights"), [(0o077, 0o600), (0o000, 0o666)])
def test_what_is_written_has_the_rights_that_the_user_gives(tmp_path: Path, umask: int, rights: int) -> None:
    before = os.umask(umask)
    try:
        write_text(tmp_path / "report.html", "text")
        with Store(tmp_path / "a.duckdb") as store:
            store.write_parquet("SELECT 1 AS one", tmp_path / "rows.parquet")
        with new_place(tmp_path / "p.tar") as place:
            place.write_bytes(b"text")
    finally:
        os.umask(before)

    rights_of = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert rights_of == dict.fromkeys(("report.html", "a.duckdb", "rows.parquet", "p.tar"), rights)


def test_where_no_temporary_file_can_be_made_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a system on which TMPDIR, /tmp, /var/tmp and the working directory are read-only
    def read_only(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    (tmp_path / "rank0.json").write_text(TRACE)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile._os, "open", read_only)

    finished = run("info", tmp_path / "rank0.json")

    assert finished.returncode == 3
    assert "No usable temporary directory" in finished.stderr
    assert "hint: " in finished.stderr


def test_an_answer_goes_through_a_link_and_to_a_device(tmp_path: Path) -> None:
    (tmp_path / "latest.html").symlink_to("today.html")

    write_text(tmp_path / "latest.html", "text")
    write_text(Path("/dev/null"), "text")

    assert (tmp_path / "latest.html").is_symlink()
    assert (tmp_path / "today.html").read_text() == "text"
