"""Questions that return a frame: asked once where DuckDB allows it, and alike where it does not."""

import duckdb
import polars as pl
import pytest

from traceforge.errors import QueryError
from traceforge.store import answers
from traceforge.store.database import Store

TYPES = """
-- A question may begin with a comment.
WITH given AS (SELECT * FROM (VALUES (1, 'a', 0.5::DOUBLE, true), (NULL, NULL, NULL, NULL)) AS t(n, word, share, known))
SELECT n, word, share, known, SUM(n) OVER () AS total, [n, 2] AS listed, {'rank': n} AS place, ?::VARCHAR AS asked
FROM given ORDER BY n NULLS LAST
"""

once = pytest.mark.skipif(
    not hasattr(duckdb.DuckDBPyConnection, "_submit"), reason="this DuckDB is asked by a relation, which binds twice"
)


@pytest.fixture
def by_relation(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Has questions asked as a DuckDB without `_submit` has them asked."""
    monkeypatch.setattr(answers, "plain_answer", lambda *_: None)
    return monkeypatch


@pytest.mark.parametrize(
    "sql",
    [
        TYPES,
        "SELECT ? AS n, 1 AS N",
        "SELECT INTERVAL 3 DAY AS pause, ? AS rank",
        "SELECT ? AS rank FROM range(300000)",
        "SELECT ? AS rank WHERE false",
    ],
)
def test_both_ways_of_asking_give_the_same_frame(sql: str, by_relation: pytest.MonkeyPatch) -> None:
    with Store(None, is_kept=False) as store:
        expected = store.query(sql, ["x"])
        by_relation.undo()
        found = store.query(sql, ["x"])

    assert found.schema == expected.schema
    assert found.equals(expected)


@once
def test_a_question_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = answers.plain_answer
    monkeypatch.setattr(answers, "ArrowStream", lambda relation: asked.append("by a relation") or relation)
    monkeypatch.setattr(answers, "plain_answer", lambda *given: asked.append("once") or real(*given))

    with Store(None, is_kept=False) as store:
        assert store.query("SELECT 1 AS n").item() == 1
        assert store.query(TYPES, ["x"]).height == 2
    assert asked == ["once", "once"]


def test_what_changes_rows_changes_them_once() -> None:
    with Store(None, is_kept=False) as store:
        store.query("INSERT INTO meta.run VALUES (0, 'night', 8)")
        store.query("WITH more AS (SELECT 1 AS n) INSERT INTO meta.run SELECT n, 'day', 8 FROM more")

        assert store.query("SELECT run_name FROM meta.run ORDER BY run_id")["run_name"].to_list() == ["night", "day"]


def test_several_statements_give_the_answer_of_the_last() -> None:
    with Store(None, is_kept=False) as store:
        assert store.query("SELECT 1 AS a; SELECT 2 AS b").equals(pl.DataFrame({"b": [2]}, schema={"b": pl.Int32}))


def test_an_error_while_rows_come_is_a_query_error_as_well() -> None:
    with Store(None, is_kept=False) as store, pytest.raises(QueryError, match="Could not convert"):
        store.query("WITH t AS (SELECT 'x' AS name) SELECT CAST(name AS INTEGER) FROM t")
