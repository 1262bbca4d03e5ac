"""SQL files are source: their comments are the documentation, their `Reads` the order."""

from pathlib import Path

import pytest

from traceforge.errors import PluginError
from traceforge.store.database import Store
from traceforge.store.documents import (
    Document,
    comment_statements,
    in_order,
    load_folder,
    parse_document,
    parse_schema,
)

LATE = """\
-- One row a rank that is late.
--
-- Late means after the first.
-- Reads: zoo.arrival, zoo.rank
CREATE OR REPLACE TABLE zoo.late (
  -- Global rank.
  rank INTEGER NOT NULL,
  -- Time after the first arrival, ns,
  -- never negative.
  late_ns BIGINT NOT NULL,
  PRIMARY KEY (rank)
)
"""


def _view(name: str, reads: str) -> Document:
    return parse_document(
        f"-- A view.\nCREATE OR REPLACE VIEW {name} (\n  -- One.\n  a\n) AS SELECT a FROM {reads}", "x"
    )


def test_the_comment_above_create_documents_the_object() -> None:
    document = parse_document(LATE, "late.sql")

    assert (document.kind, document.name) == ("TABLE", "zoo.late")
    assert document.comment.startswith("One row a rank that is late.")
    assert document.comment.endswith("Late means after the first.")


def test_the_comment_above_a_column_documents_the_column_and_a_key_is_no_column() -> None:
    assert parse_document(LATE, "late.sql").columns == {
        "rank": "Global rank.",
        "late_ns": "Time after the first arrival, ns, never negative.",
    }


def test_what_a_table_reads_is_stated_by_the_reads_line() -> None:
    assert parse_document(LATE, "late.sql").reads == {"zoo.arrival", "zoo.rank"}


def test_the_scope_stands_in_a_line_of_its_own_and_is_one_of_four() -> None:
    scoped = parse_document(LATE.replace("-- Reads", "-- Scope: rank\n-- Reads"), "late.sql")

    assert (parse_document(LATE, "late.sql").scope, scoped.scope) == (None, "rank")
    assert scoped.comment == parse_document(LATE, "late.sql").comment
    assert "first. Scope rank: each row follows from one rank''s file" in comment_statements(scoped)[0]
    with pytest.raises(PluginError, match="scope"):
        parse_document(LATE.replace("-- Reads", "-- Scope: host\n-- Reads"), "late.sql")


def test_a_table_in_parts_reads_the_table_of_its_parts_and_comes_after_it() -> None:
    text = "-- Rows.\n-- In parts by: zoo.part\nCREATE TABLE zoo.row (\n  n\n) AS\nSELECT GETVARIABLE('n') AS n"

    document = parse_document(text, "row.sql")

    assert (document.parts, document.query) == ("zoo.part", "SELECT GETVARIABLE('n') AS n")
    assert document.reads == {"zoo.part"}
    assert document.comment == "Rows."


def test_what_a_view_reads_is_found_in_its_query_but_not_in_its_comments() -> None:
    text = "-- All.\nCREATE VIEW zoo.a (\n  -- One.\n  x\n) AS\n-- not zoo.b\nSELECT x FROM zoo.c"

    assert parse_document(text, "a.sql").reads == {"zoo.c"}


def test_an_object_does_not_read_itself() -> None:
    assert _view("zoo.a", "zoo.a").reads == set()


def test_a_file_without_a_create_statement_is_refused_by_name() -> None:
    with pytest.raises(PluginError, match=r"^late\.sql: no `CREATE TABLE\|VIEW\|MACRO schema\.name \(` line"):
        parse_document("SELECT 1", "late.sql")


def test_a_migration_holds_several_statements() -> None:
    text = (
        "CREATE SCHEMA zoo;\n\n-- First.\nCREATE TABLE zoo.a (\n  x INTEGER\n);\n\n"
        "CREATE TABLE zoo.b (\n  y INTEGER\n);\n"
    )

    assert [(document.name, list(document.columns)) for document in parse_schema(text, "0001")] == [
        ("zoo.a", ["x"]),
        ("zoo.b", ["y"]),
    ]


def test_each_document_comes_after_those_it_reads() -> None:
    #   zoo.a ──▶ zoo.b ──▶ zoo.c      (a reads b, b reads c)
    documents = [_view("zoo.a", "zoo.b"), _view("zoo.b", "zoo.c"), _view("zoo.c", "meta.run")]

    assert [document.name for document in in_order(documents)] == ["zoo.c", "zoo.b", "zoo.a"]


def test_a_circle_is_refused_and_shown() -> None:
    with pytest.raises(PluginError, match=r"in a circle: (zoo\.a -> zoo\.b -> zoo\.a|zoo\.b -> zoo\.a -> zoo\.b)"):
        in_order([_view("zoo.a", "zoo.b"), _view("zoo.b", "zoo.a")])


def test_a_file_makes_the_object_that_bears_its_name(tmp_path: Path) -> None:
    (tmp_path / "early.sql").write_text(LATE)

    with pytest.raises(PluginError, match=r"^early\.sql: the file makes zoo\.late, not zoo\.early"):
        load_folder(tmp_path, "zoo")


def test_documentation_reaches_the_database_with_its_quotes() -> None:
    text = "-- The rank's own view.\nCREATE VIEW zoo.a (\n  -- Isn't null.\n  rank\n) AS SELECT 1"
    store = Store(None, is_kept=True)
    store.execute("CREATE SCHEMA zoo")

    store.create(parse_document(text, "a.sql"))

    assert store.query("SELECT comment FROM duckdb_views() WHERE view_name = 'a'").item() == "The rank's own view."
    column = "SELECT comment FROM duckdb_columns() WHERE schema_name = 'zoo' AND column_name = 'rank'"
    assert store.query(column).item() == "Isn't null."


def test_a_file_may_make_a_macro_with_its_documentation() -> None:
    text = "-- Twice as much.\nCREATE OR REPLACE MACRO zoo.twice(\n  -- Anything.\n  amount\n) AS 2 * amount\n"
    store = Store(None, is_kept=True)
    store.execute("CREATE SCHEMA zoo")

    store.create(parse_document(text, "twice.sql"))

    assert store.query("SELECT zoo.twice(21)").item() == 42
    assert (
        store.query("SELECT comment FROM duckdb_functions() WHERE function_name = 'twice'").item() == "Twice as much."
    )
