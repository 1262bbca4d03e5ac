"""The folder of sections: its contract, and what the sections ask of the store."""

import ast
import re
from pathlib import Path

import polars as pl
import pytest

from traceforge.errors import PluginError
from traceforge.report import page, sections
from traceforge.report.blocks import Plugin
from traceforge.report.context import Context
from traceforge.store.database import Store

_FOLDER = Path(str(sections.__file__)).parent
_QUERIES = sorted([*_FOLDER.glob("*.sql"), *(_FOLDER.parent / "queries").glob("*.sql")])


def test_every_file_of_the_folder_has_its_place_on_the_page() -> None:
    plugins = page.section_plugins()
    assert tuple(plugins) == sections.ORDER
    assert all(isinstance(plugin, Plugin) for plugin in plugins.values())


def test_a_file_without_a_place_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "ORDER", sections.ORDER[:-1])
    page.section_plugins.cache_clear()
    with pytest.raises(PluginError, match="appendix"):
        page.section_plugins()
    monkeypatch.undo()
    page.section_plugins.cache_clear()


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
        context.rows("sections/lanes", iterations=["1); DROP TABLE meta.run; --"], ranks=[0])  # type: ignore[list-item]


def test_what_the_appendix_shows_is_what_was_executed(late_job: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    query = late_job.query

    def noted(sql: str) -> pl.DataFrame:
        asked.append(sql)
        return query(sql)

    monkeypatch.setattr(late_job, "query", noted)
    context = Context(late_job, 1, {}, None)
    for plugin in page.section_plugins().values():
        plugin.build(context)
    assert {executed.sql for executed in context.executed.values()} <= set(asked)
    assert len(context.executed) >= 15
