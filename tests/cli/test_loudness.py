"""`--quiet` and `--verbose`: how much is said beside the answer. Lists without a database; runs by pattern."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.running import SAMPLE, run
from traceforge.cli.loudness import Timings


def test_a_quiet_command_says_nothing_but_its_answer(healthy: Path, tmp_path: Path) -> None:
    usual = run("report", healthy, "-o", tmp_path / "report.html")
    quiet = run("report", healthy, "-o", tmp_path / "report.html", "--quiet")

    assert "report: " in usual.stderr
    assert (quiet.returncode, quiet.stderr) == (0, "")
    assert quiet.stdout == usual.stdout


def test_a_quiet_command_still_says_its_errors() -> None:
    result = run("info", "nowhere.duckdb", "--quiet")

    assert result.returncode == 3
    assert result.stderr.startswith("error: ")


def test_quiet_holds_for_one_command_alone(healthy: Path, tmp_path: Path) -> None:
    run("info", healthy, "--json", "--quiet")

    assert "report: " in run("report", healthy, "-o", tmp_path / "report.html").stderr


def test_a_verbose_command_says_what_each_stage_took(tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    (traces / "rank0.pt.trace.json.gz").write_bytes((SAMPLE / "rank0.pt.trace.json.gz").read_bytes())

    result = run("ingest", traces, "--db", tmp_path / "job.duckdb", "--verbose", "--jobs", "1")

    assert (result.returncode, result.stdout) == (0, "")
    timed = re.findall(r"^(\w+) +\d+\.\d\d s +\d+\.\d\d CPU s$", result.stderr, re.MULTILINE)
    stages = ["align", "timeline", "operation", "fabric", "graph", "replay", "attribute", "forecast"]
    assert timed == ["start", "reading", *stages, "answer"]


def test_time_of_a_stage_that_comes_again_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = iter([(0.0, 0.0), (1.0, 0.5), (3.0, 1.0), (6.0, 4.0)])
    monkeypatch.setattr("traceforge.cli.loudness._clocks", lambda: next(clocks))
    timings = Timings(_began=(0.0, 0.0))

    for stage in ("align", "start", "align", "end"):
        timings.turn_to(stage)

    # start 0 to 0 and 1 to 3 s, align 0 to 1 and 3 to 6 s
    assert timings.stages == {"start": (2.0, 0.5), "align": (4.0, 3.5)}


def test_policies_and_changes_are_listed_without_a_database() -> None:
    listed = json.loads(run("replay", "--list", "--json").stdout)

    assert "bounded_delay" in {one["name"] for one in listed["policies"]}
    assert {"name", "parameters", "description"} == set(listed["edits"][0])
    assert "fix_rank" in run("replay", "--list").stdout


def test_metrics_are_listed_as_json() -> None:
    listed = json.loads(run("check", "--list", "--json").stdout)["metrics"]

    assert "iteration_ms" in {one["name"] for one in listed}


def test_a_run_is_named_by_a_pattern(two_runs: Path) -> None:
    one = run("doctor", two_runs, "--run", "heal*", "--json")
    assert one.returncode == 0, one.stderr
    assert one.stdout == run("doctor", two_runs, "--run", "healthy", "--json").stdout
    several = run("doctor", two_runs, "--run", "*")
    assert several.returncode == 2
    assert "hint: name one with --run: " in several.stderr


def test_replay_takes_traces(tmp_path: Path) -> None:
    result = run("replay", SAMPLE, "--policy", "none", "--json")

    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["outcomes"][0]["policy"] == "none"


def test_a_forecast_names_its_currency(two_runs: Path) -> None:
    assert (
        json.loads(run("forecast", two_runs, "--run", "heal*", "--currency", "EUR", "--json").stdout)["assumptions"][
            "currency"
        ]
        == "EUR"
    )
