"""`synth` and `demo` from the command line."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.running import run
from traceforge.cli.app import app

RUN = CliRunner()


def test_synth_writes_the_job_that_options_describe(tmp_path: Path) -> None:
    arguments = ["--nodes", "1", "--devices", "2", "--iterations", "3", "--fault", "input_stall:place=1,severity=0.5"]
    done = RUN.invoke(app, ["synth", "-o", str(tmp_path / "job"), *arguments], catch_exceptions=False)

    assert done.exit_code == 0
    assert len(list((tmp_path / "job").glob("rank*.json.gz"))) == 2
    (fault,) = json.loads((tmp_path / "job" / "truth.json").read_text())["faults"]
    assert (fault["kind"], fault["place"], len(fault["removed_ns"])) == ("input_stall", 1, 3)


@pytest.mark.parametrize("fault", ["gremlins", "gc_pause:who=2", "gc_pause:place=two"])
def test_a_fault_that_does_not_exist_is_a_usage_error(tmp_path: Path, fault: str) -> None:
    done = RUN.invoke(app, ["synth", "-o", str(tmp_path), "--fault", fault])

    assert done.exception is not None
    assert getattr(done.exception, "exit_code", None) == 2


def test_a_folder_in_the_place_of_a_scenario_is_told_where_it_belongs(tmp_path: Path) -> None:
    result = run("synth", tmp_path)

    assert result.returncode == 3
    assert "cannot be read as a scenario: Is a directory" in result.stderr
    assert "hint: a scenario is a TOML file; -o names the folder" in result.stderr


def test_demo_shows_the_verdict_beside_the_truth(tmp_path: Path) -> None:
    done = run("demo", "-o", tmp_path)

    assert done.returncode == 0, done.stderr
    assert "Injected: compute_straggler:place=5" in done.stdout
    assert "Rank 5 computes longer" in done.stdout
    assert (tmp_path / "report.html").exists()


def test_synth_writes_what_nccl_and_the_observers_leave_when_asked(tmp_path: Path) -> None:
    arguments = ["--nodes", "1", "--devices", "2", "--iterations", "2", "--nccl-log", "2.27.5", "--stamped"]
    done = RUN.invoke(
        app, ["synth", "-o", str(tmp_path / "job"), *arguments, "--inspector", "--execution-traces"],
        catch_exceptions=False,
    )  # fmt: skip

    assert done.exit_code == 0
    names = {path.name for path in (tmp_path / "job").glob("*.gz")}
    assert {"nccl.node0.1001.log.gz", "nccl_inspector.node0.1001.jsonl.gz", "rank1.et.json.gz"} <= names


def test_a_version_of_nccl_that_is_not_known_is_a_usage_error(tmp_path: Path) -> None:
    done = RUN.invoke(app, ["synth", "-o", str(tmp_path), "--nccl-log", "9.9"])

    assert getattr(done.exception, "exit_code", None) == 2
