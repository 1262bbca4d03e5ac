"""The pacing section: short where the run shows no coupling, a front of parameters where it does."""

import re

import pytest

from tests.report.tables import Job, borrowed
from traceforge.report import build_report
from traceforge.store.database import Store

_COUPLED = """
INSERT INTO replay.sweep VALUES
  (1, 'bounded_delay', 'gain=0.5', 1.04, 1.02, 1.06, 0.05, 0.04, 0.06, 'supported', true),
  (1, 'bounded_delay', 'gain=0.9', 1.02, 0.99, 1.05, 0.03, 0.02, 0.04, 'not_identifiable', true),
  (1, 'adaptive', '', 1.01, 0.98, 1.03, 0.06, 0.05, 0.07, 'not_identifiable', false)
"""
_CHANGES = """
INSERT INTO replay.what_if VALUES
  (1, 'fix_rank', 'rank=2', 1.3, 1.28, 1.32, 80000000, 24000000, 'As the median.'),
  (1, 'drop_host', 'host=<b>evil</b>', 0.9, 0.88, 0.92, 110000000, -2000000, 'Fewer ranks.'),
  (1, 'bucket_size', 'megabytes=25', NULL, NULL, NULL, NULL, NULL, 'One size only.')
"""


def section_of(store: Store) -> str:
    page = build_report(store, run_id=1, versions={"traceforge": "0"}, command=None).html
    return page[page.index('id="pacing"') : page.index("<section", page.index('id="pacing"') + 10)]


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split()).replace("\N{NO-BREAK SPACE}", " ")


def test_without_a_coupling_a_table_is_all() -> None:
    with borrowed(Job()) as store:
        store.execute("INSERT INTO replay.calibration (run_id, mechanism, verdict, reason) VALUES (1, 'arrival_spread',"
                      " 'not_identifiable', 'Arrivals spread by less than the clocks resolve.')")  # fmt: skip
        section = section_of(store)

    assert "No pacing is likely to gain more than 0.4 %." in words(section)
    assert "Arrivals spread by less than the clocks resolve." in words(section)
    assert 'class="chart"' not in section
    assert '<table class="rows">' in section


def test_with_a_coupling_the_front_of_parameters_is_drawn() -> None:
    with borrowed(Job()) as store:
        store.execute("UPDATE replay.outcome SET verdict = 'supported' WHERE policy = 'bounded_delay'")
        store.execute(_COUPLED)
        section = section_of(store)

    assert "Pacing with bounded delay would give" in words(section)
    assert "Of 3 combinations of parameters, none beats 2" in words(section)
    assert "partly luck" in words(section)


def test_other_changes_are_listed_and_what_cannot_be_told_is_said() -> None:
    with borrowed(Job()) as store:
        store.execute(_CHANGES)
        section = section_of(store)

    assert "fix rank" in section
    assert "bucket size megabytes=25 — — — One size only." in words(section)
    assert "<b>evil</b>" not in section


@pytest.mark.parametrize("column", ["reason", "parameters", "saved_ns_per_iteration", "throughput_ratio_low"])
def test_unknown_values_of_changes_break_nothing(column: str) -> None:
    with borrowed(Job()) as store:
        store.execute(_CHANGES)
        store.execute(f"UPDATE replay.what_if SET {column} = NULL")

        assert "None" not in re.sub("None of", "", words(section_of(store)))


def test_reasons_are_told_and_an_end_of_an_interval_that_bounds_nothing_is_left_out() -> None:
    with borrowed(Job()) as store:
        store.execute("UPDATE replay.outcome SET throughput_ratio_low = 0.001 WHERE policy = 'random'")
        store.execute("UPDATE replay.outcome SET gain_ceiling = 0.0")
        told = words(section_of(store)).replace("\N{MINUS SIGN}", "-")

    assert "random (control) max_delay=0.1 would harm -4.0 % at most -3.0 % 3.0 %" in told
    assert "-0.2 % -1.0 % to +0.4 %" in told
    assert "random (control) max_delay=0.1 would harm Delays that know nothing only cost time." in told
    assert "No pacing is likely to gain anything." in told
