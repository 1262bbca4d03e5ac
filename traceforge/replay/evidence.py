"""What a run tells of couplings, ready for a replay. In: replay.calibration, align.rank. Out: couplings with bounds.

A coupling that was not measured is taken for absent and named as unknown; one that is measured to be absent still has
an upper end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.replay.couplings import NO_COUPLING, Couplings, Estimate
from traceforge.store.database import Store

# Rows of replay.calibration by field of `Couplings`.
MECHANISMS = {
    "spread": "arrival_spread",
    "waiting": "waiting_overlap",
    "transferring": "transfer_overlap",
    "host": "co_located_waiting",
}
PREDICTABILITY = "predictability"
# Couplings may be below 0 (then pacing harms), but no work can take less than no time.
_LEAST = {"spread": -1e9, "waiting": -0.9, "transferring": -0.9, "host": 0.0}
IDENTIFIABLE, ABSENT = "identifiable", "absent"

_ROWS = "SELECT mechanism, coefficient, low, high, n, verdict, reason FROM replay.calibration WHERE run_id = ?"
_HOSTS = "SELECT rank, host FROM align.rank WHERE run_id = ? ORDER BY rank"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Couplings of a run.

    Attributes:
        point: best values; 0 where a coupling is unknown or absent.
        low: lower ends of their 95 % intervals.
        high: upper ends.
        is_measured: whether it is known how transfers follow the spread of arrivals, if only that they do not.
        is_positive: whether a measured coupling, at its lower end, makes anything slower where ranks are early.
        predictability: how well lateness can be told from the past, 0..1; None where it was not measured.
        reason: why the spread's coupling is not known, or what was found.
    """

    point: Couplings
    low: Couplings
    high: Couplings
    is_measured: bool
    is_positive: bool
    predictability: float | None
    reason: str


NOTHING_KNOWN = Evidence(NO_COUPLING, NO_COUPLING, NO_COUPLING, False, False, None, "It was not measured.")


def evidence(estimates: Mapping[str, Estimate]) -> Evidence:
    """What estimates (by mechanism) tell together; upper and lower ends are taken all at once, which is cautious."""
    rows = {field: estimates.get(mechanism) for field, mechanism in MECHANISMS.items()}
    point, low, high = (
        {field: max(_end(row, end), _LEAST[field]) for field, row in rows.items()}
        for end in ("coefficient", "low", "high")
    )
    spread, predictable = rows["spread"], estimates.get(PREDICTABILITY)
    return Evidence(
        point=Couplings(**point),
        low=Couplings(**low),
        high=Couplings(**high),
        is_measured=spread is not None and spread.verdict in {IDENTIFIABLE, ABSENT},
        is_positive=any(_is_identifiable(row) and low[field] > 0 for field, row in rows.items()),
        predictability=predictable.coefficient if predictable and predictable.verdict == IDENTIFIABLE else None,
        reason=NOTHING_KNOWN.reason if spread is None else spread.reason,
    )


def _is_identifiable(row: Estimate | None) -> bool:
    return row is not None and row.verdict == IDENTIFIABLE and row.coefficient is not None


def _end(row: Estimate | None, end: str) -> float:
    if row is None or row.coefficient is None or row.verdict not in {IDENTIFIABLE, ABSENT}:
        return 0.0
    if row.verdict == ABSENT:
        return max(row.high or 0.0, 0.0) if end == "high" else 0.0
    value = getattr(row, end)
    return float(row.coefficient if value is None else value)


def load_evidence(store: Store, run_id: int) -> Evidence:
    """What replay.calibration says of a run."""
    rows = store.query(_ROWS, [run_id]).to_dicts()
    return evidence({row["mechanism"]: Estimate(run_id, **row) for row in rows})


def load_hosts(store: Store, run_id: int, ranks: Sequence[int]) -> NDArray[np.int64] | None:
    """Number of each rank's host, in the order of `ranks`; None where a host is unknown."""
    hosts = store.query(_HOSTS, [run_id]).join(pl.DataFrame({"rank": ranks}), on="rank", how="semi")
    if hosts.height != len(ranks) or hosts["host"].null_count():
        return None
    by_rank = dict(hosts.select("rank", pl.col("host").rank("dense").cast(pl.Int64)).iter_rows())
    return np.array([by_rank[rank] for rank in ranks], dtype=np.int64)
