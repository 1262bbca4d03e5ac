"""Small files are added together, large ones alone, and one that cannot be added fails alone."""

import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from tests.given import rows_of
from traceforge.errors import InputUnusableError
from traceforge.records import Batch, Issue, SourceSummary
from traceforge.store import addition as module
from traceforge.store.addition import Addition, InputFile
from traceforge.store.database import Store
from traceforge.store.spool import Spooled

SOURCES = "SELECT source_id, path, rank, host, status FROM meta.source ORDER BY source_id"
ARGUMENTS = "SELECT source_id, event_id, args FROM raw.argument ORDER BY ALL"
ISSUES = "SELECT source_id, code, count FROM meta.issue ORDER BY ALL"


@pytest.fixture
def store() -> Store:
    store = Store(None, is_kept=False)
    store.execute("INSERT INTO meta.run (run_id, run_name) VALUES (0, 'night')")
    return store


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], InputFile]:
    """A file of a name."""

    def made(name: str) -> InputFile:
        (tmp_path / name).write_text(name)
        return InputFile(tmp_path / name, f"hash of {name}", name)

    return made


def read(rank: int, *args: object, issues: tuple[Issue, ...] = (), table: str = "raw.argument") -> Spooled:
    """A small file that was read: the arguments of its events."""
    rows = pl.DataFrame({"event_id": range(len(args)), "args": list(args)}, strict=False)
    summary = SourceSummary("kineto", rank, None, 4, len(args), len(args), issues)
    return Spooled(summary, (Batch(table, rows),), Path(), (), int(rows.estimated_size()))


def test_small_files_wait_and_are_added_in_order(store: Store, file: Callable[[str], InputFile]) -> None:
    torn = Issue("torn", "warning", 3, None, "a line was torn")
    addition = Addition(store, 0, None)

    addition.add(file("a"), read(0, "x", "y"))
    addition.add(file("b"), read(1, "z", issues=(torn,)))
    assert rows_of(store, SOURCES) == []
    addition.flush()

    assert rows_of(store, SOURCES) == [(0, "a", 0, None, "used"), (1, "b", 1, None, "used")]
    assert rows_of(store, ARGUMENTS) == [(0, 0, "x"), (0, 1, "y"), (1, 0, "z")]
    assert rows_of(store, ISSUES) == [(1, "torn", 3)]
    assert rows_of(store, "SELECT world_size FROM meta.run") == [(4,)]
    assert [path.name for path in addition.added] == ["a", "b"]


def test_when_enough_wait_they_are_added(
    store: Store, file: Callable[[str], InputFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING_BYTES", read(0, "x").size_bytes * 2)
    addition = Addition(store, 0, None)

    for rank, name in enumerate("abc"):
        addition.add(file(name), read(rank, "x"))

    assert [path.name for path in addition.added] == ["a", "b"]


def test_a_large_file_is_added_after_those_that_wait(store: Store, file: Callable[[str], InputFile]) -> None:
    def large(source_id: int) -> SourceSummary:
        store.append("raw.argument", pl.DataFrame({"event_id": [0], "args": ["many"]}), source_id=source_id)
        return SourceSummary("kineto", 1, None, None, 1, 1)

    addition = Addition(store, 0, None)
    addition.add(file("a"), read(0, "x"))
    addition.add(file("b"), large)

    assert rows_of(store, ARGUMENTS) == [(0, 0, "x"), (1, 0, "many")]


def test_a_file_that_cannot_be_added_costs_none_of_those_beside_it(
    store: Store, file: Callable[[str], InputFile]
) -> None:
    # given the second of three files, whose rows are for a table that is not there
    addition = Addition(store, 0, None)
    for rank, name in enumerate("abc"):
        addition.add(file(name), read(rank, name, table="raw.nothing" if name == "b" else "raw.argument"))
    # when
    addition.flush()
    # then
    assert [path.name for path in addition.added] == ["a", "c"]
    assert [path.name for path, _ in addition.failed] == ["b"]
    assert rows_of(store, SOURCES) == [(0, "a", 0, None, "used"), (1, "c", 2, None, "used")]
    assert rows_of(store, ARGUMENTS) == [(0, 0, "a"), (1, 0, "c")]


def test_a_file_that_could_not_be_read_is_counted_with_its_error(
    store: Store, file: Callable[[str], InputFile]
) -> None:
    addition = Addition(store, 0, re.compile(r"(\d+)"))

    addition.add(file("a"), InputUnusableError("it is torn"))

    assert [(path.name, error.what) for path, error in addition.failed] == [("a", "it is torn")]
    assert rows_of(store, SOURCES) == []
