"""Answers in pages: every row once, none too large for an agent."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceforge.errors import UsageError
from traceforge.serve.paging import MOST_BYTES, page_of

CELLS = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=3_000), st.floats(), st.booleans())


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), max_size=30), st.text(max_size=5_000))
def test_pages_together_hold_every_row_and_none_is_too_large(rows: list[list[object]], sql: str) -> None:
    first = json.loads(page_of(["a", "b", "c"], rows, sql))

    pages = [page_of(["a", "b", "c"], rows, sql, page) for page in range(1, first["pages"] + 1)]

    assert sum(len(json.loads(page)["rows"]) for page in pages) == len(rows) == first["rows_in_all"]
    assert max(len(page.encode()) for page in pages) <= MOST_BYTES


def test_short_rows_are_what_they_were_and_a_null_stays_one() -> None:
    document = json.loads(page_of(["rank", "host"], [(0, None), (1, "b")], "SELECT 1", note="so"))

    assert document["rows"] == [[0, None], [1, "b"]]
    assert (document["pages"], document["sql"], document["note"]) == (1, "SELECT 1", "so")


def test_what_is_cut_says_so() -> None:
    ((cell,),) = json.loads(page_of(["text"], [("x" * 10_000,)], ""))["rows"]

    assert cell.endswith("more characters]")


def test_a_page_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="no page 2"):
        page_of(["a"], [(1,)], "", 2)
