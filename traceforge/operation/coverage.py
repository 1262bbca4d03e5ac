"""How much of the device's work operation.kernel holds. Reads the calls of each rank; fills operation.coverage."""

import numpy as np
import polars as pl

from traceforge.operation.calls import JOINED, Calls, read_calls
from traceforge.store.database import Store

_RANKS = "SELECT run_id, rank, source_id, has_device FROM align.rank ORDER BY run_id, rank"

_SCHEMA = {
    "run_id": pl.Int32,
    "rank": pl.Int32,
    "reason": pl.String,
    "is_counted": pl.Boolean,
    "events": pl.Int64,
    "duration_ns": pl.Int64,
}

_REASONS = (*JOINED, "not_judged", "no_time")
_NOT_JUDGED, _NO_TIME = len(JOINED), len(JOINED) + 1


def rows(store: Store) -> pl.DataFrame:
    """One row a rank and reason that occurs."""
    found = []
    for run_id, rank, source_id, has_device in store.query(_RANKS).iter_rows():
        calls = store.once(read_calls, run_id, rank, source_id, has_device)
        found += [(run_id, rank, *counted) for counted in _counted(calls)]
    return pl.DataFrame(found, schema=_SCHEMA, orient="row")


def _counted(calls: Calls) -> "list[tuple[str, bool, int, int]]":
    reason = np.where(calls.is_judged, calls.joined, np.where(calls.has_time, _NOT_JUDGED, _NO_TIME))
    events = np.bincount(reason, minlength=len(_REASONS))
    spent = np.zeros(len(_REASONS), dtype=np.int64)
    np.add.at(spent, reason, calls.duration_ns)
    return [
        (name, name in JOINED, int(events[number]), int(spent[number]))
        for number, name in enumerate(_REASONS)
        if events[number]
    ]
