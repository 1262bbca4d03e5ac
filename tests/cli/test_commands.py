"""The command line as a person meets it: exit codes, streams, errors without tracebacks."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from tests.cli.running import SAMPLE, run, run_process
from tests.conftest import ROOT
from traceforge.cli.top import By, _as_read, _lack

COMMANDS = (
    "report", "top", "ingest", "compare", "check", "doctor", "info", "sql", "replay", "forecast", "export", "demo",
    "merge", "pack", "unpack", "synth", "thresholds", "history", "schema", "mcp",
)  # fmt: skip


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_every_command_explains_itself(command: list[str]) -> None:
    result = run(*command, "--help")
    assert result.returncode == 0
    assert "Usage" in result.stdout


def test_the_verdict_of_the_readme_is_what_its_command_prints(
    sample_database: Callable[..., Path], tmp_path: Path
) -> None:
    # given the sample of the README's main command
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```\n(VERDICT .*?)^```$", readme, re.MULTILINE | re.DOTALL)

    printed = run("report", sample_database("compute_straggler"), "-o", tmp_path / "report.html").stdout

    # then it prints every line that stands there, but for those left out
    assert [line for line in shown.splitlines() if line.strip() != "…" and line not in printed.splitlines()] == []


@pytest.mark.parametrize("command", [[], ["export"], ["history"]])
def test_what_a_command_does_is_listed_in_a_line_that_is_not_cut(command: list[str]) -> None:
    assert "..." not in run(*command, "--help").stdout.partition("Commands:")[2]


@pytest.mark.parametrize(
    ("plain", "full"),
    [
        (["sql", "DB", "FROM meta.run"], ["sql", "DB", "FROM meta.run", "--format", "table"]),
        (["sql", "DB", "SELEC 1"], ["sql", "DB", "SELEC 1", "--format", "table"]),
        (["sql", "DB", "SET memory_limit = '1GB'"], ["sql", "DB", "SET memory_limit = '1GB'", "--format", "table"]),
        (["sql", "nowhere.duckdb", "SELECT 1"], ["sql", "nowhere.duckdb", "SELECT 1", "--format", "table"]),
        (["info", "DB"], ["info", "--", "DB"]),
        (["info", "nowhere.duckdb"], ["info", "--", "nowhere.duckdb"]),
    ],
)
def test_a_plain_question_is_answered_as_one_with_options(plain: list[str], full: list[str], healthy: Path) -> None:
    short, long = ([healthy if word == "DB" else word for word in words] for words in (plain, full))

    assert run(*short) == run(*long)


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        (["--help"], "altair polars duckdb numpy rich"),
        (["sql", "DB", "SELECT 1"], "altair polars numpy scipy rich typer pydantic"),
        (["info", "DB"], "altair polars numpy scipy rich typer pydantic"),
    ],
)
def test_what_answers_at_once_loads_no_heavy_library(words: list[str], heavy: str, healthy: Path) -> None:
    code = (
        "import sys, traceforge.cli as c\n"
        "asked, heavy = sys.argv[1:-1], set(sys.argv[-1].split())\n"
        "sys.argv = ['traceforge', *asked]\n"
        "try: c.main()\n"
        "except SystemExit as ending: assert not ending.code\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    asked = [str(healthy) if word == "DB" else word for word in words]
    command = [sys.executable, "-c", code, *asked, heavy]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert result.returncode == 0, result.stderr


def test_a_folder_becomes_a_report_in_one_command(tmp_path: Path) -> None:
    result = run_process("report", SAMPLE, "-o", tmp_path / "out.html", "--json", tmp_path / "out.json", "--jobs", 1)
    assert result.returncode == 0, result.stderr
    assert "VERDICT" in result.stdout
    assert len(result.stdout.splitlines()) <= 15
    assert (tmp_path / "out.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["schema_version"] == 1


def test_a_database_becomes_a_report(healthy: Path, tmp_path: Path) -> None:
    result = run("report", healthy, "-o", tmp_path / "out.html", "--json", "-")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["schema_version"] == 1


def test_what_counts_as_on_time_is_chosen_and_stays_chosen(healthy: Path, tmp_path: Path) -> None:
    # given a copy of a database, whose delays are counted above median durations
    copy = tmp_path / "copy.duckdb"
    copy.write_bytes(healthy.read_bytes())

    # when it is reported by another rule, and then with none named
    chosen = run("report", copy, "-o", tmp_path / "out.html", "--reference", "best_rank")
    again = run("report", copy, "-o", tmp_path / "out.html")

    # then both say what delays are counted above
    assert chosen.returncode == 0, chosen.stderr
    assert again.returncode == 0, again.stderr
    for result in (chosen, again):
        assert "at the pace of the rank with the least work" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["report", "no/such/folder"], 3, "no such file or folder"),
        (["report", "LICENSE"], 3, "no trace of a known kind"),
        (["ingest", "LICENSE", "--db", "{tmp}/x.duckdb"], 3, "no trace of a known kind"),
        (
            ["ingest", str(SAMPLE), "--db", "{tmp}/y.duckdb", "--rank-regex", "("],
            2,
            "--rank-regex is no regular expression",
        ),
        (["sql", "LICENSE", "SELECT 1"], 3, "not a DuckDB database"),
        (["sql", "{tmp}/missing.duckdb", "SELECT 1"], 3, "no such database"),
        (["sql", "{db}", "SELEC 1"], 2, "refused the query"),
        (["sql", "{db}"], 2, "no query given"),
        (["sql", "{db}", "--name", "nonsense"], 2, "no named query"),
        (["sql", "{db}", "--describe", "nonsense"], 2, "no table"),
        (["sql", "{db}", "SELECT * FROM read_csv('/etc/passwd')"], 2, "refused the query"),
        (["sql", "{db}", "DELETE FROM meta.run"], 2, "refused the query"),
        (["replay", "{db}", "--policy", "nonsense"], 2, "no policy"),
        (["replay", "{db}", "--policy", "bounded_delay:speed=1"], 2, "no parameter"),
        (["replay", "{db}", "--what-if", "nonsense"], 2, "no edit"),
        (["replay", "{db}", "--what-if", "fix_rank:rank=9999"], 2, "no rank 9999"),
        (["replay", "{db}", "--policy", "fix_rank:rank=2"], 2, "hint: --what-if fix_rank:rank=2"),
        (["replay", "{db}", "--what-if", "bounded_delay"], 2, "hint: --policy bounded_delay"),
        (["report", "{db}", "--run", "nonsense"], 2, "no run"),
        (["report", "{db}", "-o", "{tmp}/no/such/folder/x.html"], 3, "cannot be written"),
        (["frobnicate"], 2, "frobnicate"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line_and_a_hint(
    arguments: list[str], code: int, message: str, healthy: Path, tmp_path: Path
) -> None:
    result = run(*(argument.format(db=healthy, tmp=tmp_path) for argument in arguments))
    assert result.returncode == code, result.stderr
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(("arguments", "code"), [(["frobnicate"], 2), (["sql", "LICENSE", "SELECT 1"], 3)])
def test_a_process_ends_with_the_code_and_without_a_traceback(arguments: list[str], code: int) -> None:
    result = run_process(*arguments)
    assert result.returncode == code
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_what_the_encoding_of_a_pipe_lacks_is_escaped(healthy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    result = run_process("sql", healthy, "SELECT CHR(181) || 's' AS unit", "--format", "csv")
    assert (result.returncode, result.stdout) == (0, "unit\n\\xb5s\n"), result.stderr


def test_sql_writes_each_format(healthy: Path) -> None:
    query = "SELECT 1 AS one, 'a' AS letter"
    assert run("sql", healthy, query, "--format", "csv").stdout == "one,letter\n1,a\n"
    assert json.loads(run("sql", healthy, query, "--format", "json").stdout) == {
        "schema_version": 1,
        "columns": ["one", "letter"],
        "rows": [[1, "a"]],
    }
    assert run("sql", healthy, "-", stdin=query).stdout.split() == ["one", "letter", "1", "a"]


def test_control_characters_of_a_trace_do_not_reach_the_terminal(healthy: Path) -> None:
    result = run("sql", healthy, "SELECT CHR(27) || '[31mred' || CHR(7) AS name")
    assert "\x1b" not in result.stdout
    assert "\\x1b[31mred\\x07" in result.stdout


def test_every_named_query_runs(healthy: Path) -> None:
    for path in sorted((ROOT / "traceforge" / "cli" / "queries").glob("*.sql")):
        if not path.stem.startswith("fleet_"):  # these ask a history: tests/history
            result = run("sql", healthy, "--name", path.stem, "--format", "csv")
            assert result.returncode == 0, result.stderr
        assert path.read_text(encoding="utf-8").startswith("-- "), "the first line says what the query answers"


def test_queries_are_listed_by_stage_without_a_database() -> None:
    listed = run("sql", "--list").stdout.splitlines()
    assert listed[0].split() == ["about", "named", "query", "purpose"]
    stages = [line.split()[0] for line in listed[1:]]
    assert stages == sorted(stages, key=[*dict.fromkeys(stages)].index), "each stage once"
    assert {"gemm_shapes", "queue_length", "memory_timeline"} <= {line.split()[1] for line in listed[1:]}

    about = run("sql", "--list", "--about", "shape").stdout
    assert "gemm_shapes" in about
    assert "late_ranks" not in about
    assert run("sql").returncode == 2


def test_tables_are_listed_by_a_word(healthy: Path) -> None:
    listed = run("sql", healthy, "--list", "--about", "bubble").stdout
    assert "timeline.iteration" not in listed
    # a word with a wildcard is a word
    assert "timeline.iteration" not in run("sql", healthy, "--list", "--about", "%").stdout
    assert "timeline.rank_iteration" in run("sql", healthy, "--list", "--about", "rank_iter").stdout


def test_top_says_what_bounds_a_run_and_what_takes_longest(healthy: Path) -> None:
    lines = run("top", healthy, "-n", "3").stdout.splitlines()
    assert "of each 102 ms step" in lines[0]
    assert any(line.startswith("  next: ") for line in lines)
    head = next(n for n, line in enumerate(lines) if not line) + 1
    assert lines[head].split()[:5] == ["name", "kind", "calls", "ms", "percent"]
    assert len(lines[head + 1 :]) == 3
    assert lines[head + 1].split()[0] == "aten::mm"
    assert max(map(len, lines[:head])) <= 100

    found = json.loads(run("top", healthy, "--by", "kind", "--json").stdout)
    assert sum(row["share"] for row in found["rows"]) == pytest.approx(1)

    modules = run("top", healthy, "--by", "module")
    assert modules.returncode == 3
    assert "with_modules=True" in modules.stderr


def test_numbers_of_top_are_rounded_and_what_is_nowhere_known_is_left_out() -> None:
    rows = pl.DataFrame(
        {"name": ["mm", "cat"], "ms": [12.3456, 0.0012345], "share": [0.98766, 0.0001], "rate": [None, None]}
    )

    assert _as_read(rows).to_dict(as_series=False) == {
        "name": ["mm", "cat"], "ms": [12.3, 0.00123], "percent": [98.8, 0.0],
    }  # fmt: skip


def test_where_a_run_has_nothing_to_add_up_another_run_that_has_is_named() -> None:
    assert _lack(By.kernel, []) == (
        "in the time judged no kernel ran, nor an operation on a host without devices",
        "give a Kineto trace of one rank or more",
    )
    assert _lack(By.kernel, ["job [window 2]", "other"])[1] == "other runs have some: --run 'job [window 2]'"
    assert _lack(By.module, ["job"])[1] == "other runs have some: --run job"


def test_the_tables_are_listed_and_described(healthy: Path) -> None:
    assert "timeline.iteration" in run("sql", healthy, "--list").stdout
    described = run("sql", healthy, "--describe", "timeline.arrival")
    assert "late_ns" in described.stdout
    assert described.stderr.startswith("timeline.arrival: When each rank reached each collective.")
    assert "Scope iteration: each row follows from what all ranks did in one iteration." in described.stderr


def test_replay_and_forecast_answer_in_words_and_in_json(healthy: Path) -> None:
    assert "bounded_delay" in run("replay", healthy).stdout
    outcomes = json.loads(run("replay", healthy, "--policy", "none", "--json").stdout)
    assert outcomes["outcomes"][0]["verdict"] == "no_effect"
    assert "No scaling curve" in run("forecast", healthy).stdout
    assert json.loads(run("forecast", healthy, "--json").stdout)["schema_version"] == 2


def test_replay_tells_a_reason_once_for_all_policies_it_holds_for(healthy: Path) -> None:
    told = run("replay", healthy, "--policy", "none", "--policy", "constant:delay=0").stderr

    sentences = [line.partition(": ")[2].split(". ")[0] for line in told.splitlines()]
    assert len(set(sentences)) == len(sentences)
    assert told == "none, constant: No rank is ever delayed.\n"


def test_replay_answers_what_if_and_sweeps(healthy: Path) -> None:
    changes = ("--what-if", "fix_rank:rank=0", "--what-if", "scale_transfer:factor=0.5")
    words = run("replay", healthy, *changes)
    assert "fix_rank+scale_transfer" in words.stdout
    assert "bounded_delay" not in words.stdout

    document = json.loads(run("replay", healthy, *changes, "--policy", "constant", "--sweep", "--json").stdout)

    assert [row["edit"] for row in document["what_if"]][-1] == "fix_rank+scale_transfer"
    assert {row["parameters"] for row in document["sweep"]} == {"delay=0.005", "delay=0.01", "delay=0.02"}
    assert "hierarchical" in run("replay", healthy, "--what-if", "list").stdout


def test_strict_fails_where_something_was_left_out(tmp_path: Path) -> None:
    # given a trace that breaks off
    text = '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1, "pid": 0}, {"ph": "X", "na'
    (tmp_path / "rank0.pt.trace.json").write_text(text, encoding="utf-8")

    # when it is ingested, strictly and not
    lenient = run("ingest", tmp_path, "--db", tmp_path / "a.duckdb")
    strict = run("ingest", tmp_path, "--db", tmp_path / "b.duckdb", "--strict")

    # then the warning is said each time, and only --strict fails
    assert (lenient.returncode, strict.returncode) == (0, 4)
    assert lenient.stdout == ""
    assert "1 file read, 0 unchanged" in lenient.stderr
    assert "warning:" in lenient.stderr


def test_replay_writes_the_policy_that_a_job_can_try(healthy: Path, tmp_path: Path) -> None:
    file = tmp_path / "policy.json"

    said = run("replay", healthy, "--policy", "bounded_delay:gain=0.25", "--save-policy", file, "--json")

    # then the file holds what was foretold, and is taken in the place of the policy
    written = json.loads(file.read_text(encoding="utf-8"))
    [outcome] = json.loads(said.stdout)["outcomes"]
    assert written["policy"] == "bounded_delay:window=4,threshold=0.02,gain=0.25,max_delay=0.05"
    foretold = written["foretold"]
    assert foretold["throughput_ratio"] == outcome["throughput_ratio"]
    # the job that tries it runs steps to come
    assert foretold["throughput_ratio_low"] == outcome["throughput_ratio_next_low"] < outcome["throughput_ratio_low"]
    assert foretold["throughput_ratio_high"] == outcome["throughput_ratio_next_high"]
    again = json.loads(run("replay", healthy, "--policy", file, "--json").stdout)
    assert again["outcomes"] == [outcome]
    assert run("replay", healthy, "--policy", "oracle", "--save-policy", file).returncode == 2
    assert "policy.json" in run("replay", healthy, "--policy", "none", "--save-policy", tmp_path / "gentle").stderr
