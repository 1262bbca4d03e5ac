"""The next step of a finding whose ranks have devices of another model. In: findings, operation.device. Out: the same.

Idea: where none of the other ranks has a device like those of the slow ones, that is the first thing to know: nothing
need be broken. It is said before where else to look, because a slower model may be broken as well.
"""

from collections.abc import Mapping
from typing import Any

import polars as pl

from traceforge.store.database import Store

_DEVICES = "SELECT run_id, rank, device FROM operation.device ORDER BY run_id, rank"
_COMPUTING = "slow_compute"
_MOST_MODELS = 2


def with_unlike_devices(store: Store, findings: pl.DataFrame) -> pl.DataFrame:
    """Findings of slow compute that say first that their devices are of another model than their peers'."""
    if findings.is_empty():
        return findings
    models: dict[int, dict[int, str | None]] = {}
    for run_id, rank, device in store.rows(_DEVICES):
        models.setdefault(run_id, {})[rank] = device
    steps = [_next_step(row, models.get(row["run_id"], {})) for row in findings.iter_rows(named=True)]
    return findings.with_columns(next_step=pl.Series(steps, dtype=pl.String))


def _next_step(finding: Mapping[str, Any], models: Mapping[int, str | None]) -> str:
    usual = str(finding["next_step"])
    ranks = set(finding["ranks"])
    own = {models.get(rank) for rank in ranks}
    others = {model for rank, model in models.items() if rank not in ranks}
    is_known = None not in own | others and own and others
    if finding["cause"] != _COMPUTING or not is_known or own & others or len(own | others) > _MOST_MODELS:
        return usual
    mine, theirs = (" ".join(str(model) for model in models) for models in (own, others))
    return (
        f"Unlike devices: {mine} here, {theirs} on the other ranks. If that is meant, give these less to do (smaller"
        f" batches, fewer layers), or run the job on devices of one model. {usual}"
    )
