"""`traceforge sql`: the fifteen questions, what it refuses, the prompt, and pipes that close early."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.cli.running import run
from tests.conftest import ROOT
from traceforge.cli.prompt import ask
from traceforge.errors import QueryError

FIFTEEN = (
    "late_ranks", "iteration_times", "exposed_by_communicator", "slow_collectives", "slow_kernels", "input_outliers",
    "entry_and_exit_skew", "bus_bandwidth", "far_nics", "hosts_slow_together", "gaps_by_cause", "launch_delay",
    "carried_delay", "tail_policies", "phase_changes",
)  # fmt: skip


def answer(database: Path, name: str) -> list[dict[str, object]]:
    document = json.loads(run("sql", database, "--name", name, "--format", "json").stdout)
    return [dict(zip(document["columns"], row, strict=True)) for row in document["rows"]]


@pytest.mark.parametrize("name", FIFTEEN)
def test_each_of_the_fifteen_questions_has_a_query_that_runs(name: str, two_runs: Path) -> None:
    result = run("sql", two_runs, "--name", name, "--format", "csv")
    assert result.returncode == 0, result.stderr
    assert "," in result.stdout.splitlines()[0]


def test_the_answers_are_those_of_the_injected_fault(two_runs: Path) -> None:
    # given a run whose rank 2 computes longer in all 30 iterations (run 0), and a healthy one (run 1)
    late = answer(two_runs, "late_ranks")
    assert (late[0]["run_id"], late[0]["rank"]) == (0, 2)

    # then one chain of delay spans it, and waiting is what changed from the one to the other
    chain = answer(two_runs, "carried_delay")[0]
    assert (chain["run_id"], chain["rank"], chain["iterations"]) == (0, 2, 30)
    changes = {row["phase"]: row["change_ms"] for row in answer(two_runs, "phase_changes")}
    assert float(str(changes["wait"])) < -5
    assert {row["reach"] for row in answer(two_runs, "bus_bandwidth")} == {"between hosts"}


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "FROM '/etc/passwd'",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM glob('/*')",
        "COPY meta.run TO '/tmp/stolen.csv'",
        "ATTACH '/tmp/other.duckdb' AS other",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "CREATE TABLE meta.mine (a INTEGER)",
        "DROP TABLE meta.run",
        "UPDATE meta.run SET run_name = 'x'",
    ],
)
def test_files_settings_and_the_database_itself_are_out_of_reach(statement: str, healthy: Path) -> None:
    result = run("sql", healthy, statement)
    assert result.returncode == 2
    assert "refused the query" in result.stderr
    assert "root:" not in result.stdout


STRANGE = "SELECT 1 / 0 AS a, 'nan'::DOUBLE AS b, [1.5, '-inf'::DOUBLE] AS c, {'x': 'inf'::FLOAT} AS d, NULL AS e"


@pytest.mark.parametrize("options", [(), ("--format", "csv")])
def test_a_query_may_begin_with_a_comment(options: tuple[str, ...], healthy: Path) -> None:
    # as README prints its examples; `--` begins options, too
    result = run("sql", healthy, "-- Which runs?\nSELECT run_name FROM meta.run", *options)

    assert result.stdout.split() == ["run_name", "healthy"], result.stderr


def test_what_json_has_no_number_for_is_a_text_and_the_document_stays_valid(healthy: Path) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    document = json.loads(run("sql", healthy, STRANGE, "--format", "json").stdout, parse_constant=refuse)

    assert document["rows"] == [["inf", "nan", [1.5, "-inf"], {"x": "inf"}, None]]


def test_the_list_of_tables_and_queries_is_one_document(healthy: Path) -> None:
    document = json.loads(run("sql", healthy, "--list", "--about", "line_rate", "--format", "json").stdout)

    names = {(kind, name) for kind, name, _ in document["rows"]}
    assert {("table", "attribute.line_rate"), ("named query", "line_rate")} <= names


def test_the_list_of_tables_is_whole_on_a_screen_too(healthy: Path) -> None:
    result = run("sql", healthy, "--list")
    listed = {line.partition(" ")[0] for line in result.stdout.splitlines()}

    document = json.loads(run("sql", healthy, "--list", "--format", "json").stdout)
    tables = {name for kind, name, _ in document["rows"] if kind == "table"}
    assert len(tables) > 100
    assert tables <= listed
    assert "more rows" not in result.stderr


def test_lists_and_structs_are_json_in_csv(healthy: Path) -> None:
    result = run("sql", healthy, STRANGE, "--format", "csv")

    assert result.stdout.splitlines()[1] == 'inf,NaN,"[1.5, ""-inf""]","{""x"": ""inf""}",'


def test_parquet_comes_out_whole(healthy: Path) -> None:
    command = [sys.executable, "-m", "traceforge", "sql", healthy, "FROM meta.run", "--format", "parquet"]
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert pl.read_parquet(io.BytesIO(done.stdout))["run_name"].to_list() == ["healthy"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ('sql {db} "FROM range(1000000)" --format csv', 0),
        ('sql {db} "FROM range(300000)" --format parquet', 0),
        ("sql {db} --list", 0),
        ("check {db} --max iteration_ms=1", 10),
    ],
)
def test_a_reader_that_leaves_early_is_no_error(arguments: str, code: int, healthy: Path) -> None:
    # given a pipe whose reader takes one byte, as `| head` does
    command = f"{sys.executable} -m traceforge {arguments.format(db=healthy)} | head -c 1; echo ${{PIPESTATUS[0]}}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", command], capture_output=True, env=environment, check=True)

    # then nothing is said of it, and the exit code is what it would have been
    assert done.stdout.splitlines()[-1].decode().endswith(str(code))
    assert b"rror" not in done.stderr, done.stderr


def conversation(*lines: str) -> tuple[list[str], list[str]]:
    """What a prompt ran for these lines: statements, and arguments of `.run`."""
    typed = iter(lines)
    statements: list[str] = []
    ran: list[str] = []

    def read(_: str) -> str:
        line = next(typed, None)
        if line is None:
            raise EOFError
        if line == "^C":
            raise KeyboardInterrupt
        return line

    def refuse(text: str) -> None:
        if "SELEC " in text:
            raise QueryError("refused")
        statements.append(text)

    ask({".run": ran.append}, refuse, read)
    return statements, ran


def test_a_statement_ends_with_a_semicolon_or_an_empty_line() -> None:
    assert conversation("SELECT 1;", "SELECT", "2", "", ";", "")[0] == ["SELECT 1", "SELECT\n2"]


def test_dots_begin_commands_and_quit_leaves() -> None:
    assert conversation(".run ledger", ".nonsense", "SELECT 1;", ".quit", "SELECT 2;") == (["SELECT 1"], ["ledger"])


def test_the_prompt_goes_on_after_an_error_and_after_control_c(capsys: pytest.CaptureFixture[str]) -> None:
    assert conversation("SELEC 1;", "SELECT", "^C", "SELECT 3;")[0] == ["SELECT 3"]
    assert "error: refused" in capsys.readouterr().err


def test_texts_in_csv_are_no_formulas_and_no_commands_for_a_terminal(two_runs: Path) -> None:
    query = "SELECT '=HYPERLINK(1)' AS a, '@x' AS \"=b\", chr(27) || '[2J' AS c, '-5' AS d, -5 AS e, '-cmd' AS f"

    shown = run("sql", two_runs, query, "--format", "csv").stdout
    raw = run("sql", two_runs, query, "--format", "csv", "--raw").stdout

    assert shown == "a,'=b,c,d,e,f\n'=HYPERLINK(1),'@x,\\x1b[2J,-5,-5,'-cmd\n"
    assert raw == "a,=b,c,d,e,f\n=HYPERLINK(1),@x,\x1b[2J,-5,-5,-cmd\n"
