"""Every command takes a database that is a folder, and says of it what it says of a file."""

import json
import shutil
from pathlib import Path
from typing import Annotated

import pytest
import typer

import traceforge
from tests.cli.running import SAMPLE, run
from tests.conftest import stores_are_kept
from traceforge import api
from traceforge.cli.command import audible


@pytest.fixture(scope="module")
def folder(healthy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same database as a folder."""
    path = tmp_path_factory.mktemp("folder") / "job"
    with stores_are_kept(True):
        api.unpack(healthy, path)
    return path


@pytest.mark.parametrize(
    "words",
    [
        ["sql", "DB", "SELECT source_id, COUNT(*) AS events FROM raw.event GROUP BY ALL ORDER BY ALL"],
        ["sql", "DB", "--name", "kernel_breakdown"],
        ["sql", "DB", "--describe", "raw.occurrence"],
        ["sql", "DB", "--list", "--format", "csv"],
        ["report", "DB", "--json", "-"],
        ["doctor", "DB", "--json"],
        ["top", "DB"],
        ["check", "DB", "--max", "iteration_ms=1000"],
        ["replay", "DB"],
        ["forecast", "DB", "--json"],
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_a_folder_is_answered_as_a_file_is(words: list[str], healthy: Path, folder: Path, tmp_path: Path) -> None:
    of_file, of_folder = (
        run(*[str(path) if word == "DB" else word for word in words], *_page(words, tmp_path))
        for path in (healthy, folder)
    )

    assert of_folder.returncode == of_file.returncode
    assert of_folder.stdout.replace(str(folder), "DB") == of_file.stdout.replace(str(healthy), "DB")
    assert of_file.stdout


def _page(words: list[str], tmp_path: Path) -> list[str]:
    return ["-o", str(tmp_path / "page.html")] if words[0] == "report" else []


def test_a_folder_is_compared_with_a_file(healthy: Path, folder: Path) -> None:
    result = run("compare", folder, healthy, "--json")

    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["schema_version"] == 1


def test_info_tells_the_size_of_all_that_lies_in_the_folder(folder: Path) -> None:
    told = json.loads(run("info", f"{folder}/", "--json").stdout)["database"]

    assert told["size_bytes"] == sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert told["runs"][0]["files"] == 8


def test_a_notebook_opens_a_folder(folder: Path) -> None:
    run_of_folder = traceforge.open(folder)

    assert run_of_folder.sql("SELECT COUNT(*) AS ranks FROM align.rank")["ranks"].to_list() == [4]


def test_tables_of_a_folder_leave_as_parquet(folder: Path, tmp_path: Path) -> None:
    result = run("export", "parquet", folder, "-o", tmp_path / "out")

    assert result.returncode == 0, result.stderr
    assert (tmp_path / "out" / "timeline.phase").is_dir()


def test_ingest_pack_and_unpack_from_the_command_line(tmp_path: Path) -> None:
    # given one trace of a sample, read into a folder that is named by its last sign
    (tmp_path / "traces").mkdir()
    shutil.copy(SAMPLE / "rank0.pt.trace.json.gz", tmp_path / "traces")
    read = run("ingest", tmp_path / "traces", "--db", f"{tmp_path / 'job'}/", "--jobs", "1")
    assert (read.returncode, "1 file read" in read.stderr) == (0, True), read.stderr
    # when the same is asked again of traces that the folder lies among
    again = run("ingest", tmp_path, "--db", tmp_path / "job", "--run", "traces", "--jobs", "1")
    packed = run("pack", tmp_path / "job", tmp_path / "job.duckdb")
    unpacked = run("unpack", tmp_path / "job.duckdb", f"{tmp_path / 'again'}/")
    # then nothing of the folder is taken for a trace
    assert "0 files read, 1 unchanged" in again.stderr
    assert "no known kind" not in again.stderr
    assert [packed.returncode, unpacked.returncode] == [0, 0], packed.stderr + unpacked.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "job", "job.duckdb", "traces"]


def test_what_is_no_folder_database_is_refused_with_a_hint(tmp_path: Path) -> None:
    result = run("pack", tmp_path, tmp_path / "job.duckdb")

    assert result.returncode == 3
    assert "this is no database that is a folder" in result.stderr
    assert "hint: " in result.stderr


def test_a_job_array_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    shutil.copy(SAMPLE / "rank0.pt.trace.json.gz", tmp_path / "traces")
    job = f"{tmp_path / 'job'}/"

    parts = [run("ingest", tmp_path / "traces", "--db", job, "--part", f"{number}/2") for number in (2, 1)]
    early = run("pack", job, tmp_path / "job.duckdb")
    # given former parts that cannot be removed, here since they are no folder
    (tmp_path / "job" / "catalogue.duckdb.merged-before").touch()
    merged = run("merge", job)

    assert [part.returncode for part in parts] == [0, 0], parts
    assert "part 1/2: 1 trace of 1 file read" in parts[1].stderr
    assert early.returncode == 3
    assert "hint: these are parts that `ingest --part` read: `traceforge merge FOLDER`" in early.stderr
    assert (merged.returncode, "1 file read" in merged.stderr) == (0, True), merged.stderr
    assert "catalogue.duckdb.merged-before: these parts are merged" in merged.stderr
    again = run("merge", job)
    assert (again.returncode, "no parts lie in this folder" in again.stderr, "hint: " in again.stderr) == (
        3,
        True,
        True,
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--db", "job/", "--part", "0/8"], "--part takes i/n"),
        (["--db", "job/", "--part", "9/8"], "--part takes i/n"),
        (["--db", "job/", "--part", "1"], "--part takes i/n"),
        (["--db", "job.duckdb", "--part", "1/8"], "--part needs a database that is a folder"),
        (["--db", "job/", "--part", "1/8", "--strict"], "are not of a part"),
        (["--db", "job/", "--part", "1/8", "--rack-pattern", "(r)"], "are not of a part"),
    ],
)
def test_a_part_that_cannot_be_is_refused_with_a_hint(words: list[str], told: str) -> None:
    result = run("ingest", SAMPLE, *words)

    assert result.returncode == 2
    assert told in result.stderr
    assert "hint: " in result.stderr


def test_what_may_not_be_read_is_refused_by_its_reader_and_is_no_wrong_usage() -> None:
    option = typer.Argument()

    def command(file: Path) -> None: ...

    command.__annotations__["file"] = Annotated[Path, option]
    audible(command)

    assert not option.readable
