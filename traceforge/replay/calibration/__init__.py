"""Which couplings this run shows, and how strong. Reads timeline.*, graph.*, align.*; fills replay.calibration.

Experimental: few recorded jobs with known couplings exist to check the intervals against. The idea: each mechanism
that could make pacing pay is measured from variation within the run (one module each), or refused with the reason. A
coupling is there (`identifiable`) where its 99 % interval leaves 0 out; it is `absent` where it may be 0 and neither
end of its interval could cost 1 % of the time; all else is `not_identifiable`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from traceforge.replay.calibration.collectives import measure_spread
from traceforge.replay.calibration.contention_of_run import measure_host_waiting, measure_overlap
from traceforge.replay.calibration.measurement import Measurement
from traceforge.replay.calibration.predictability import measure_predictability
from traceforge.store.database import Store
from traceforge.thresholds import replay as thresholds
from traceforge.units import format_share

_COLUMNS = ("coefficient", "low", "high", "n", "f_statistic", "gain_bound", "scope")


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One way in which waiting could slow something, in words for the reason.

    Attributes:
        name: as in replay.calibration.
        found: what it means where it is there; `{value}` is the coefficient with its interval.
        negative: what a coefficient below 0 means.
    """

    name: str
    found: str
    negative: str


SPREAD = Mechanism(
    "arrival_spread",
    "Transfers grow by {value} of the mean wait of their collective",
    "transfers get shorter the more arrivals spread, so that pacing would make them longer",
)
WAITING = Mechanism(
    "waiting_overlap",
    "Kernels take longer by {value} of their time while a collective waits on the same device",
    "kernels are faster while a collective waits, so that pacing would make them slower",
)
TRANSFERRING = Mechanism(
    "transfer_overlap",
    "Kernels take longer by {value} of their time while a collective transfers on the same device",
    "kernels are faster while a collective transfers",
)
HOST = Mechanism(
    "co_located_waiting",
    "Host work takes longer by {value} of its time for each rank of the same host that waits",
    "host work is faster while ranks of the same host wait, so that pacing would make it slower",
)
PREDICTABLE = Mechanism(
    "predictability",
    "Waits of a rank follow those of the iteration before with a correlation of {value}",
    "who waited in one iteration waits less in the next, so that pacing by past waits delays the wrong ranks",
)


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, mechanism)."""
    found = [
        {"run_id": run_id} | judged(mechanism, measurement)
        for run_id in store.run_ids()
        for mechanism, measurement in _measured(store, run_id)
    ]
    return pl.DataFrame(found, infer_schema_length=None)


def _measured(store: Store, run_id: int) -> Iterator[tuple[Mechanism, Measurement]]:
    yield SPREAD, measure_spread(store, run_id)
    yield from zip((WAITING, TRANSFERRING), measure_overlap(store, run_id), strict=True)
    yield HOST, measure_host_waiting(store, run_id)
    yield PREDICTABLE, measure_predictability(store, run_id)


def judged(mechanism: Mechanism, found: Measurement) -> dict[str, object]:
    """The columns of replay.calibration that a measurement gives, without run_id."""
    verdict, reason = verdict_of(mechanism, found)
    columns = {name: getattr(found, name) for name in _COLUMNS}
    return columns | {"mechanism": mechanism.name, "verdict": verdict, "reason": reason}


def verdict_of(mechanism: Mechanism, found: Measurement) -> tuple[str, str]:
    """Verdict and reason of one mechanism."""
    if found.refusal or found.coefficient is None or found.surely_low is None or found.surely_high is None:
        return "not_identifiable", found.refusal
    interval = f"{found.coefficient:.3g} (95 % interval {found.low:.3g} to {found.high:.3g})"
    stake = found.gain_bound
    is_there = found.surely_low > 0 or found.surely_high < 0
    if stake is not None and stake < (thresholds.NEGLIGIBLE_SHARE if is_there else thresholds.NOTICEABLE_SHARE):
        at_most = format_share(stake)
        return "absent", f"{interval}: whatever it is within the interval, at most {at_most} of the time is at stake."
    if found.surely_low > 0:
        return "identifiable", f"{mechanism.found.format(value=interval)}.{found.caveat}"
    if found.surely_high < 0:
        return "identifiable", f"Below zero, {interval}: {mechanism.negative}.{found.caveat}"
    return "not_identifiable", f"{interval}: neither no effect nor one that matters can be ruled out."
