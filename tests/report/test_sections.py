"""The folder of sections: its contract, and what the sections ask of the store."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from traceforge.errors import PluginError
from traceforge.report import build_report, sections
from traceforge.report.context import Context
from traceforge.store.database import Store

_FOLDER = Path(str(sections.__file__)).parent
_QUERIES = sorted([*_FOLDER.glob("*.sql"), *(_FOLDER.parent / "queries").glob("*.sql")])


_SECTION = '''
from traceforge.report.blocks import Paragraph, Section
from traceforge.report.plugin import Plugin

SQL = """-- Ranks that run the job.
SELECT COUNT(*) AS ranks FROM align.clock WHERE run_id = $run_id"""


def ranks(context):
    return context.ask("sections/crew", SQL).item()


def build(context):
    return Section([Paragraph(f"A crew of {ranks(context)} ranks.")])


SECTION = Plugin(25, "Who is on board", "Crew", build, lambda context: {"crew": ranks(context)})
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A further folder in which sections are looked for."""
    monkeypatch.setattr(sections, "__path__", [*sections.__path__, str(tmp_path)])
    sections.section_plugins.cache_clear()
    yield tmp_path
    sections.section_plugins.cache_clear()
    for name in ("crew", "stray"):
        sys.modules.pop(f"{sections.__name__}.{name}", None)


def test_one_file_adds_a_section_to_page_contents_appendix_and_summary(folder: Path, late_job: Store) -> None:
    # given one new file and nothing else
    (folder / "crew.py").write_text(_SECTION, encoding="utf-8")

    # when a report is made
    report = build_report(late_job, run_id=1, versions={}, command=None)

    # then the section stands in its place, is linked from the contents, shows its query and is in the summary
    names = re.findall(r'<section id="(\w+)"', report.html)
    assert names[names.index("crew") - 1 :][:3] == ["strip", "crew", "modes"]
    assert "A crew of 4 ranks." in report.html
    assert '<a href="#crew">Crew</a>' in report.html
    assert 'id="query-sections-crew"' in report.html
    assert "FROM align.clock WHERE run_id = 1</code>" in report.html
    assert report.summary["crew"] == 4


def test_a_file_that_holds_no_section_is_an_error(folder: Path) -> None:
    (folder / "stray.py").write_text("SECTION = 1\n", encoding="utf-8")
    with pytest.raises(PluginError, match="SECTION is no Plugin"):
        sections.section_plugins()


def test_sections_have_places_of_their_own() -> None:
    places = [plugin.place for plugin in sections.section_plugins().values()]
    assert places == sorted(set(places))


def test_sections_never_import_one_another() -> None:
    imported = {
        file.stem: node.module or ""
        for file in sorted(_FOLDER.glob("[a-z]*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(sections.__name__)
    }
    assert imported == {}


def test_a_query_says_what_it_shows_and_in_which_order() -> None:
    texts = {file.stem: file.read_text(encoding="utf-8") for file in _QUERIES}

    assert [name for name, text in texts.items() if not re.match(r"-- [A-Z].*\.\n", text)] == []
    assert [name for name, text in texts.items() if "$run_id" not in text or "SELECT *" in text] == []
    assert [name for name, text in texts.items() if not _is_ordered(text)] == []


def _is_ordered(text: str) -> bool:
    outermost = re.sub(r"\([^()]*\)", "", re.sub(r"\([^()]*\)", "", text))
    return "ORDER BY" in outermost or "GROUP BY" not in outermost.rpartition("SELECT")[2]


def test_every_query_is_used() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in _FOLDER.parent.rglob("*.py"))
    names = [file.stem if file.parent.name == "queries" else f"sections/{file.stem}" for file in _QUERIES]
    assert [name for name in names if f'"{name}"' not in code and not name.startswith("sections/scaling")] == []


def test_only_whole_numbers_are_written_into_a_query(late_job: Store) -> None:
    context = Context(late_job, 1, {}, None)
    with pytest.raises(ValueError, match="invalid literal"):
        context.rows("sections/timeline", iterations=["1); DROP TABLE meta.run; --"])  # type: ignore[list-item]


def test_what_the_appendix_shows_is_what_was_executed(late_job: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    query, records = late_job.query, late_job.records

    def noted(sql: str, *parameters: object) -> pl.DataFrame:
        asked.append(sql)
        return query(sql, *parameters)

    def noted_records(sql: str, *parameters: object) -> list[dict[str, object]]:
        asked.append(sql)
        return records(sql, *parameters)

    monkeypatch.setattr(late_job, "query", noted)
    monkeypatch.setattr(late_job, "records", noted_records)
    context = Context(late_job, 1, {}, None)
    for plugin in sections.section_plugins().values():
        plugin.build(context)
    assert {executed.sql for executed in context.executed.values()} <= set(asked)
    assert len(context.executed) >= 15
