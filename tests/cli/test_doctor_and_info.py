"""`traceforge doctor` and `traceforge info` as a person meets them."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.conftest import ROOT


def test_doctor_reads_a_folder_and_says_what_is_complete_and_what_to_set() -> None:
    result = run("doctor", ROOT / "sample_traces" / "healthy")
    assert result.returncode == 0, result.stderr
    assert "Complete:" in result.stdout
    assert "Who waits for whom? all 4 ranks" in result.stdout
    assert "Not needed:" in result.stdout


def test_doctor_answers_in_json(healthy: Path) -> None:
    document = json.loads(run("doctor", healthy, "--json").stdout)
    assert document["schema_version"] == 1
    assert document["checks"][0] == {
        "code": "timeline",
        "question": "Where does the time of an iteration go?",
        "status": "complete",
        "evidence": "4 profiler traces",
        "remedy": "Record a timeline with torch.profiler on every rank.",
        "setting": document["checks"][0]["setting"],
    }


def test_doctor_of_what_is_no_trace_is_an_error_with_a_hint(tmp_path: Path) -> None:
    for target in (tmp_path, tmp_path / "gone", ROOT / "LICENSE"):
        result = run("doctor", target)
        assert result.returncode == 3
        assert result.stderr.startswith("error: ")
        assert "Traceback" not in result.stderr


def test_info_says_what_a_database_holds(two_runs: Path) -> None:
    result = run("info", two_runs)
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) <= 20
    assert "compute_straggler" in result.stdout
    assert "ranks      4 of 4, 4 hosts: node0, node1, node2 and node3" in result.stdout
    assert "iterations 30 that count" in result.stdout


def test_info_in_json_counts_what_the_tables_hold(two_runs: Path) -> None:
    database = json.loads(run("info", two_runs, "--json").stdout)["database"]
    assert [one["run_name"] for one in database["runs"]] == ["compute_straggler", "healthy"]
    assert database["size_bytes"] == two_runs.stat().st_size
    assert database["stages"][0] == "align"
    assert database["runs"][0]["ranks"] == 4


@pytest.mark.parametrize(
    ("kind", "ranks", "headline"),
    [
        (
            "*.log.gz",
            "ranks      no timeline, 8 in NCCL logs, 2 hosts: node0 and node1",
            "VERDICT: The logs show 3 problems, the first: On host node0",
        ),
        ("*.et.json.gz", "ranks      no timeline, 8 in execution traces, hosts unknown", "VERDICT: Execution traces"),
    ],
)
def test_a_job_without_timelines_has_ranks_all_the_same(kind: str, ranks: str, headline: str, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    for file in (ROOT / "sample_traces" / "far_nic").glob(kind):
        shutil.copy(file, folder)

    database = tmp_path / "job.duckdb"
    run("ingest", folder, "--db", database)

    assert ranks in run("info", database).stdout

    # and the verdict claims no confidence in not knowing, but says what was read
    told = run("report", database, "-o", tmp_path / "report.html").stdout
    assert told.startswith(headline)
    assert "96 calls of together 1.5 GB a rank in group “mesh_tp”" in " ".join(told.split()) or kind == "*.log.gz"
