"""Hostile names in every output: whatever a trace calls things, each file stays what it is, and a terminal is silent.

The report's own tests look at single sections (`tests/report/test_names.py`, in a browser `test_tabs.py`); here the
commands are run on a job whose run, files, hosts, operations, threads and groups try to break out of each format.
"""

import csv
import gzip
import io
import json
import re
import tarfile
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

from tests.cli.running import run
from tests.conftest import ROOT
from tests.export.decoding import messages, node

NAME = "=cmd|' /C calc'!A0\"'`<img src=x onerror=alert(1)>\x1b[31m\u202e|[x](javascript:alert(1))\n# @everyone"
FILE = "=rank{} <svg onload=alert(1)>'\"`$(id) \x1b[2J"
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_MARKUP = re.compile(r"<(?:img|svg)[^>]*on\w+=")
_REPLACED = {
    '"aten::mm"': json.dumps(NAME),
    '"node0"': json.dumps(f"node0{NAME}"),
    '"node1"': json.dumps(f"node1{NAME}"),
    '"default_pg"': json.dumps(NAME),
    '"name": "python"': f'"name": {json.dumps(NAME)}',
    '"cpu:gloo,cuda:gloo"': json.dumps(NAME),
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded job with a slow rank under hostile names."""
    folder = tmp_path_factory.mktemp("hostile") / "=run <img src=x onerror=alert(1)>\x1b[31m"
    folder.mkdir()
    for file in sorted((ROOT / "sample_traces" / "compute_straggler").glob("*.gz")):
        text = gzip.decompress(file.read_bytes()).decode()
        for plain, hostile in _REPLACED.items():
            text = text.replace(plain, hostile)
        (folder / (FILE.format(file.name[4]) + file.name[5:].removesuffix(".gz"))).write_text(text)
    done = run("ingest", folder, "--db", folder.parent / "job.duckdb", "--args", "all")
    assert done.returncode == 0, done.stderr
    assert_silent(done.stdout + done.stderr)
    return folder.parent / "job.duckdb"


def assert_silent(text: str) -> None:
    """No character that a terminal obeys, but for line ends and tabs."""
    assert _CONTROLS.findall(text) == []


@pytest.mark.parametrize(
    "words",
    [
        ["info", "{db}"],
        ["doctor", "{db}"],
        ["top", "{db}", "--by", "operation"],
        ["compare", "{db}", "{db}"],
        ["check", "{db}", "--max", "iteration_ms=1e9"],
        ["replay", "{db}", "--policy", "none"],
        ["sql", "{db}", "SELECT run_name, path, host FROM meta.source JOIN meta.run USING (run_id)"],
        ["sql", "{db}", "SELECT DISTINCT name FROM raw.event_kind"],
    ],
    ids=lambda words: words[0],
)
def test_a_terminal_is_told_nothing(database: Path, words: list[str]) -> None:
    done = run(*(word.format(db=database) for word in words))

    assert done.returncode in (0, 2), done.stderr
    assert_silent(done.stdout + done.stderr)


def test_a_report_holds_names_as_text_in_all_its_forms(database: Path, tmp_path: Path) -> None:
    words = ["report", database, "--md", tmp_path / "a.md", "--json", tmp_path / "a.json"]

    pages = []
    for name, more in (("page.html", []), ("fragment.html", ["--embed"])):
        done = run(*words, "-o", tmp_path / name, *more)
        assert done.returncode == 0, done.stderr
        assert_silent(done.stdout + done.stderr)
        pages.append((tmp_path / name).read_text(encoding="utf-8"))

    for page in pages:
        assert _MARKUP.findall(page) == []
        assert "img src=x" in page  # as text: else nothing was tried
        assert_silent(page)
    markdown = (tmp_path / "a.md").read_text(encoding="utf-8")
    assert_silent(markdown)
    assert re.findall(r"(?<!\\)<(?:img|svg|script)|(?<!\\)\]\(javascript:", markdown) == []
    assert not any(line.startswith("# @") for line in markdown.splitlines())
    summary = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert_silent(summary)
    json.loads(summary)


def test_files_of_a_check_stay_well_formed(database: Path, tmp_path: Path) -> None:
    files = ["--junit", tmp_path / "check.xml", "--markdown", tmp_path / "check.md"]

    done = run("check", database, "--max", "iteration_ms=0", "--max", "finding_confidence=low", *files)

    assert done.returncode == 10, done.stderr
    ElementTree.fromstring((tmp_path / "check.xml").read_text(encoding="utf-8"))  # noqa: S314 - our own
    for file in (tmp_path / "check.xml", tmp_path / "check.md"):
        text = file.read_text(encoding="utf-8")
        assert_silent(text)
        assert _MARKUP.findall(text) == []


def test_rows_of_csv_hold_no_formula(database: Path) -> None:
    query = "SELECT run_name, path, host FROM meta.source JOIN meta.run USING (run_id)"

    done = run("sql", database, "--format", "csv", query)

    assert_silent(done.stdout)
    rows = list(csv.reader(io.StringIO(done.stdout)))[1:]
    assert len(rows) == 8
    assert [cell for row in rows for cell in row if cell[:1] in ("=", "+", "-", "@")] == []


def test_a_perfetto_archive_is_sound_and_leads_nowhere(database: Path, tmp_path: Path) -> None:
    traces = next(path for path in database.parent.iterdir() if path.is_dir())

    for name, more in (("plain.tar", ["--traces", traces]), ("redacted.tar", ["--redact"])):
        done = run("export", "perfetto", database, "-o", tmp_path / name, *more)
        assert done.returncode == 0, done.stderr
        assert_silent(done.stderr)
        with tarfile.open(tmp_path / name) as archive:
            members = {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]
        assert len(members) == 4 + 2
        assert all(re.fullmatch(r"[\w.-]+", member) for member in members), list(members)
        for content in members.values():
            json.loads(content)


def test_parquet_and_chakra_files_are_named_by_us_and_hold_names_exactly(database: Path, tmp_path: Path) -> None:
    tables = run("export", "parquet", database, "-o", tmp_path / "tables", "--facts")
    graphs = run("export", "chakra", database, "-o", tmp_path / "graphs")

    assert (tables.returncode, graphs.returncode) == (0, 0), tables.stderr + graphs.stderr
    assert_silent(tables.stderr + graphs.stderr)
    made = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in made if not re.fullmatch(r"[\w.=/-]+", str(path))] == []
    # binary formats hold a name as it is: who prints it must take care
    names = pl.read_parquet(tmp_path / "tables" / "raw.event_kind" / "**" / "*.parquet")["name"]
    assert NAME in names.to_list()
    found = [node(m)["name"] for path in (tmp_path / "graphs").iterdir() for m in messages(path.read_bytes())[1:]]
    assert len(found) > 1_000
