"""Every number of a page is what the SQL printed beside it gives, and what its text says."""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from math import isclose
from pathlib import Path

import pytest

from tests.conftest import ROOT
from traceforge import api
from traceforge.report import Report, build_report
from traceforge.report.cost import Price
from traceforge.store.database import Store

from .numbers import Number, Row, read_numbers, said
from .tables import Job, store_of

SAMPLES = sorted(path.parent.name for path in (ROOT / "sample_traces").glob("*/truth.json"))
_SAME = 1e-9


class Answer:
    """The numbers of a query's rows, in order, each with the row that it stands in."""

    def __init__(self, rows: list[tuple[object, ...]]) -> None:
        found = [
            (float(value), place)
            for place, row in enumerate(rows)
            for value in row
            if isinstance(value, int | float) and not isinstance(value, bool)
        ]
        self._values, self._places = zip(*sorted(found), strict=True) if found else ((), ())

    def holds(self, row: Row) -> bool:
        """Whether one row has all numbers that stand together."""
        return bool(set.intersection(*(self._rows_with(number) for number in row.numbers)))

    def _rows_with(self, number: Number) -> set[int]:
        # a change of +3 % is kept as a ratio of 1.03 by some tables, as a gain of 0.03 by others
        wanted = [number.value, number.value - 1] if number.unit == "ratio" else [number.value]
        return {place for value in wanted for place in self._around(value)}

    def _around(self, value: float) -> Sequence[int]:
        # The page keeps twelve digits: of a ratio near 1 the gain has that much fewer.
        off = max(1e-11, _SAME * abs(value))
        return self._places[bisect_left(self._values, value - off) : bisect_right(self._values, value + off)]


@pytest.fixture(scope="module", params=["made by hand", "many ranks", *SAMPLES])
def reported(request: pytest.FixtureRequest, sample_database: Callable[..., Path]) -> Iterator[tuple[Store, Report]]:
    """A database and its report, with a price, so that money is told as well."""
    jobs = {"made by hand": Job(), "many ranks": Job(ranks=130, iterations=12, late_rank=37, ranks_per_host=8)}
    if request.param in jobs:
        with store_of(jobs[request.param]) as store:
            yield store, build_report(store, run_id=1, versions={}, command=None, price=Price(2.49, "EUR"))
    else:
        with Store(sample_database(request.param), read_only=True, threads=1) as store:
            yield store, api.report(store, price=Price(2.49, "EUR"))


def test_every_number_is_in_one_row_of_the_sql_beside_it(reported: tuple[Store, Report]) -> None:
    # given the numbers of the page and the queries its appendix prints
    store, report = reported
    rows, sql = read_numbers(report.html)
    assert sum(len(row.numbers) for row in rows) > 100

    # when each query is run as printed
    answers = {name: Answer(store.rows(text)) for name, text in sql.items()}

    # then numbers that stand together come out of one row together
    missing = [row for row in rows if not any(answers[name].holds(row) for name in row.queries)]
    assert missing == []


def test_every_number_reads_as_what_it_is(reported: tuple[Store, Report]) -> None:
    rows, _ = read_numbers(reported[1].html)
    for row in rows:
        for number in row.numbers:
            value, half_digit = said(number)
            assert isclose(value, number.value, abs_tol=half_digit), (row.section, number)


def test_the_cells_of_the_overview_are_the_rows_of_its_sql(reported: tuple[Store, Report]) -> None:
    store, report = reported
    text = re.findall(r'id="data-lateness">(.*?)</script>', report.html)[0]
    panels = json.loads(text)["panels"]
    asked = store.query(read_numbers(report.html)[1]["sections-lateness"])["lateness_ns"].to_list()
    if not panels:  # nothing is drawn where the clocks resolve none of it
        assert max(map(abs, asked)) < 3 * store.value("SELECT MAX(residual_ns) FROM align.clock")
        return
    drawn = panels[0]["data"]["cells"]["lateness_ms"]
    assert drawn == [round(value / 1e6, 4) for value in asked]


def test_what_a_finding_costs_and_what_mending_it_gains_are_of_one_pace() -> None:
    # given the kept reports in which one finding stands out: without d of an iteration, throughput grows by d / (1 - d)
    summaries = [json.loads(path.read_text()) for path in sorted((ROOT / "reports").glob("*/summary.json"))]
    alone = [own[0] for one in summaries if len(own := [f for f in one["findings"] if f["confidence"] == "high"]) == 1]

    assert len(alone) >= 5
    for finding in alone:
        share = finding["share"]
        assert finding["gain_if_fixed"] == pytest.approx(share / (1 - share), rel=0.01), finding["subject"]
