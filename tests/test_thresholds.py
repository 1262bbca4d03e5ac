"""Limits that decide what is said: documented, printed, and the same in SQL."""

from traceforge.store.database import Store
from traceforge.thresholds import all_thresholds


def test_every_limit_has_a_unit_a_meaning_and_something_that_it_decides() -> None:
    assert all_thresholds()
    for threshold in all_thresholds():
        assert threshold.unit, threshold.name
        assert threshold.meaning.endswith("."), threshold.name
        assert threshold.decides, threshold.name


def test_sql_reads_the_same_limits() -> None:
    with Store(None, is_kept=False) as store:
        rows = store.query("SELECT name, value FROM meta.threshold").rows()
    assert dict(rows) == {threshold.name: threshold.value for threshold in all_thresholds()}
