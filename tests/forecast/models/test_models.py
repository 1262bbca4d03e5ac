"""Each model, from numbers that follow it exactly; and what holds of all of them, whoever adds one."""

from pathlib import Path

import numpy as np
import pytest

import traceforge.forecast.models
from traceforge.forecast.ensemble import fit_ensemble
from traceforge.forecast.fit import fit_rows
from traceforge.forecast.marginal_cost import marginal_cost_rows
from traceforge.forecast.model import models
from traceforge.forecast.models.structural import TermFit
from traceforge.forecast.points import Curve
from traceforge.forecast.scale import scale_rows
from traceforge.forecast.scale_point import ScalePoint, StepTerms, ranks_of, steps_of

RANKS = np.array([4.0, 8, 16, 32])
LARGER = np.array([64.0, 128])


def points_at(steps_s: np.ndarray, cv: float | None = None) -> list[ScalePoint]:
    return [ScalePoint(f"{n:.0f}", int(n), n / t, cv=cv) for n, t in zip(RANKS, steps_s, strict=True)]


@pytest.mark.parametrize("name", models())
def test_parts_add_up_and_throughput_is_positive(name: str) -> None:
    points = points_at(1 + 0.01 * RANKS, cv=0.05)
    fit = models()[name].fit(points, steps_of(points)[None])

    whole = fit.step_s(LARGER)[0]

    assert (whole > 0).all()
    assert sum(fit.parts(LARGER).values()) == pytest.approx(whole)
    assert all(isinstance(value, float) for value in fit.parameters().values())


@pytest.mark.parametrize("name", models())
def test_several_sets_are_fitted_as_one_by_one(name: str) -> None:
    points = points_at(1 + 0.01 * RANKS, cv=0.05)
    sets = steps_of(points) * np.array([[1.0], [1.03]]) ** np.arange(4)

    together = models()[name].fit(points, sets).step_s(LARGER)

    alone = models()[name].fit(points, sets[1:]).step_s(LARGER)
    assert together[1] == pytest.approx(alone[0], rel=1e-6)


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("amdahl", lambda n: 2 * (1 + 0.02 * (n - 1))),
        ("usl", lambda n: 2 * (1 + 0.01 * (n - 1) + 1e-4 * n * (n - 1))),
        ("power_law", lambda n: 1 + 0.03 * n**0.75),
    ],
)
def test_a_law_is_continued_where_the_job_keeps_it(name: str, law: object) -> None:
    points = points_at(law(RANKS))  # type: ignore[operator]

    fit = models()[name].fit(points, steps_of(points)[None])

    assert fit.step_s(LARGER)[0] == pytest.approx(law(LARGER), rel=0.002)  # type: ignore[operator]


def terms_of(n: float) -> StepTerms:
    """A ring of 10 us a step and 40 ms for all bytes, of which 5 ms are hidden; waiting grows as the square root."""
    total = 10e-6 * 2 * (n - 1) + 40e-3 * 2 * (n - 1) / n
    return StepTerms(local_s=0.1, exposed_s=total - 5e-3, hidden_s=5e-3, waiting_s=2e-3 * n**0.5)


def measured(n: float) -> ScalePoint:
    terms = terms_of(n)
    return ScalePoint(f"{n:.0f}", int(n), n / (terms.local_s + terms.exposed_s + terms.waiting_s), terms=terms)


def test_measured_terms_are_continued_each_by_its_own_growth() -> None:
    points = [measured(n) for n in RANKS]

    fit = models()["structural"].fit(points, steps_of(points)[None])

    assert isinstance(fit, TermFit)
    assert fit.latency_s[0] == pytest.approx(10e-6, rel=1e-3)
    assert fit.byte_s[0] == pytest.approx(40e-3, rel=1e-3)
    assert fit.growth[0] == pytest.approx(0.5, rel=1e-3)
    assert fit.step_s(LARGER)[0] == pytest.approx([measured(n).step_s for n in LARGER], rel=1e-3)
    assert fit.parts(LARGER)["exposed_communication"] == pytest.approx(
        [terms_of(n).exposed_s for n in LARGER], rel=1e-3
    )


def test_what_compute_hides_at_a_small_scale_costs_nothing_there() -> None:
    # given communication that compute hides whole
    points = [ScalePoint(f"{n:.0f}", int(n), n / 0.1, terms=StepTerms(0.1, 0.0, 5e-3, 0.0)) for n in RANKS]

    fit = models()["structural"].fit(points, steps_of(points)[None])

    assert fit.step_s(RANKS)[0] == pytest.approx([0.1] * 4, rel=5e-3)


def test_a_run_within_one_host_tells_nothing_of_the_fabric() -> None:
    # given a run on 4 ranks of one host, whose links are a hundred times faster
    inside = ScalePoint("4", 4, 4 / 0.1, terms=StepTerms(0.1, 5e-4, 0.0, 1e-6), facts={"spans_hosts": "no"})
    points = [inside, *(measured(n) for n in RANKS[1:])]

    fit = models()["structural"].fit(points, steps_of(points)[None])

    assert isinstance(fit, TermFit)
    assert fit.byte_s[0] == pytest.approx(40e-3, rel=1e-2)


def test_measured_contention_grows_with_waiting() -> None:
    points = [
        ScalePoint(p.name, p.ranks, p.throughput, terms=StepTerms(*_with_contention(p.terms)))
        for p in map(measured, RANKS)
        if p.terms
    ]

    fit = models()["structural"].fit(points, steps_of(points)[None])

    parts = fit.parts(ranks_of(points))
    assert parts["contention"] / parts["straggling"] == pytest.approx([0.5] * 4)


def _with_contention(terms: StepTerms) -> tuple[float, ...]:
    extra = 0.5 * terms.waiting_s
    return terms.local_s, terms.exposed_s + extra, terms.hidden_s, terms.waiting_s, extra


A_NEW_MODEL = """
import numpy as np

from traceforge.forecast.model import SumModel


def _shapes(ranks):
    return np.stack([np.ones_like(ranks), np.log2(ranks)], axis=1)


MODEL = SumModel("logarithmic", ("work", "tree"), _shapes, lambda weights: {"a_level_s": float(weights[1])})
"""


def test_a_new_model_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a file more in the folder of models, and a job whose step grows with the depth of a tree
    (tmp_path / "logarithmic.py").write_text(A_NEW_MODEL, encoding="utf-8")
    monkeypatch.setattr(traceforge.forecast.models, "__path__", [*traceforge.forecast.models.__path__, str(tmp_path)])
    points = points_at(1 + 0.1 * np.log2(RANKS))

    ensemble = fit_ensemble(points)

    # then it predicts the largest scale best, and stands in every table that is made of models
    assert ensemble is not None
    curve = Curve(dict(enumerate(points)), {}, ensemble)
    fits = {row["model"]: row for row in fit_rows(curve)}
    assert fits["logarithmic"]["parameters"] == "a_level_s=0.1"
    assert fits["logarithmic"]["is_used"]
    assert fits["logarithmic"]["weight"] == max(row["weight"] for name, row in fits.items() if name != "ensemble")
    assert "logarithmic" in {row["model"] for row in scale_rows(curve)}
    assert sum(row["share"] for row in marginal_cost_rows(curve) if row["ranks"] == 64) == pytest.approx(1)
