"""`traceforge compare` and `report --baseline` as a person meets them."""

import json
from pathlib import Path

from tests.cli.running import run
from tests.conftest import ROOT


def test_two_runs_of_one_database_are_compared_in_a_screenful(two_runs: Path) -> None:
    result = run("compare", two_runs, "--run-a", "healthy", "--run-b", "compute_straggler")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith("COMPARED with healthy: Slower: ")
    assert len(lines) <= 15
    assert max(map(len, lines)) <= 100
    assert any("found:" in line and "new: Rank 2 " in line for line in lines)
    assert any("operation:" in line and "calls on rank 2" in line for line in lines)


def test_two_databases_are_compared_as_json(healthy: Path, two_runs: Path) -> None:
    result = run("compare", healthy, two_runs, "--run-b", "compute_straggler", "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["schema_version"] == 1
    assert document["iteration"]["significant"] is True
    assert document["baseline"]["run"] == "healthy"


def test_a_folder_is_read_first(healthy: Path) -> None:
    result = run("compare", healthy, ROOT / "sample_traces" / "tp2dp2")
    assert result.returncode == 0, result.stderr
    assert "not comparable:" in result.stdout


def test_what_cannot_be_compared_is_a_usage_error_with_a_hint(healthy: Path, two_runs: Path, tmp_path: Path) -> None:
    for arguments, message in (
        ([healthy], "nothing to compare with"),
        ([healthy, healthy], "A and B are the same run"),
        ([two_runs, healthy], "several runs"),
        ([two_runs, "--run-a", "healthy", "--run-b", "gone"], "no run `gone`"),
    ):
        result = run("compare", *arguments)
        assert result.returncode == 2, result.stderr
        assert message in result.stderr
        assert "hint: " in result.stderr
    assert run("compare", healthy, tmp_path / "gone").returncode == 3


def test_a_report_with_a_baseline_has_a_section_on_it(healthy: Path, two_runs: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.html"
    arguments = ["--run", "compute_straggler", "--baseline", healthy, "-o", output]
    result = run("report", two_runs, *arguments)
    assert result.returncode == 0, result.stderr
    text = output.read_text(encoding="utf-8")
    assert 'id="comparison"' in text
    assert "--baseline</span> healthy.duckdb" in text
