"""The ledger. Reads graph.* through the dense model; fills attribute.delay from the blame of each iteration.

Shares are real numbers; they are rounded to ns so that each iteration's rows still add up to its rounded excess.
"""

from collections import defaultdict

import numpy as np
import polars as pl

from traceforge.attribute.blame import Blame, blame_iteration
from traceforge.attribute.cause import UNEXPLAINED, cause_of_transfer, cause_of_work, causes
from traceforge.replay.model import StepModel, load_model
from traceforge.replay.reference import references
from traceforge.store.database import Store

FASTER = "faster_than_reference"

_SCHEMA = {
    "run_id": pl.Int32,
    "iteration": pl.Int32,
    "rank": pl.Int32,
    "mode": pl.String,
    "cause": pl.String,
    "delay_ns": pl.Int64,
}

Owner = tuple[int | None, str]


def rows(store: Store) -> pl.DataFrame:
    """One row an owner of a part of an iteration's excess."""
    result: list[tuple[object, ...]] = []
    for run_id in store.query("SELECT run_id FROM meta.run ORDER BY run_id")["run_id"]:
        model = load_model(store, run_id)
        if model is None:
            continue
        of_length = references(model)
        for i, iteration in enumerate(model.iterations.tolist()):
            owned = _by_owner(model, blame_iteration(model, i, of_length[int(model.calls[i])]))
            for (rank, cause), delay_ns in round_to_sum(owned).items():
                result.append((run_id, iteration, rank, _mode(cause), cause, delay_ns))
    return pl.DataFrame(result, schema=_SCHEMA, orient="row")


def _mode(cause: str) -> str:
    return causes()[cause].mode if cause in causes() else UNEXPLAINED.mode


def _by_owner(model: StepModel, blame: Blame) -> dict[Owner, float]:
    owned: dict[Owner, float] = defaultdict(float)
    names = [cause_of_work(phase, activity) for phase, activity in model.kinds]
    for rank, amounts in zip(model.ranks.tolist(), blame.work_ns, strict=True):
        for name, amount in zip(names, amounts.tolist(), strict=True):
            owned[rank, name] += amount
    owned[None, cause_of_transfer()] += blame.transfer_ns
    owned[None, FASTER] += blame.early_ns
    return {owner: amount for owner, amount in owned.items() if amount}


def round_to_sum(amounts: dict[Owner, float]) -> dict[Owner, int]:
    """Round amounts to integers whose sum is the rounded sum; those with the largest fractions are rounded up."""
    if not amounts:
        return {}
    exact = np.array(list(amounts.values()))
    rounded = np.floor(exact).astype(np.int64)
    missing = round(float(exact.sum())) - int(rounded.sum())
    rounded[np.argsort(rounded - exact, kind="stable")[:missing]] += 1
    return {owner: int(amount) for owner, amount in zip(amounts, rounded, strict=True) if amount}
