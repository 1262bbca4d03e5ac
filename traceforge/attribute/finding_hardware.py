"""The next step of a finding whose ranks have devices of another model. In: findings, operation.device. Out: the same.

Idea: where none of the other ranks has a device like those of the slow ones, that is the first thing to know: nothing
need be broken. It is said before where else to look, because a slower model may be broken as well.
"""

from collections.abc import Callable, Mapping
from typing import Any

from traceforge.store.database import Store

_DEVICES = "SELECT run_id, rank, device FROM operation.device ORDER BY run_id, rank"
_COMPUTING = "slow_compute"
_MOST_MODELS = 2


def steps_of_models(store: Store) -> Callable[[Mapping[str, Any]], str]:
    """The next step of a finding, which says first of slow compute if its devices are of another model."""
    models: dict[int, dict[int, str | None]] = {}
    for run_id, rank, device in store.rows(_DEVICES):
        models.setdefault(run_id, {})[rank] = device
    return lambda finding: _next_step(finding, models.get(finding["run_id"], {}))


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
