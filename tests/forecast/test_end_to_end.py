"""From traces at several scales to a curve at others, which is then compared with what the job truly does there."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.forecast.jobs import at_scale, database_of, true_pace
from tests.given import MS, built, data_parallel_job, rows_of, store_of
from traceforge.forecast import points
from traceforge.forecast.ensemble import fit_ensemble
from traceforge.store.database import Store
from traceforge.store.stage import build_stage
from traceforge.synth.program import Workload

ENSEMBLE = (
    "SELECT value, low, high, extrapolated FROM forecast.scale WHERE run_id = 0 AND model = 'ensemble' AND ranks = ?"
)


@pytest.fixture(scope="module")
def three_scales() -> Iterator[Store]:
    """The job on 2, 4 and 8 ranks; beside it one of a batch three times as large, and one of twice the gradients."""
    larger_batch = replace(at_scale(4), name="batch", workload=Workload(layers=2, forward_ns=6_000_000))
    larger_model = replace(at_scale(2), name="model", workload=Workload(layers=2, gradient_bytes=400_000_000))
    with database_of(at_scale(2), at_scale(4), at_scale(8), larger_batch, larger_model) as store:
        yield store


@pytest.mark.parametrize("ranks", [16, 32])
def test_the_curve_meets_what_the_job_truly_does(three_scales: Store, ranks: int) -> None:
    ((value, low, high, extrapolated),) = three_scales.query(ENSEMBLE, [ranks]).rows()

    truth = true_pace(at_scale(ranks))
    assert extrapolated
    assert value == pytest.approx(truth, rel=0.10)
    assert low < truth < high


def test_measured_scales_are_not_called_extrapolated(three_scales: Store) -> None:
    rows = rows_of(
        three_scales, "SELECT DISTINCT ranks FROM forecast.scale WHERE NOT extrapolated AND model = 'measured'"
    )

    assert sorted(rows) == [(2,), (4,), (8,)]
    assert rows_of(three_scales, "SELECT COUNT(*) FROM forecast.scale WHERE NOT extrapolated AND ranks > 8") == [(0,)]


def test_every_run_has_the_curve_that_it_lies_on(three_scales: Store) -> None:
    query = "SELECT ranks, value FROM forecast.scale WHERE run_id = ? AND model = 'ensemble' ORDER BY ranks"

    curves = [rows_of(three_scales, query, [run_id]) for run_id in (0, 1, 2)]

    assert curves[0] == curves[1] == curves[2]


def test_the_structural_model_finds_the_link_that_the_job_was_made_with(three_scales: Store) -> None:
    # given a fabric of 45 bytes a ns, and 200 MB of gradients
    ((parameters,),) = rows_of(
        three_scales, "SELECT parameters FROM forecast.fit WHERE run_id = 0 AND model = 'structural'"
    )

    values = dict(part.split("=") for part in str(parameters).split(","))
    assert float(values["byte_s"]) == pytest.approx(200e6 / 45e9, rel=0.05)


def test_each_curve_is_fitted_once_for_all_tables(three_scales: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    # given three runs on one curve and two that are alone
    fitted: list[int] = []
    monkeypatch.setattr(points, "fit_ensemble", lambda scales: fitted.append(len(scales)) or fit_ensemble(scales))

    build_stage(three_scales, "traceforge.forecast")

    assert sorted(fitted) == [1, 1, 3]


def test_where_one_more_rank_goes_adds_up(three_scales: Store) -> None:
    rows = rows_of(
        three_scales,
        "SELECT SUM(share), BOOL_AND(one_more_rank = 'helps') FROM forecast.marginal_cost GROUP BY run_id, ranks",
    )

    assert rows
    for total, helps in rows:
        assert total == pytest.approx(1)
        assert helps


def test_a_faster_fabric_brings_what_the_job_truly_gains(three_scales: Store) -> None:
    # given the same job at 8 ranks with half of the bytes: as over a fabric twice as fast, but for latency
    ((ratio, low, high),) = rows_of(
        three_scales,
        "SELECT throughput_ratio, low, high FROM forecast.what_if WHERE run_id = 2 AND kind = 'faster_fabric'",
    )

    halved = replace(at_scale(8), workload=Workload(layers=2, gradient_bytes=100_000_000))
    truth = true_pace(halved) / true_pace(at_scale(8))
    assert ratio == pytest.approx(truth, rel=0.03)
    assert low <= ratio <= high


def test_runs_that_are_other_jobs_are_left_out_by_the_fields_name(three_scales: Store) -> None:
    measured = "SELECT measured_run_id FROM forecast.scale WHERE run_id = 0 AND model = 'measured' ORDER BY ALL"
    members = rows_of(three_scales, measured)
    models = rows_of(three_scales, "SELECT DISTINCT model FROM forecast.scale WHERE run_id IN (3, 4)")
    needs = [
        item for (item,) in rows_of(three_scales, "SELECT item FROM forecast.missing_measurement WHERE run_id = 0")
    ]

    ((why,),) = rows_of(
        three_scales, "SELECT why FROM forecast.missing_measurement WHERE run_id = 3 AND item LIKE 'Run model %'"
    )

    assert members == [(0,), (1,), (2,)]
    assert models == [("measured",)]
    assert "the same batch would take as long; message sizes: an iteration reduces 400 MB against 200 MB." in why
    assert {"Run batch with the same batch per rank", "Run model with the same message sizes"} <= set(needs)


def test_one_run_makes_no_curve_but_an_outlook() -> None:
    rng = np.random.default_rng(0)
    work = rng.integers(90 * MS, 110 * MS, size=(12, 4)).tolist()
    with built(store_of(*data_parallel_job(work, transfer_ns=10 * MS)), "forecast") as store:
        models = rows_of(store, "SELECT model, ranks FROM forecast.scale")
        outlook = rows_of(
            store, "SELECT ranks, method, slowest_ns IS NULL, refusal IS NULL FROM forecast.outlook ORDER BY ranks"
        )
        needs = [item for (item,) in rows_of(store, "SELECT item FROM forecast.missing_measurement")]
        curve = rows_of(store, "FROM forecast.fit") + rows_of(store, "FROM forecast.marginal_cost")

    assert models == [("measured", 4)]
    assert outlook == [
        (4, "measured", False, True), (8, "rank_blocks", False, True), (16, "rank_blocks", False, True),
        (64, "tail", True, False), (256, "tail", True, False),
    ]  # fmt: skip
    assert "The same job at two or more other scales than 4 ranks" in needs
    assert curve == []
