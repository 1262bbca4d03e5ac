"""The curves of a database, fitted. In: forecast.point. Out: by run, its curve and the ensemble through it.

Runs that compare to one another share one curve, which is fitted once.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from traceforge.forecast.ensemble import Ensemble, fit_ensemble
from traceforge.forecast.points import Curve, curves
from traceforge.store.database import Store


@dataclass(frozen=True, slots=True)
class Fitted:
    """A run's curve; `ensemble` is None where its points lie at one scale."""

    curve: Curve
    ensemble: Ensemble | None


def fitted(store: Store, *, with_band: bool) -> Mapping[int, Fitted]:
    """The fitted curve of every run that has a point.

    Args:
        with_band: whether bands will be asked for; they take the most time. The same draws are made every time.
    """
    ensembles: dict[frozenset[int], Ensemble | None] = {}
    found = {}
    for run_id, curve in curves(store).items():
        members = frozenset(curve.run_ids)
        if members not in ensembles:
            rng = np.random.default_rng(0) if with_band else None
            ensembles[members] = fit_ensemble(curve.points, rng)
        found[run_id] = Fitted(curve, ensembles[members])
    return found
