"""The ledger. Reads graph.* through the dense model; fills attribute.delay from the blame of each iteration.

Shares are real numbers; they are rounded to ns so that each iteration's rows still add up to its rounded excess.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from traceforge.attribute.blame import Blame, blame_iteration
from traceforge.attribute.booking import Booked, booked
from traceforge.attribute.cause import UNEXPLAINED, causes
from traceforge.attribute.path import transfer_causes
from traceforge.replay.model import load_model
from traceforge.replay.reference import references
from traceforge.store.database import Store

FASTER = "faster_than_reference"

_SCHEMA = {
    "run_id": pl.Int32,
    "iteration": pl.Int32,
    "rank": pl.Int32,
    "communicator_id": pl.Int32,
    "mode": pl.String,
    "cause": pl.String,
    "delay_ns": pl.Int64,
}

# Rank, communicator, cause.
Owner = tuple[int | None, int | None, str]


def rows(store: Store) -> pl.DataFrame:
    """One row an owner of a part of an iteration's excess."""
    result: list[tuple[object, ...]] = []
    for run_id in store.query("SELECT run_id FROM meta.run ORDER BY run_id")["run_id"]:
        model = load_model(store, run_id)
        if model is None:
            continue
        for iteration, owned in _ledger(booked(model, store, run_id)):
            for (rank, communicator, cause), delay_ns in round_to_sum(owned).items():
                result.append((run_id, iteration, rank, communicator, _mode(cause), cause, delay_ns))
    return pl.DataFrame(result, schema=_SCHEMA, orient="row")


def _ledger(run: Booked) -> Iterator[tuple[int, dict[Owner, float]]]:
    """Owners of each iteration's excess."""
    of_length = references(run.model)
    causes_of_transfers = transfer_causes(run, of_length)
    for i, iteration in enumerate(run.model.iterations.tolist()):
        blame = blame_iteration(run.model, i, of_length[int(run.model.calls[i])], run.communicator[i])
        yield iteration, _by_owner(run, blame, causes_of_transfers)


def _mode(cause: str) -> str:
    return causes()[cause].mode if cause in causes() else UNEXPLAINED.mode


def _by_owner(run: Booked, blame: Blame, causes_of_transfers: Sequence[str]) -> dict[Owner, float]:
    owned: dict[Owner, float] = {}
    for rank, amounts in zip(run.model.ranks.tolist(), blame.work_ns, strict=True):
        for (cause, _), amount in zip(run.model.kinds, amounts.tolist(), strict=True):
            owned[rank, None, cause] = amount
    for communicator, cause, amount in zip(
        run.communicators, causes_of_transfers, blame.transfers_ns.tolist(), strict=False
    ):
        owned[None, communicator, cause] = amount
    owned[None, None, FASTER] = blame.early_ns
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
