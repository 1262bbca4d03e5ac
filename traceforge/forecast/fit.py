"""Fills forecast.fit: the models of every run's curve."""

import polars as pl

from traceforge.forecast.fitted import fitted
from traceforge.store.database import Store


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, model); none for a run that is alone at its scale."""
    result: list[dict[str, object]] = []
    for run_id, found in fitted(store, with_band=False).items():
        for member in found.ensemble.members if found.ensemble else ():
            parameters = ",".join(f"{name}={value:.4g}" for name, value in member.fit.parameters().items())
            result.append(
                {
                    "run_id": run_id,
                    "model": member.model.name,
                    "parameters": parameters,
                    "misfit": member.residual,
                    "backtest": member.backtest,
                    "weight": member.weight,
                    "is_used": member.is_used,
                }
            )
    return pl.DataFrame(result, infer_schema_length=None)
