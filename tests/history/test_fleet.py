"""A fleet: its answer, the check for CI, metrics and dashboard, and the page."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.history.made import fleet_of, made
from traceforge.history.addition import add_summaries
from traceforge.history.fleet_text import answer, answer_state
from traceforge.history.openmetrics import families, openmetrics
from traceforge.history.page import fleet_page

STILL = [100.0, 101, 99, 100, 102, 98, 100, 101, 99, 100]
HOSTS = tuple(f"node{number}" for number in range(8))


def test_a_step_is_dated_to_its_commit_and_its_new_host(tmp_path: Path) -> None:
    # given ten runs at one pace, and three slower ones on a host that was not there before
    slower = [made(10 + at, value, hosts=("a", "b", "c", "x")) for at, value in enumerate((120, 121, 119))]

    fleet = fleet_of(tmp_path / "h.duckdb", [*(made(at, value) for at, value in enumerate(STILL)), *slower])

    ((series, change), *_) = fleet.regressions
    assert (series.metric, change.first.run_name, change.found.run_name) == ("iteration_ms", "night10", "night12")
    assert (change.before.commit_id, change.first.commit_id) == ("commit9", "commit10")
    assert (change.hosts_came, change.hosts_went) == (("x",), ("d",))
    assert answer_state(fleet) == "finding"
    assert "since run night10" in answer(fleet)[0]


def test_runs_of_other_scales_are_other_series(tmp_path: Path) -> None:
    small = [made(at, value) for at, value in enumerate(STILL)]
    large = [made(10 + at, 150, hosts=HOSTS) for at in range(3)]

    fleet = fleet_of(tmp_path / "h.duckdb", [*small, *large])

    assert fleet.regressions == []
    assert answer_state(fleet) == "cannot_be_known"


def test_jobs_without_devices_lose_no_gpu_hours(tmp_path: Path) -> None:
    gpus = made(0, hours=10.0, loss_share=0.1)
    fleet = fleet_of(tmp_path / "h.duckdb", [gpus, made(1, has_devices=False, job="cpu", hours=10.0)])

    # then 8 ranks lose a tenth of 24 hours a day, and of the 10 that the job ran
    (row,) = fleet.losses
    assert row["job"] == "pretrain"
    assert row["lost_gpu_hours_per_day"] == pytest.approx(19.2)
    assert row["lost_gpu_hours"] == pytest.approx(8.0)


def test_runs_of_one_job_follow_one_another_and_are_not_lost_at_once(tmp_path: Path) -> None:
    # given three runs of a job of 8 GPUs, two of which lose a tenth
    runs = [made(at, hours=10.0, loss_share=share) for at, share in enumerate((0.1, 0.1, 0.0))]
    fleet = fleet_of(tmp_path / "h.duckdb", runs)

    # then a day of the job loses two thirds of 19.2 GPU-hours, and its runs lost 16 in all
    assert sum(row["lost_gpu_hours_per_day"] for row in fleet.losses) == pytest.approx(12.8)
    assert sum(row["lost_gpu_hours"] for row in fleet.losses) == pytest.approx(16.0)


@pytest.mark.parametrize(
    ("values", "guilty", "code"),
    [
        ([*STILL, 100, 101, 99], [], 0),
        ([*STILL, 120, 121, 119], [], 10),
        ([*STILL, 80, 81, 79], [], 0),
        ([*STILL, 120, 121, 119, 120, 121, 119], [], 0),  # said when it came, and not for ever
        (STILL, [], 3),
        ([*STILL, 100, 101, 99], [1, 4, 6, 8], 10),
    ],
)
def test_check_ends_with_what_the_last_runs_show(
    values: list[float], guilty: list[int], code: int, tmp_path: Path
) -> None:
    runs = [made(at, value, hosts=HOSTS, guilty="node3" if at in guilty else None) for at, value in enumerate(values)]
    add_summaries(tmp_path / "h.duckdb", runs)

    result = run("history", "check", tmp_path / "h.duckdb", "--json")

    assert result.returncode == code, result.stdout
    assert json.loads(result.stdout)["exit_code"] == code


def test_series_that_are_too_short_fail_a_strict_check(tmp_path: Path) -> None:
    runs = [*(made(at, value) for at, value in enumerate([*STILL, 100, 101, 99])), made(20, job="new")]
    add_summaries(tmp_path / "h.duckdb", runs)

    assert run("history", "check", tmp_path / "h.duckdb").returncode == 0
    assert run("history", "check", tmp_path / "h.duckdb", "--strict").returncode == 3
    assert run("history", "check", tmp_path / "h.duckdb", "--job", "nonsense").returncode == 2


def test_openmetrics_escapes_names_and_has_a_sample_a_series(tmp_path: Path) -> None:
    fleet = fleet_of(tmp_path / "h.duckdb", [made(0, 100.0, job='a"b\\c\nd'), made(1, 50.0, job="e")])

    text = openmetrics(fleet)

    assert 'traceforge_verdict_runs{job="a\\"b\\\\c\\nd",verdict="nothing_significant",confidence="high"} 1.0\n' in text
    assert 'traceforge_iteration_seconds{job="e",series="e, 8 ranks"} 0.05\n' in text
    assert text.endswith("# EOF\n")
    sample = re.compile(r'[a-z_0-9]+(\{[a-z]+="(\\.|[^"\\\n])*"(,[a-z]+="(\\.|[^"\\\n])*")*\})? \S+')
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert [line for line in lines if not sample.fullmatch(line)] == []


def test_the_dashboard_asks_for_metrics_that_there_are(tmp_path: Path) -> None:
    fleet = fleet_of(tmp_path / "h.duckdb", [made(0, guilty="a")])
    known = {family.name for family in families(fleet)} | {"traceforge_exposed_communication_ratio"}

    panels = json.loads(run("history", "dashboard").stdout)["panels"]
    asked = {
        name for panel in panels for one in panel["targets"] for name in re.findall(r"traceforge_\w+", one["expr"])
    }

    assert panels
    assert asked
    assert asked <= known


def test_the_page_names_the_guilty_host_and_shows_the_query_behind_it(tmp_path: Path) -> None:
    runs = [made(at, 100, hosts=HOSTS, guilty="node3" if at in {1, 4, 6, 8} else None) for at in range(30)]
    fleet = fleet_of(tmp_path / "h.duckdb", runs)

    html, markdown = fleet_page(fleet, "fleet")

    assert "Host node3 is accused in 4 of its 30 runs, more than chance allows (p = 0.002)." in html
    assert "cannot be told apart" in html
    # and its header counts series as the tile below does
    told = re.sub("[\u00a0\u202f]", " ", html)
    (header,) = re.findall(r"<dd>\d+, (\d+) long enough to be judged</dd>", told)
    assert re.search(rf"in \d+ metrics? of {header} series; ", told)
    assert 'id="query-participation"' in html
    assert "node3 is accused in 4 of its 30 runs" in markdown


def test_what_was_not_judged_is_not_counted_as_none(tmp_path: Path) -> None:
    # given five runs, too few for a lasting change, of jobs whose traces name no host
    fleet = fleet_of(tmp_path / "h.duckdb", [made(at, value, hosts=()) for at, value in enumerate(STILL[:5])])

    html, _ = fleet_page(fleet, "fleet")

    assert answer(fleet)[0] == "No series is long enough to tell a lasting change, and no trace names a host."
    assert re.search(r"not judged: no series has 13\s+runs", html.replace("\u00a0", " "))
    assert "no run names its hosts" in html


def test_one_run_draws_no_trend(tmp_path: Path) -> None:
    # given two runs of a job, and one of each of two others
    jobs = ["often", "often", "once", "seldom"]
    fleet = fleet_of(tmp_path / "h.duckdb", [made(at, STILL[at], job=job) for at, job in enumerate(jobs)])

    html, _ = fleet_page(fleet, "fleet")

    told = re.sub("[\u00a0\u202f]", " ", html)
    assert re.findall(r"Iteration time of (\w+),", told).count("often") > 0
    assert "Iteration time of once" not in told
    assert "2 series of one run each: no trend to draw." in told


def test_names_of_runs_and_hosts_execute_nothing(tmp_path: Path) -> None:
    bad = "<img src=x onerror=alert(1)>"
    runs = [
        made(at, value, job=bad, hosts=(bad, "b"), run_name=bad) for at, value in enumerate([*STILL, 120, 121, 119])
    ]

    html, _ = fleet_page(fleet_of(tmp_path / "h.duckdb", runs), bad)

    assert "<img src=x" not in html
    assert "&lt;img src=x" in html


def test_the_commands_write_files_and_what_they_say(tmp_path: Path) -> None:
    file = tmp_path / "h.duckdb"
    add_summaries(file, [made(at, value) for at, value in enumerate([*STILL, 120, 121, 119])])
    page, prom = tmp_path / "fleet.html", tmp_path / "traceforge.prom"

    told = run("history", "report", file, "-o", page, "--md", tmp_path / "fleet.md", "--price", "2.5")
    as_json = run("history", "report", file, "-o", page, "--json", "-")

    assert told.returncode == 0, told.stderr
    assert "worse by 20 % since run night10" in " ".join(told.stdout.split())
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads(as_json.stdout)["schema_version"] == 1
    assert run("history", "metrics", file, "-o", prom).returncode == 0
    assert prom.read_text(encoding="utf-8").endswith("# EOF\n")


def test_runs_are_chosen_by_a_pattern(two_runs_database: Path, tmp_path: Path) -> None:
    file = tmp_path / "h.duckdb"

    added = run("history", "add", file, two_runs_database, "--run", "heal*", "--job", "nightly")
    none = run("history", "add", file, two_runs_database, "--run", "x*")

    assert (added.returncode, none.returncode) == (0, 2)
    assert (
        run("sql", file, "SELECT job, run_name FROM history.run", "--format", "csv").stdout
        == "job,run_name\nnightly,healthy\n"
    )


@pytest.fixture
def two_runs_database(sample_database: object) -> Path:
    path: Path = sample_database("compute_straggler", "healthy")  # type: ignore[operator]
    return path


def test_runs_of_one_minute_stand_in_the_order_they_were_added(tmp_path: Path) -> None:
    """Generated runs all begin at one moment, give or take the error of their clocks, which says nothing of order."""
    began_ns = 1_735_689_610 * 1_000_000_000
    # given: added first to last, by clocks that are 0, 1, 2 and 3 ms fast, the other way round
    fleet = fleet_of(tmp_path / "h.duckdb", [made(n, recorded_ns=began_ns - n * 1_000_000) for n in range(4)])

    assert [point.run_name for point in fleet.series[0].points] == ["night0", "night1", "night2", "night3"]
