"""A duration in SQL is said as in Python, from the time on that delays are told in."""

import pytest

from tests.given import rows_of
from traceforge.store.database import Store
from traceforge.store.stage import stage_documents
from traceforge.units import format_ns


@pytest.mark.parametrize(
    "ns", [1_000, 999_900, 1_250_000, 99_960_000, 123_400_000, 999_900_000, 1_000_000_000, 61 * 10**9]
)
def test_evidence_says_a_duration_as_pages_do(ns: int) -> None:
    store = Store(None, threads=1, is_kept=False)
    store.execute("CREATE SCHEMA IF NOT EXISTS attribute")
    store.create(next(one for one in stage_documents("traceforge.attribute") if one.kind == "MACRO"))

    assert rows_of(store, "SELECT attribute.duration_text(?)", [ns]) == [(format_ns(ns),)]
