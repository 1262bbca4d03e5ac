"""Answers as plain values: few rows for the code, and the head of an answer for a terminal."""

from collections.abc import Iterator

import pytest

from traceforge.errors import QueryError
from traceforge.store.database import Store
from traceforge.store.preview import COUNTED


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with Store(None) as opened:
        yield opened


def test_the_first_rows_come_with_the_number_of_those_that_follow(store: Store) -> None:
    assert store.preview("SELECT i FROM RANGE(5) AS t(i) ORDER BY i DESC", 2) == (["i"], [(4,), (3,)], 3)


def test_an_answer_that_fits_leaves_nothing_out(store: Store) -> None:
    assert store.preview("SELECT i FROM RANGE(2) AS t(i)", 2) == (["i"], [(0,), (1,)], 0)


def test_of_very_many_rows_no_more_are_counted_than_it_says(store: Store) -> None:
    assert COUNTED < store.preview("SELECT i FROM RANGE(10_000_000) AS t(i)", 2).further < 10_000_000


def test_columns_of_one_name_are_told_apart_and_intervals_are_text(store: Store) -> None:
    found = store.preview("SELECT 1 AS a, INTERVAL 1 MONTH AS a FROM RANGE(3)", 2)

    assert len(set(found.names)) == 2
    assert (found.rows, found.further) == ([(1, "1 month")] * 2, 1)


def test_a_statement_without_an_answer_has_no_rows(store: Store) -> None:
    assert store.preview("SET threads = 1", 2)[1:] == ([], 0)


def test_a_statement_that_is_no_query_runs_once(store: Store) -> None:
    # a table that is made twice would be said to be there already
    store.preview("CREATE TEMP TABLE made AS SELECT 1 AS a", 2)
    store.preview("INSERT INTO made VALUES (2)", 2)

    assert store.preview("SELECT a FROM made ORDER BY a", 9).rows == [(1,), (2,)]


def test_records_have_the_names_of_their_columns(store: Store) -> None:
    assert store.records("SELECT $1 AS a, [NULL, 2] AS b", ["x"]) == [{"a": "x", "b": [None, 2]}]


def test_records_are_refused_where_a_column_would_hide_another(store: Store) -> None:
    with pytest.raises(QueryError, match="two columns share a name"):
        store.records("SELECT 1 AS a, 2 AS a")


@pytest.mark.parametrize("ask", [Store.rows, Store.records, Store.value, lambda store, sql: store.preview(sql, 1)])
def test_sql_that_is_refused_is_an_error_of_the_query(store: Store, ask: object) -> None:
    with pytest.raises(QueryError, match="the database refused the query"):
        ask(store, "SELECT nothing")  # type: ignore[operator]
