"""`traceforge check` as a pipeline meets it: exit codes, files, words."""

import json
from pathlib import Path
from xml.etree import ElementTree

from tests.cli.running import run
from tests.conftest import ROOT
from tests.given import MS, add_run, data_parallel_job
from traceforge import api
from traceforge.store.database import Store


def test_kept_limits_end_with_0_and_exceeded_ones_with_10(healthy: Path, tmp_path: Path) -> None:
    kept = run("check", healthy, "--max", "iteration_ms=200", "--max", "finding_confidence=low")
    assert (kept.returncode, len(kept.stdout.splitlines())) == (0, 2), kept.stderr

    files = ["--junit", tmp_path / "check.xml", "--markdown", tmp_path / "check.md"]
    broken = run("check", healthy, "--max", "iteration_ms=50", *files)
    assert broken.returncode == 10
    assert broken.stdout.startswith("exceeded:")
    suite = ElementTree.fromstring((tmp_path / "check.xml").read_text(encoding="utf-8"))  # noqa: S314
    assert suite.attrib["failures"] == "1"
    assert "**exceeded**" in (tmp_path / "check.md").read_text(encoding="utf-8")


def test_a_breach_inside_the_noise_passes_unless_told_otherwise(healthy: Path) -> None:
    # given the mean itself less a hair as a limit
    document = json.loads(run("check", healthy, "--max", "iteration_ms=1e9", "--json").stdout)
    assert document["schema_version"] == 1
    limit = f"iteration_ms={document['limits'][0]['measured']['value'] - 0.01}"

    # then it is told, and fails only on demand
    lenient = run("check", healthy, "--max", limit)
    assert (lenient.returncode, lenient.stdout.partition(":")[0]) == (0, "within noise")
    assert run("check", healthy, "--max", limit, "--fail-within-noise").returncode == 10


def test_a_kept_summary_is_a_baseline(two_runs: Path) -> None:
    # given the summary of the healthy run, as the repository keeps it
    baseline = ROOT / "reports" / "healthy" / "summary.json"

    # then the healthy run holds it, and the one with a slow rank does not
    same = run("check", two_runs, "--run", "healthy", "--baseline", baseline, "--tolerance", "1%")
    slow = run("check", two_runs, "--run", "compute_straggler", "--baseline", baseline, "--tolerance", "cv=50%")
    assert same.returncode == 0, same.stdout + same.stderr
    assert slow.returncode == 10
    assert "finding_confidence is high, limit none (baseline none)" in slow.stdout


def test_a_database_is_a_baseline_too(healthy: Path, two_runs: Path) -> None:
    result = run("check", two_runs, "--run", "compute_straggler", "--baseline", healthy)
    assert result.returncode == 10, result.stderr


def test_what_cannot_be_checked_is_said(healthy: Path, tmp_path: Path) -> None:
    (tmp_path / "text.json").write_text("[1, 2", encoding="utf-8")
    (tmp_path / "list.json").write_text("[1, 2]", encoding="utf-8")
    for arguments, code, message in (
        ([], 2, "no limit given"),
        (["--max", "speed=1"], 2, "metrics: iteration_ms"),
        (["--tolerance", "5%"], 2, "--tolerance without --baseline"),
        (["--baseline", tmp_path / "gone.json"], 3, "cannot be read"),
        (["--baseline", tmp_path / "text.json"], 3, "not a JSON document"),
        (["--baseline", tmp_path / "list.json"], 3, "not a summary"),
        (["--max", "cv=1", "--junit", tmp_path / "no" / "x.xml"], 3, "cannot be written"),
    ):
        result = run("check", healthy, *arguments)
        assert (result.returncode, "Traceback" in result.stderr) == (code, False), result.stderr
        assert message in result.stderr


def test_the_metrics_are_listed(healthy: Path) -> None:
    assert "exposed_communication_share" in run("check", healthy, "--list").stdout


def test_a_baseline_on_another_number_of_ranks_is_refused_as_compare_refuses_it(tmp_path: Path) -> None:
    # given a run on two ranks, and the summary of one on four
    path, summary = tmp_path / "two.duckdb", tmp_path / "four.json"
    with Store(path) as store:
        add_run(store, *data_parallel_job([[50 * MS] * 2] * 8), run_name="two", world_size=2)
        add_run(store, *data_parallel_job([[50 * MS] * 4] * 8), run_name="four", world_size=4)
        api.analyze(store)
        summary.write_text(json.dumps(api.summary(store, run="four")), encoding="utf-8")

    refused = run("check", path, "--run", "two", "--baseline", summary)
    forced = run("check", path, "--run", "two", "--baseline", summary, "--force")
    compared = run("compare", path, "--run-a", "four", "--run-b", "two")

    assert refused.returncode == compared.returncode == 2
    assert "not comparable by world_size (4 against 2)" in refused.stderr
    assert "not comparable by world_size (4 against 2)" in compared.stderr
    assert forced.returncode in (0, 3, 10), forced.stderr
    assert "iteration_ms" in forced.stdout
