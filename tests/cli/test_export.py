"""`traceforge export chakra` as a person meets it."""

from pathlib import Path

import pytest

from tests.cli.running import SAMPLE, run


def test_one_file_a_rank_is_written_and_named_on_stdout(healthy: Path, tmp_path: Path) -> None:
    result = run("export", "chakra", healthy, "-o", tmp_path / "out", "--prefix", "../a b")

    assert result.returncode == 0, result.stderr
    names = [Path(line).name for line in result.stdout.split("\n") if line]
    assert names == [f".._a_b.{rank}.et" for rank in range(4)]
    assert all((tmp_path / "out" / name).stat().st_size > 100_000 for name in names)
    assert "timed" in result.stderr


def test_an_unknown_run_is_said_in_a_line_and_a_hint(healthy: Path, tmp_path: Path) -> None:
    result = run("export", "chakra", healthy, "-o", tmp_path, "--run", "other")

    assert result.returncode == 2
    assert "hint:" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_traces_become_one_archive_for_perfetto(healthy: Path, tmp_path: Path) -> None:
    result = run("export", "perfetto", healthy, "-o", tmp_path / "job.tar", "--traces", SAMPLE)

    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == str(tmp_path / "job.tar")
    assert "4 traces; clocks drift by up to" in result.stderr


def test_the_tables_become_parquet(healthy: Path, tmp_path: Path) -> None:
    result = run("export", "parquet", healthy, "-o", tmp_path / "out")
    again = run("export", "parquet", healthy, "-o", tmp_path / "out")

    assert result.returncode == 0, result.stderr
    assert (tmp_path / "out" / "attribute.finding").parent.joinpath("README.md").exists()
    assert again.returncode == 2
    assert "hint:" in again.stderr


@pytest.mark.parametrize("form", ["perfetto", "parquet", "chakra"])
def test_exports_can_be_redacted_and_then_need_no_traces(healthy: Path, tmp_path: Path, form: str) -> None:
    result = run("export", form, healthy, "-o", tmp_path / "out", "--redact")

    assert result.returncode == 0, result.stderr
    written = tmp_path / "out"
    files = [written] if written.is_file() else [path for path in written.rglob("*") if path.is_file()]
    assert files
    assert SAMPLE.name not in result.stdout + result.stderr
    assert not any(SAMPLE.name.encode() in file.read_bytes() for file in files)
