"""On a real terminal: colours where they are wanted, bars where somebody sees them, a prompt where somebody types."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.conftest import ROOT
from traceforge.api import STAGES
from traceforge.cli.console import print_verdict
from traceforge.cli.progress import done_share
from traceforge.store.stage import stage_documents


def on_terminal(*arguments: object, typed: str = "", **environment: str) -> str:
    """What a command writes to a terminal of its own, both streams together, after somebody typed this."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "traceforge", *map(str, arguments)],
        stdin=child,
        stdout=child,
        stderr=child,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100", **environment},
    )
    os.close(child)
    os.write(parent, typed.encode())
    pieces = []
    while True:
        try:
            piece = os.read(parent, 65_536)
        except OSError:  # the terminal of a process that has ended
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(parent)
    assert process.wait(60) == 0
    return b"".join(pieces).decode()


def test_a_verdict_is_coloured_on_a_terminal_only(healthy: Path, tmp_path: Path) -> None:
    arguments = ["report", healthy, "-o", tmp_path / "out.html"]
    coloured = on_terminal(*arguments, NO_COLOR="")
    piped = run(*arguments).stdout
    assert coloured.startswith("\x1b[1;33mVERDICT"), "nobody stands out, and yet much is lost"
    assert "\x1b" not in piped
    without = re.sub(r"\x1b\[[\d;]*m", "", coloured).replace("\r", "")
    assert without.startswith(piped), "colour changes no word"
    assert len(piped.splitlines()) <= 15


@pytest.mark.parametrize(
    ("environment", "is_coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colour_is_left_out_where_it_is_not_wanted(
    environment: dict[str, str],
    *,
    is_coloured: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"TERM": "xterm", **environment}.items():
        monkeypatch.setenv(name, value)
    print_verdict(["VERDICT: Rank 2 computes longer", "  next: look at it"], "finding")
    assert ("\x1b" in capsys.readouterr().out) is is_coloured


def test_progress_is_drawn_on_a_terminal_only(tmp_path: Path) -> None:
    trace = '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1, "pid": 0, "tid": 0}]}'
    (tmp_path / "rank0.pt.trace.json").write_text(trace, encoding="utf-8")
    shown = on_terminal("info", tmp_path)
    assert "reading" in shown
    assert shown.index("reading") < shown.index("analysing")
    assert any(f"{stage}." in shown for stage in STAGES), "the table that is made"
    piped = run("info", tmp_path).stderr
    assert "reading" not in piped
    assert "analysing" not in piped


def test_the_share_that_is_done_grows_from_table_to_table_until_all_is_done() -> None:
    shares = [
        done_share(document.name, place / len(documents))
        for stage in STAGES
        for documents in [stage_documents(f"traceforge.{stage}")]
        for place, document in enumerate(documents)
    ]

    assert shares[0] == 0
    assert shares == sorted(set(shares))
    assert done_share(f"{STAGES[-1]}.scale", 1) == pytest.approx(1)


def test_a_prompt_opens_where_somebody_types(healthy: Path) -> None:
    typed = "SELECT run_name FROM meta.run;\n.describe meta.run\nSELECT * FROM read_csv('/etc/passwd');\n.quit\n"
    shown = on_terminal("sql", healthy, typed=typed, NO_COLOR="1")
    assert "healthy.duckdb, read-only. .help lists the commands" in shown
    assert "Number of ranks the job says it has" in shown
    assert "error: the database refused the query" in shown
    assert "root:" not in shown


def test_completion_is_offered_and_names_commands_and_queries() -> None:
    assert "--install-completion" in run("--help").stdout
    code = "import sys; sys.argv = ['traceforge']; from traceforge.cli import main; main()"
    for words, wanted in (("traceforge co", "compare"), ("traceforge sql x.duckdb --name late_r", "late_ranks")):
        environment = {**os.environ, "_TRACEFORGE_COMPLETE": "complete_bash", "COMP_WORDS": words}
        environment |= {"COMP_CWORD": str(len(words.split()) - 1), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
        )
        assert done.stdout.split() == [wanted]


def test_no_arguments_show_the_help() -> None:
    result = run()
    assert "Usage" in result.stdout + result.stderr
    for command in ("report", "ingest", "compare", "check", "doctor", "info", "sql", "export", "demo"):
        assert command in result.stdout + result.stderr


def test_a_table_is_folded_only_where_it_is_wider_than_the_terminal(healthy: Path) -> None:
    narrow = on_terminal("sql", healthy, "SELECT 'abc' AS first, 7 AS second", NO_COLOR="1")
    styled = on_terminal("sql", healthy, f"SELECT '{'x' * 150}' AS first, 7 AS second")
    wide = re.sub(r"\x1b\[[\d;]*m", "", styled)

    assert narrow.replace("\r", "").splitlines() == ["first  second", "abc         7"]
    assert max(map(len, wide.replace("\r", "").splitlines())) <= 100
    assert wide.count("x") == 150


def test_columns_stand_below_one_another_whatever_is_in_them(healthy: Path) -> None:
    # a letter of East Asia is two columns wide, an accent none, and a text of two lines takes two
    query = "SELECT * FROM (VALUES ('\u65e5\u672c', 1, 2.5), ('e\u0301', 22, NULL), ('one\ntwo', 3, 4.5)) AS t(a, b, c)"

    printed = run("sql", healthy, query).stdout

    assert printed.splitlines() == [
        "a      b    c",
        "\u65e5\u672c   1  2.5",
        "e\u0301     22     ",
        "one    3  4.5",
        "two          ",
    ]


def test_a_folded_table_cuts_no_number_in_two(healthy: Path) -> None:
    query = f"SELECT '{'x' * 150}' AS first, 1234567 AS a_long_name_of_a_number, 7.25 AS second"
    shown = re.sub(r"\x1b\[[\d;]*m", "", on_terminal("sql", healthy, query)).replace("\r", "").splitlines()

    # then names of numbers are as many lines as the numbers' width needs
    assert [line.split() for line in shown[:4]] == [["a_long_"], ["name_"], ["of_a_"], ["first", "number", "second"]]
    assert shown[4].split()[1:] == ["1234567", "7.25"]
