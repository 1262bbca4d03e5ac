"""What a command writes never takes the place of what somebody recorded: traces and databases stay as they are."""

import errno
import gzip
import json
import os
from pathlib import Path

import pytest

from tests.cli.running import run
from traceforge.cli.outputs import write_text
from traceforge.errors import InputUnusableError

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


def test_an_answer_goes_through_a_link_and_to_a_device(tmp_path: Path) -> None:
    (tmp_path / "latest.html").symlink_to("today.html")

    write_text(tmp_path / "latest.html", "text")
    write_text(Path("/dev/null"), "text")

    assert (tmp_path / "latest.html").is_symlink()
    assert (tmp_path / "today.html").read_text() == "text"
