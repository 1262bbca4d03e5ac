"""The section on scaling and cost: a curve with its band, or a refusal that says what to measure."""

import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import polars as pl
import pytest

from tests.forecast.scaling_table import points_of
from tests.report.browser import Page
from tests.report.conftest import HOSTILE
from tests.report.tables import Job, borrowed
from traceforge.forecast.ensemble import Ensemble, fit_ensemble
from traceforge.forecast.fit import fit_rows
from traceforge.forecast.marginal_cost import marginal_cost_rows
from traceforge.forecast.points import Curve
from traceforge.forecast.restart import Restart
from traceforge.forecast.scale import scale_rows
from traceforge.forecast.stability import of_restart
from traceforge.forecast.what_if import WhatIfRow
from traceforge.report.charts.scaling import CurvePoint, Mark, scaling_spec, scaling_tables
from traceforge.report.cost import Price
from traceforge.report.page import Report, build_report
from traceforge.store.database import Store


def report_of(store: Store, price: Price | None = None) -> Report:
    return build_report(store, run_id=1, versions={}, command=None, price=price)


def words(html: str) -> str:
    body = html.partition('<section id="scaling"')[2].partition("</section>")[0]
    bare = re.sub(r"<script\b.*?</script>", " ", body, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", bare).split()).replace("\N{NO-BREAK SPACE}", " ").replace("&#39;", "'")


def fill(store: Store, table: str, rows: list[dict[str, object]]) -> None:
    known = store.query(f"FROM forecast.{table} LIMIT 0").columns
    frame = pl.DataFrame([{"run_id": 1, **row} for row in rows], infer_schema_length=None)
    store.append(f"forecast.{table}", frame.select([name for name in frame.columns if name in known]))


def with_curve(store: Store) -> Ensemble:
    """The baseline column of the scaling table, measured up to 32, as the stage leaves it."""
    points = points_of("baseline", up_to=32)
    ensemble = fit_ensemble(points)
    assert ensemble is not None
    curve = Curve(dict(enumerate(points)), {}, ensemble)
    fill(store, "scale", list(scale_rows(curve)))
    measured = [{"run_id": n, "run_name": p.name, "ranks": p.ranks, "cv": p.cv} for n, p in enumerate(points)]
    store.execute("DELETE FROM forecast.point")
    store.append("forecast.point", pl.DataFrame(measured))
    left_out = {"item": "Run other with the same element type", "why": "It is left out of the curve: other reasons."}
    fill(store, "missing_measurement", [left_out])
    fill(store, "fit", list(fit_rows(curve)))
    fill(store, "marginal_cost", list(marginal_cost_rows(curve)))
    change = WhatIfRow(
        32, "fix", "Fix slow compute of rank 2", 1.08, 1.05, 1.11, 5.2, 13.0, 0.2, "replay without this delay"
    )
    fill(store, "what_if", [asdict(change)])
    return ensemble


@pytest.fixture
def store() -> Iterator[Store]:
    with borrowed(Job()) as made:
        yield made


def test_a_measured_point_is_told_but_no_curve_is_drawn(store: Store) -> None:
    measured = {"model": "measured", "ranks": 4, "value": 8.558, "low": 8.48, "high": 8.64, "extrapolated": False}
    fill(store, "scale", [measured])

    report = report_of(store)

    page = words(report.html)
    assert "No scaling curve: one job size" in page
    assert "Measured: 8.56 iterations a second on 4 ranks." in page
    assert 'id="figure-scaling"' not in report.html
    assert report.summary["forecast"] == {
        "refused": True,
        "needs": ["a run at another number of ranks", "the batch size of each run"],
    }


def test_a_curve_is_drawn_with_what_is_extrapolated_marked(store: Store) -> None:
    with_curve(store)

    report = report_of(store)

    page = words(report.html)
    assert 'id="figure-scaling"' in report.html
    assert (
        "From 4 to 32 ranks efficiency falls to 71 %; at 64 it would be 48 % (41 % to 56 %), by extrapolation." in page
    )
    assert "From 26 ranks on, an added rank brings less than half" in page
    assert "No scaling curve" not in page
    summary = report.summary["forecast"]
    assert isinstance(summary, dict)
    assert summary["refused"] is False


def test_models_margin_changes_and_what_is_left_out_are_told(store: Store) -> None:
    with_curve(store)

    page = words(report_of(store).html)

    assert "In the band: Power law, Structural, Universal Scalability Law and Amdahl's law." in page
    assert "left out" in page
    assert (
        "Added to 8 ranks, 87 % of a rank's time is useful; added to 128, straggling takes most of the rest, 93 %."
        in page
    )
    assert "At 32 ranks one change would bring the most: fix slow compute of rank 2, +8.0 % throughput" in page
    assert "Run other with the same element type It is left out of the curve: other reasons." in page


def test_variation_by_scale_and_restarts_are_told(store: Store) -> None:
    with_curve(store)
    fill(store, "stability", [asdict(of_restart(Restart("before", 5, 6e8, 90 * 10**9)))])

    page = words(report_of(store).html)

    assert "by scale: 2.0 % at 4 ranks, 4.0 % at 8 ranks, 9.0 % at 16 ranks and 15 % at 32 ranks." in page
    assert "This run goes on from within run before: 5 iterations were done twice (600 ms), 90.0 s after" in page


def test_money_is_told_only_at_a_price_that_is_given(store: Store) -> None:
    with_curve(store)

    free, given = (words(report_of(store, price=price).html) for price in (None, Price(5.0, "EUR")))

    assert "5 EUR a GPU-hour" in given
    assert "26.0 EUR" in given
    assert "worth an hour" in given
    for word in ("worth an hour", "break-even", "cost of 1M", "a GPU-hour"):
        assert word not in free


def test_the_parts_of_the_chart_meet_at_the_largest_measured_scale() -> None:
    curve = [CurvePoint(n, 100.0 / n, 90.0 / n, 110.0 / n, n > 8) for n in (2, 4, 8, 16)]

    tables = scaling_tables(curve, [Mark(8, 12.0, "run")], [])

    assert tables["fitted"]["ranks"] == [2, 4, 8]
    assert tables["forecast"]["ranks"] == [8, 16]
    assert tables["beyond"]["ranks"] == [8, 16]
    assert "knees" not in tables


def test_a_line_without_a_band_or_a_value_draws_what_it_has() -> None:
    curve = [CurvePoint(4, 1.0, None, None, False), CurvePoint(8, None, None, None, True)]

    tables = scaling_tables(curve, [], [])
    spec = scaling_spec("efficiency, %", [4, 8], tables)

    assert "band" not in tables
    assert {layer["data"]["name"] for layer in spec["layer"]} <= set(tables)


@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 400)])
def test_the_curve_is_drawn_in_a_browser_and_names_stay_names(
    store: Store, page: Page, tmp_path: Path, scheme: str, width: int
) -> None:
    with_curve(store)
    for table, column in (
        ("missing_measurement", "item"),
        ("missing_measurement", "why"),
        ("what_if", "change"),
        ("fit", "parameters"),
    ):
        store.execute(f"UPDATE forecast.{table} SET {column} = {column} || ?", [HOSTILE])
    store.execute("UPDATE forecast.point SET run_name = run_name || ?", [HOSTILE])

    page.open(report_of(store).html, tmp_path, scheme=scheme, width=width)
    page.draw_all()

    assert page.run("return document.querySelectorAll('#figure-scaling .chart svg').length") == 2
    assert page.run("return window.PWNED") is None
    assert page.complaints() == []
    assert page.requests() == [(tmp_path / "report.html").as_uri()]


@pytest.mark.parametrize(
    ("ratio", "low", "high", "said"),
    [
        (1.08, 1.05, 1.11, "one change would bring the most: fix slow compute of rank 2, +8.0 % throughput"),
        (1.01, 0.999, 1.028, "it is not sure that one change would bring anything: fix slow compute of rank 2, +1.0 %"),
        (1.0, 1.0, 1.0, "it is not sure that one change would bring anything: fix slow compute of rank 2, ±0.0 %"),
    ],
)
def test_a_change_whose_gain_may_be_nothing_is_not_said_to_bring_the_most(
    store: Store, ratio: float, low: float, high: float, said: str
) -> None:
    change = WhatIfRow(32, "fix", "Fix slow compute of rank 2", ratio, low, high, 5.2, 13.0, 0.2, "replay")
    fill(store, "what_if", [asdict(change)])

    assert f"At 32 ranks {said}" in words(report_of(store).html)
