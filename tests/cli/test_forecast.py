"""`traceforge forecast`: a table of throughputs or databases in, at most 25 lines or JSON out."""

import json
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.given import MS, Trace, add_run, data_parallel_job
from traceforge import api
from traceforge.store.database import Store

TABLE = "nodes,throughput,cv\n4,1024,.02\n8,1980,.04\n16,3600,.09\n32,5800,.15\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "points.csv"
    path.write_text(TABLE, encoding="utf-8")
    return path


def test_a_table_of_throughputs_becomes_a_plan(table: Path) -> None:
    result = run("forecast", "--points", table, "--samples", "1e9", "--gpus-per-rank", 8, "--ranks", "96,256")

    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert len(lines) <= 25
    assert lines[0] == "FORECAST  4 scales measured, 4 to 32 ranks; throughput in samples/s"
    assert any(line.startswith("    64*       7,810     6,700 to 9,103") for line in lines)
    assert "peak from 115" in result.stdout
    assert "assumed equal" in result.stderr


def test_the_same_as_json_with_prices_of_ones_own(table: Path) -> None:
    plain, dear = (
        json.loads(run("forecast", "--points", table, "--price", price, "--json").stdout) for price in (1, 10)
    )

    assert plain["schema_version"] == 2
    assert [row["ranks"] for row in plain["plan"]] == [4, 8, 16, 32, 64, 128]
    assert dear["plan"][0]["cost_per_sample"] == pytest.approx(10 * plain["plan"][0]["cost_per_sample"])
    assert plain["one_more_rank"] == "helps"
    assert plain["next_measurement"]["ranks"] == 64


def test_two_scales_are_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("ranks,throughput\n4,400\n8,700\n", encoding="utf-8")

    result = run("forecast", "--points", path)

    assert "warning: two scales cannot test a model" in result.stdout
    assert json.loads(run("forecast", "--points", path, "--json").stdout)["plan"][0]["throughput_low"] is None


def test_one_scale_makes_no_curve(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("ranks,throughput\n4,400\n", encoding="utf-8")

    assert "No scaling curve" in run("forecast", "--points", path).stdout


@pytest.mark.parametrize(
    ("text", "options", "code", "said"),
    [
        (TABLE, ["--ranks", "many"], 2, "--ranks is no list of whole numbers"),
        (TABLE, ["--ranks", "1000000"], 2, "must lie between 1 and 2048"),
        (TABLE, ["--run", "x"], 2, "there is no run `x`"),
        ("ranks,throughput,dtype\n4,1,bf16\n8,2,fp32\n", [], 3, "their element type differs"),
        ("ranks,throughput\n4,quick\n", [], 3, "line 2"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    tmp_path: Path, text: str, options: list[str], code: int, said: str
) -> None:
    path = tmp_path / "points.csv"
    path.write_text(text, encoding="utf-8")

    result = run("forecast", "--points", path, *options)

    assert result.returncode == code
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_nothing_to_forecast_from_is_an_error_of_use() -> None:
    result = run("forecast")

    assert result.returncode == 2
    assert "nothing to forecast from" in result.stderr


def test_a_run_that_makes_no_point_is_named_with_why(tmp_path: Path) -> None:
    # given a run of eight iterations, and one whose traces mark no steps
    path = tmp_path / "two.duckdb"
    with Store(path) as store:
        add_run(store, *data_parallel_job([[50 * MS] * 2] * 8), run_name="good", world_size=2)
        add_run(store, Trace(0).kernel(0, 100), Trace(1).kernel(0, 100), run_name="unmarked", world_size=2)
        api.analyze(store)

    result = run("forecast", path)

    # then the answer says first that it rests on one of them
    assert result.returncode == 0, result.stderr
    first, second = result.stdout.splitlines()[:2]
    assert first == "1 of 2 runs used"
    assert second.startswith("  left out: unmarked (two.duckdb): none of 1 iteration can be judged")
    document = json.loads(run("forecast", path, "--json").stdout)
    assert [one["name"] for one in document["left_out"]] == ["unmarked (two.duckdb)"]
