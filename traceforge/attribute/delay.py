"""The ledger. Reads graph.* through the dense model; fills attribute.delay from the blame of each iteration.

Shares are real numbers; they are rounded to ns so that each iteration's rows still add up to its rounded excess. Where
the usual host needs longer than the reference, that part of the excess is nobody's loss, and left out.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from traceforge.attribute.cause import UNEXPLAINED, causes, of_hosts
from traceforge.attribute.ledger.blame_of_run import blame_of_run
from traceforge.attribute.ledger.coupled_transfers import charged_to_late_ranks
from traceforge.attribute.ledger.host_causes import load_judged_input
from traceforge.attribute.ledger.host_floor import load_host_floor
from traceforge.attribute.ledger.ledger_input import ON_DEVICE, LedgerInput
from traceforge.attribute.ledger.rounding import round_to_sum
from traceforge.attribute.ledger.slow_transfers import transfer_causes
from traceforge.replay.evidence import IDENTIFIABLE, MECHANISMS, calibration_rows
from traceforge.replay.reference import references
from traceforge.store.database import Store

FASTER = "faster_than_reference"

# Communicator, and the two ranks between which messages go.
_Path = tuple[int | None, int | None, int | None]

_OWNER = {
    "rank": pl.Int32,
    "communicator_id": pl.Int32,
    "low_rank": pl.Int32,
    "high_rank": pl.Int32,
    "mode": pl.String,
    "cause": pl.String,
}


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """One row an owner of a part of an iteration's excess."""
    for run_id in store.run_ids():
        run = store.once(load_judged_input, run_id)
        if run is not None:
            on_device = bool(store.value(ON_DEVICE, [run_id]))
            yield _rows(store, run, run_id, on_device=on_device)


def _growth(store: Store, run_id: int) -> float:
    """By how much transfers surely grow with the mean wait before them; 0 where that is not known."""
    found = calibration_rows(store, run_id).get(MECHANISMS["spread"])
    is_sure = found is not None and found.verdict == IDENTIFIABLE and (found.low or 0.0) > 0
    return (found.coefficient or 0.0) if found is not None and is_sure else 0.0


def _rows(store: Store, run: LedgerInput, run_id: int, *, on_device: bool) -> pl.DataFrame:
    growth = _growth(store, run_id)
    of_transfers = transfer_causes(run, references(run.model), on_device=on_device)
    owned = store.once(blame_of_run, run_id)
    owned = charged_to_late_ranks(run, owned, growth) if growth > 0 else owned
    floor = load_host_floor(store, run_id, run.model)
    owners = _owners(run, of_transfers)
    by_devices = owned[:, [not of_hosts(name) for name in owners["cause"]]].sum(axis=1)
    part = 1.0 if floor is None else floor.part_of_loss(run.model, owned.sum(axis=1), np.maximum(0.0, by_devices))
    delays = round_to_sum(part * owned)
    place, owner = np.nonzero(delays)
    return owners[owner].with_columns(
        run_id=pl.lit(run_id, dtype=pl.Int32),
        iteration=pl.Series(run.model.iterations[place]),
        delay_ns=pl.Series(delays[place, owner]),
    )


def _owners(run: LedgerInput, causes_of_transfers: Sequence[str]) -> pl.DataFrame:
    """Rank, communicator or message path, mode and cause of each owner, in the order of `owned_ns`."""
    names = [cause for cause, _ in run.model.kinds]
    ranks = run.model.ranks.tolist()
    nothing: _Path = (None, None, None)
    owners: list[tuple[int | None, int | None, int | None, int | None, str, str]] = [
        (rank, *nothing, _mode(cause), cause) for rank in ranks for cause in names
    ]
    paths: dict[int, _Path] = {
        number: (path.communicator_id, path.low_rank, path.high_rank) for number, path in run.paths.items()
    }
    for number, cause in zip(run.communicators, causes_of_transfers, strict=True):
        owners.append((None, *paths.get(number, (number, None, None)), _mode(cause), cause))
    owners.append((None, *nothing, _mode(FASTER), FASTER))
    return pl.DataFrame(owners, schema=_OWNER, orient="row")


def _mode(cause: str) -> str:
    return causes()[cause].mode if cause in causes() else UNEXPLAINED.mode
