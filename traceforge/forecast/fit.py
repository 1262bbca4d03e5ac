"""Fills forecast.fit: the models of every run's curve."""

from collections.abc import Iterator

import polars as pl

from traceforge.forecast.curve import limits_of
from traceforge.forecast.fitting import log_error
from traceforge.forecast.points import Curve, Row, rows_of_curves
from traceforge.forecast.scale_point import ranks_of, steps_of
from traceforge.store.database import Store


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, model); none for a run that is alone at its scale."""
    return rows_of_curves(store, fit_rows)


def fit_rows(curve: Curve) -> Iterator[Row]:
    """The models of a curve, and all of them together."""
    ensemble = curve.ensemble
    if ensemble is None:
        return
    for member in ensemble.members:
        yield {
            "model": member.model.name,
            "parameters": ",".join(f"{name}={value:.4g}" for name, value in member.fit.parameters().items()),
            "misfit": member.residual,
            "backtest": member.backtest,
            "weight": member.weight,
            "is_used": member.is_used,
            **limits_of(ensemble, member),
        }
    ranks = ranks_of(ensemble.points)
    misfit = float(log_error(steps_of(ensemble.points), ranks / ensemble.value(ranks)))
    yield {
        "model": "ensemble",
        "parameters": "",
        "misfit": misfit,
        "weight": 1.0,
        "is_used": True,
        **limits_of(ensemble),
    }
