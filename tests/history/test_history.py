"""A history: what is added is there once, whoever adds it, and nothing foreign is read."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tests.cli.running import run
from tests.conftest import ROOT
from tests.history.made import made
from traceforge import api
from traceforge.errors import InputUnusableError, QueryError, StoreBusyError
from traceforge.history.addition import add_summaries
from traceforge.history.fleet import fleet_query, read_fleet
from traceforge.history.summary import Said, summarise
from traceforge.history.tables import history_tables, is_history, open_history
from traceforge.store.database import Store
from traceforge.store.history_file import HistoryFile

WRITER = """
import sys
from pathlib import Path
from tests.history.made import made
from traceforge.history.addition import add_summaries
for number in range(5):
    add_summaries(Path(sys.argv[1]), [made(10 * int(sys.argv[2]) + number)])
"""

KILLED_MAKER = """
import os, signal, sys
from pathlib import Path
from traceforge.history.tables import open_history
from traceforge.store import history_file
history_file.link_whole = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
open_history(Path(sys.argv[1]), read_only=False)
"""

HOLDER = """
import duckdb, sys
connection = duckdb.connect(sys.argv[1])
print(1, flush=True)
sys.stdin.read()
"""


def test_a_summary_holds_what_the_run_s_own_database_says(sample_database: Callable[..., Path], tmp_path: Path) -> None:
    # given the sample of a rank that does more work than its peers
    with Store(sample_database("compute_straggler"), read_only=True) as store:
        own = summarise(store, 0, Said(7, job="sample", commit="1f3a"))
        findings = store.rows("SELECT finding_id, cause, delay_ns_per_iteration FROM attribute.finding ORDER BY 1")
        judged = api.summary(store)
        lost = store.value(
            "SELECT SUM(delay_ns) FROM attribute.delay JOIN timeline.iteration USING (run_id, iteration) WHERE "
            "NOT is_warmup"
        )

    # when it is added to a history
    add_summaries(tmp_path / "fleet.duckdb", [own])
    with open_history(tmp_path / "fleet.duckdb") as history:
        (row,) = history.records("FROM history.run")
        kept = history.rows("SELECT finding_id, cause, delay_ns_per_iteration FROM history.finding ORDER BY 1")
        metrics = dict(history.rows("SELECT metric, value FROM history.metric"))
        shares = history.value("SELECT SUM(share) FROM history.bottleneck")
        losses = history.value("SELECT SUM(delay_ns_per_iteration) FROM history.loss")
        members = history.rows("SELECT name, ranks, is_accused FROM history.member ORDER BY name")

    # then every number is the run's own
    assert kept == findings
    assert (row["job"], row["commit_id"], row["ranks"], row["hosts"], row["has_devices"]) == (
        "sample",
        "1f3a",
        4,
        4,
        False,
    )
    assert row["headline"] == judged["verdict"]["headline"]  # type: ignore[index]
    assert metrics["iteration_ms"] == pytest.approx(judged["iterations"]["mean_ns"] / 1e6, abs=1e-5)  # type: ignore[index]
    assert losses == pytest.approx(lost / row["iterations"])
    assert shares == pytest.approx(1)
    # and its host is not accused, as the rank has more to do
    assert members == [(f"node{rank}", [rank], False) for rank in range(4)]


def test_a_run_that_is_added_again_is_replaced_and_keeps_its_place(tmp_path: Path) -> None:
    file = tmp_path / "fleet.duckdb"

    assert add_summaries(file, [made(0, 100.0), made(1, 100.0)]) == 0
    assert add_summaries(file, [made(0, 130.0)]) == 1

    with open_history(file) as history:
        assert history.rows("SELECT sequence, mean_iteration_ns FROM history.run ORDER BY 1") == [
            (0, 130e6),
            (1, 100e6),
        ]
        assert history.value("SELECT COUNT(*) FROM history.loss") == 2


def test_several_processes_add_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    # given no history yet, and three processes that add five runs each, one by one
    file = tmp_path / "fleet.duckdb"
    command = [sys.executable, "-c", WRITER, str(file)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    writers = [subprocess.Popen([*command, str(number)], env=environment, cwd=ROOT) for number in range(3)]

    # then all of them end well, and every run is there once with a place of its own
    assert [writer.wait(timeout=240) for writer in writers] == [0, 0, 0]
    with open_history(file) as history:
        assert history.value("SELECT COUNT(*) FROM history.run") == 15
        assert history.value("SELECT COUNT(DISTINCT sequence) FROM history.run") == 15
    assert [path.name for path in tmp_path.iterdir()] == ["fleet.duckdb"]


def test_who_waits_for_too_long_is_told(tmp_path: Path) -> None:
    file = tmp_path / "fleet.duckdb"
    add_summaries(file, [made(0)])
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    waits: list[float] = []
    try:
        with pytest.raises(StoreBusyError, match="another process has held the history for 3 s"):
            HistoryFile(file, history_tables(), wait_s=3.0, pause=waits.append)
    finally:
        holder.communicate(b"")
    assert sum(waits) >= 3


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE history.loss; CREATE VIEW history.loss AS SELECT 1 AS run_key",
        "ALTER TABLE history.run ADD COLUMN more VARCHAR",
        "CREATE MACRO main.lower_all(a) AS a",
        "CREATE TABLE history.more (a INTEGER)",
    ],
)
def test_a_file_that_is_not_as_we_make_it_is_refused(tmp_path: Path, sql: str) -> None:
    file = tmp_path / "fleet.duckdb"
    add_summaries(file, [made(0)])
    with duckdb.connect(str(file)) as connection:
        connection.execute(sql)

    with pytest.raises(InputUnusableError, match="not as traceforge makes it"):
        open_history(file)


def test_neither_a_trace_database_nor_a_text_is_a_history(healthy_database: Path, tmp_path: Path) -> None:
    assert not is_history(healthy_database)
    assert not is_history(ROOT / "LICENSE")
    with pytest.raises(InputUnusableError, match="no history"):
        open_history(healthy_database)


@pytest.fixture
def healthy_database(sample_database: Callable[..., Path]) -> Path:
    return sample_database("healthy")


def test_sql_asks_a_history_and_reaches_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "fleet.duckdb"
    add_summaries(file, [made(0), made(1, guilty="b")])

    listed = run("sql", file, "--list", "--format", "csv").stdout
    asked = run("sql", file, "SELECT COUNT(*) AS runs FROM history.run", "--format", "csv")
    by_host = run("sql", file, "--name", "fleet_hosts", "--format", "csv")

    assert "history.run" in listed
    assert "fleet_hosts" in listed
    assert (asked.returncode, asked.stdout) == (0, "runs\n2\n")
    assert by_host.stdout.splitlines()[1] == "host,b,2,1,0.25"
    with open_history(file) as history, pytest.raises(QueryError):
        history.query("FROM read_text('/etc/hostname')")
    assert run("sql", file, "DELETE FROM history.run").returncode == 2


@pytest.mark.parametrize("name", ["fleet_runs", "fleet_hosts", "fleet_losses", "fleet_findings"])
def test_named_queries_answer(name: str, tmp_path: Path) -> None:
    add_summaries(tmp_path / "fleet.duckdb", [made(0), made(1, guilty="b")])

    result = run("sql", tmp_path / "fleet.duckdb", "--name", name, "--format", "csv")

    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) > 1


def test_a_named_query_of_the_other_kind_of_file_is_refused_in_words(healthy_database: Path, tmp_path: Path) -> None:
    add_summaries(tmp_path / "fleet.duckdb", [made(0)])

    of_traces = run("sql", tmp_path / "fleet.duckdb", "--name", "late_ranks")
    of_history = run("sql", healthy_database, "--name", "fleet_runs")

    assert (of_traces.returncode, of_history.returncode) == (2, 2)
    assert "`late_ranks` asks a trace database" in of_traces.stderr
    assert "`fleet_runs` asks a history" in of_history.stderr


@pytest.mark.parametrize("command", ["info", "report"])
def test_a_history_in_the_place_of_traces_is_answered_with_what_shows_it(command: str, tmp_path: Path) -> None:
    add_summaries(tmp_path / "fleet.duckdb", [made(0)])

    asked = run(command, tmp_path / "fleet.duckdb")

    assert asked.returncode == 3
    assert "hint: it is a history: `traceforge history report` shows it" in asked.stderr


def test_a_named_query_says_the_same_gpu_hours_as_the_page(tmp_path: Path) -> None:
    # given two runs of a job of 8 ranks that lose 10 and 30 % of an iteration, and another job that loses 25 %
    file = tmp_path / "fleet.duckdb"
    runs = [made(0, loss_share=0.1), made(1, loss_share=0.3), made(2, job="other", loss_share=0.25)]
    add_summaries(file, [*runs, made(3, job="without devices", has_devices=False, loss_share=0.5)])

    asked = run("sql", file, "--name", "fleet_losses", "--format", "json")

    # then a day of the first job loses 24 h x 8 x 20 % = 38.4 hours, not both runs at once, and one of the other 48
    (row,) = json.loads(asked.stdout)["rows"]
    assert row[-1] == pytest.approx(38.4 + 48.0)
    with open_history(file) as history:
        assert sum(one["lost_gpu_hours_per_day"] for one in read_fleet(history).losses) == pytest.approx(row[-1])


def test_ten_thousand_runs_are_asked_within_a_second(tmp_path: Path) -> None:
    # given 10,000 runs of 20 jobs on 4 hosts each
    file = tmp_path / "fleet.duckdb"
    add_summaries(file, [made(number, 100 + number % 7, job=f"job{number % 20}") for number in range(10_000)])

    with open_history(file) as history:
        began = time.process_time()
        for name in ("runs", "points", "participation", "verdict_mix", "lost_gpu_hours"):
            history.query(fleet_query(name))
        asked_s = time.process_time() - began
        fleet = read_fleet(history, "job3")

    assert fleet.runs == 500
    assert asked_s <= 1.0


def test_what_a_killed_maker_left_beside_a_history_is_swept_by_the_next_one(tmp_path: Path) -> None:
    words = [sys.executable, "-c", KILLED_MAKER, str(tmp_path / "fleet.duckdb")]

    killed = subprocess.run(words, cwd=ROOT, check=False)

    assert killed.returncode == -signal.SIGKILL
    assert [path.name.rpartition("-")[0] for path in tmp_path.iterdir()] == ["fleet.duckdb.export"]
    open_history(tmp_path / "fleet.duckdb", read_only=False).close()
    assert [path.name for path in tmp_path.iterdir()] == ["fleet.duckdb"]
