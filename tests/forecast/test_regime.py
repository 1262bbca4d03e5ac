"""Links within a host and between hosts: a curve holds on one side, and says nothing of links that no run used."""

from dataclasses import replace

import numpy as np
import pytest

from traceforge.forecast.ensemble import fit_ensemble
from traceforge.forecast.goodput import Assumptions
from traceforge.forecast.plan import plan
from traceforge.forecast.regime import boundary_of, with_regimes
from traceforge.forecast.scale_point import Lateness, ScalePoint, StepTerms

INSIDE_S, BETWEEN_S = 2e-3, 20e-3
"""What all bytes take over either link."""


def point(ranks: int, hosts: int | None, *, late_s: float = 0.0) -> ScalePoint:
    """100 ms of work, and a ring over links that are ten times slower from 16 ranks on."""
    link = INSIDE_S if ranks <= 8 else BETWEEN_S
    transfer = link * 2 * (ranks - 1) / ranks
    facts: dict[str, str | float] = {}
    if hosts is not None:
        facts = {"hosts": hosts, "spans_hosts": "yes" if hosts > 1 else "no"}
    terms = StepTerms(0.1, transfer, 0.0, late_s)
    lateness = {factor: Lateness(late_s, late_s, late_s) for factor in (1, 2, 4)} if late_s else {}
    return ScalePoint(f"n{ranks}", ranks, ranks / (0.1 + transfer + late_s), 1e-3, 1e-3, terms, facts, lateness)


NAMED = [point(4, 1), point(8, 1), point(16, 2), point(32, 4)]
UNNAMED = [replace(one, facts={}) for one in NAMED]
TRUE_AT_64 = 64 / (0.1 + BETWEEN_S * 2 * 63 / 64)


@pytest.mark.parametrize("points", [NAMED, UNNAMED])
def test_beyond_a_host_the_curve_follows_the_links_between_hosts(points: list[ScalePoint]) -> None:
    ensemble = fit_ensemble(points)
    assert ensemble is not None

    found = ensemble.predict(np.array([64.0]))

    assert found.value[0] == pytest.approx(TRUE_AT_64, rel=0.01)
    assert found.low[0] < TRUE_AT_64 < found.high[0]


def test_a_jump_of_the_transfers_shows_the_boundary_where_no_run_names_hosts() -> None:
    found = boundary_of(with_regimes(UNNAMED))

    assert (found.inside, found.across, found.is_named) == (8, 16, False)
    assert boundary_of(with_regimes(UNNAMED[2:])).inside is None


def test_a_scale_alone_on_its_side_of_the_boundary_makes_no_curve() -> None:
    # given 8 ranks in a host and 16 in two: either is the only one of its links
    assert fit_ensemble([point(8, 1), point(16, 2)]) is None


def test_nothing_is_said_across_hosts_where_no_run_crossed() -> None:
    ensemble = fit_ensemble([point(2, 1), point(4, 1), point(8, 1)])
    assert ensemble is not None

    inside, beyond = plan(ensemble, [8, 16], Assumptions())

    assert inside.throughput is not None
    assert inside.refusal is None
    assert (beyond.throughput, beyond.throughput_low, beyond.throughput_high) == (None, None, None)
    assert beyond.refusal is not None
    assert "no run crossed hosts" in beyond.refusal
    assert "a run on two hosts" in beyond.refusal


@pytest.mark.parametrize("points", [NAMED, UNNAMED])
def test_the_curve_meets_every_measured_point(points: list[ScalePoint]) -> None:
    ensemble = fit_ensemble(points)
    assert ensemble is not None

    for one in points:
        assert ensemble.value(np.array([float(one.ranks)]))[0] == pytest.approx(one.throughput, rel=3e-3)


def test_a_rank_that_is_slow_at_the_largest_scale_only_is_no_growth() -> None:
    # given a rank that is 20 ms late at 32 ranks, and no later at 64 or 128
    points = [*NAMED[:3], point(32, 4, late_s=0.02)]
    ensemble = fit_ensemble(points)
    assert ensemble is not None

    found = ensemble.predict(np.array([64.0]))

    truth = 64 / (0.12 + BETWEEN_S * 2 * 63 / 64)
    assert found.value[0] == pytest.approx(truth, rel=0.02)
    assert found.low[0] < truth < found.high[0]


def test_a_scale_that_the_models_missed_is_warned_of() -> None:
    # given work that takes half as long again at the largest scale, for no reason that smaller ones show
    steps = {4: 0.10, 8: 0.10, 16: 0.10, 32: 0.15}
    ensemble = fit_ensemble([ScalePoint(f"n{n}", n, n / s, 1e-3) for n, s in steps.items()])
    assert ensemble is not None

    found = ensemble.predict(np.array([32.0, 64.0]))

    assert ensemble.worst_backtest == pytest.approx(0.5, abs=0.02)
    assert found.value[0] == pytest.approx(32 / 0.15, rel=0.01)
    assert found.high[1] / found.low[1] > 1.5
