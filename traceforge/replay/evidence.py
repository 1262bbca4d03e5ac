"""What a run says of its couplings, ready for a replay. In: replay.calibration, align.rank. Out: couplings with bounds.

A coupling that was not measured is taken for absent and named as unknown; one that is measured to be absent still has
an upper end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.replay.coupling import NO_COUPLING, Couplings
from traceforge.replay.engine import record
from traceforge.replay.model import StepModel
from traceforge.store.database import Store
from traceforge.thresholds import replay as thresholds

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
class CalibrationRow:
    """What a run says of one coupling: a row of replay.calibration; see there for the fields."""

    run_id: int
    mechanism: str
    coefficient: float | None
    low: float | None
    high: float | None
    n: int
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Couplings of a run.

    Attributes:
        point: best values; 0 where a coupling is unknown or absent.
        low: lower ends of their 95 % intervals.
        high: upper ends.
        is_measured: whether it is known how transfers follow the spread of arrivals, if only that they do not.
        is_positive: whether a measured coupling, at its lower end, makes anything slower where ranks are early.
        predictability: how well lateness can be predicted from the past, 0..1; None where it was not measured.
        reason: why the spread's coupling is not known, or what was found.
        largest_spread: most that transfers may grow by, of the mean wait before them: the upper end of what the run
            says, or of what is taken for possible where it says nothing.
    """

    point: Couplings
    low: Couplings
    high: Couplings
    is_measured: bool
    is_positive: bool
    predictability: float | None
    reason: str
    largest_spread: float = thresholds.LARGEST_COUPLING

    @property
    def possible(self) -> Couplings:
        """Upper ends; where it is not known how transfers follow the spread of arrivals, by as much as is possible."""
        return self.high if self.is_measured else replace(self.high, spread=self.largest_spread)


NOTHING_KNOWN = Evidence(NO_COUPLING, NO_COUPLING, NO_COUPLING, False, False, None, "It was not measured.")


def evidence(rows: Mapping[str, CalibrationRow]) -> Evidence:
    """What rows by mechanism say together; lower and upper ends are taken all at once, which is cautious."""
    of_field = {field: rows.get(mechanism) for field, mechanism in MECHANISMS.items()}
    point, low, high = (
        Couplings(**{field: max(_end(row, end), _LEAST[field]) for field, row in of_field.items()})
        for end in ("coefficient", "low", "high")
    )
    spread, predictable = of_field["spread"], rows.get(PREDICTABILITY)
    return Evidence(
        point=point,
        low=low,
        high=high,
        is_measured=spread is not None and spread.verdict in {IDENTIFIABLE, ABSENT},
        # A coupling that is absent has a lower end of 0.
        is_positive=any(getattr(low, field) > 0 for field in of_field),
        predictability=predictable.coefficient if predictable and predictable.verdict == IDENTIFIABLE else None,
        reason=NOTHING_KNOWN.reason if spread is None else spread.reason,
        largest_spread=_largest(spread),
    )


def _end(row: CalibrationRow | None, end: str) -> float:
    if row is None or row.coefficient is None or row.verdict not in {IDENTIFIABLE, ABSENT}:
        return 0.0
    if row.verdict == ABSENT:
        return max(row.high or 0.0, 0.0) if end == "high" else 0.0
    value = getattr(row, end)
    return float(row.coefficient if value is None else value)


def _largest(spread: CalibrationRow | None) -> float:
    """Upper end of the spread's coupling, if it was bounded at all."""
    if spread is None or spread.high is None:
        return thresholds.LARGEST_COUPLING
    return min(max(spread.high, 0.0), thresholds.LARGEST_COUPLING)


def stretches_waits(model: StepModel) -> bool:
    """Whether no wait at all is so far from the run's waits, beside what these vary by, that nothing tells of it.

    How much transfers grow is measured on waits that differ between iterations.
    """
    waits = record(model).spread_ns
    usual, spread = (float(np.sqrt((own**2).sum())) for own in (waits.mean(axis=0), waits.std(axis=0)))
    return usual > thresholds.LONGEST_STRETCH * max(spread, 1.0)


def calibration_rows(store: Store, run_id: int) -> dict[str, CalibrationRow]:
    """What replay.calibration says of a run, by mechanism."""
    found = (CalibrationRow(run_id, **row) for row in store.records(_ROWS, [run_id]))
    return {row.mechanism: row for row in found}


def load_evidence(store: Store, run_id: int) -> Evidence:
    """What a run says of its couplings."""
    return evidence(calibration_rows(store, run_id))


def load_hosts(store: Store, run_id: int, ranks: Sequence[int]) -> NDArray[np.int64] | None:
    """Number of each rank's host, in the order of `ranks`; None where a host is unknown."""
    hosts = store.query(_HOSTS, [run_id]).join(pl.DataFrame({"rank": ranks}), on="rank", how="semi")
    if hosts.height != len(ranks) or hosts["host"].null_count():
        return None
    by_rank = dict(hosts.select("rank", pl.col("host").rank("dense").cast(pl.Int64)).iter_rows())
    return np.array([by_rank[rank] for rank in ranks], dtype=np.int64)
