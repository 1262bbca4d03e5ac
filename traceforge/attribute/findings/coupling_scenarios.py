"""Couplings that findings are costed with. In: replay.calibration, a model. Out: the likely ones, and what is open.

A coupling that the run shows is taken at its value, and its 95 % interval goes into those of the costs. Where a run
does not show whether transfers grow with the spread of arrivals, but shows that collectives slow kernels down, waiting
is known to cost something: then the middle of what is plausible is taken, and the interval holds all of it. Where
nothing else is slowed either, or not known to be, transfers are taken not to grow; but what of it the run does not
exclude is in the intervals of the costs. An estimate from waits that hardly vary says little of what no wait at all
would save: it may then be nothing. Not handled: runs too short to be asked, whose intervals leave this out.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from traceforge.replay.coupling import NO_COUPLING, Couplings
from traceforge.replay.evidence import (
    ABSENT,
    IDENTIFIABLE,
    MECHANISMS,
    CalibrationRow,
    calibration_rows,
    stretches_waits,
)
from traceforge.replay.model import StepModel
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.thresholds.replay import LARGEST_COUPLING
from traceforge.units import format_share

# Host work that is slow while others wait is left out: a host that is slow and makes the others wait looks the same.
_OVERLAPS = ("waiting", "transferring")
_ASSUMPTION = (
    "This run does not show by how much transfers grow with the spread of arrivals; as kernels are slower beside "
    "collectives, its cost counts on {likely} of the mean wait, and its interval on {low} to {high}."
)


@dataclass(frozen=True, slots=True)
class CouplingScenarios:
    """Couplings of a run.

    Attributes:
        likely: what findings are costed with.
        ends: for each that has an interval, `likely` with that one at its lower end, and at its upper end.
        possible: couplings that are as likely as any between them and `likely`; costs may be what they are with each.
        assumption: what is taken for granted without being measured, a sentence; empty where nothing is.
        is_stretched: whether transfers that grow were measured, on waits that vary far less than they last.
        may_transfers_grow: whether it is not known if they do.
    """

    likely: Couplings = NO_COUPLING
    ends: tuple[tuple[Couplings, Couplings], ...] = ()
    possible: tuple[Couplings, ...] = ()
    assumption: str = ""
    is_stretched: bool = False
    may_transfers_grow: bool = False


NOTHING_KNOWN = CouplingScenarios()


@dataclass(frozen=True, slots=True)
class _Range:
    low: float = 0.0
    likely: float = 0.0
    high: float = 0.0


def load_coupling_scenarios(store: Store, run_id: int, model: StepModel) -> CouplingScenarios:
    """Couplings of a run, from what calibration measured."""
    return coupling_scenarios(calibration_rows(store, run_id), lambda: stretches_waits(model))


def coupling_scenarios(estimates: Mapping[str, CalibrationRow], is_far: Callable[[], bool] = bool) -> CouplingScenarios:
    """Couplings from estimates by mechanism.

    Args:
        is_far: whether no wait at all is far from what the run's waits vary within; asked only where it matters.
    """
    ranges = {field: _measured(estimates.get(MECHANISMS[field])) for field in ("spread", *_OVERLAPS)}
    assumption, is_stretched, spread = "", False, estimates.get(MECHANISMS["spread"])
    is_known = spread is not None and spread.verdict in (IDENTIFIABLE, ABSENT)
    growths: set[float] = set()
    if is_known:
        is_stretched = ranges["spread"].likely > 0 and is_far()
        growths = {0.0} if is_stretched else set()
    elif any(ranges[field].low > 0 for field in _OVERLAPS):
        own = _plausible(spread)
        ranges["spread"], growths = _Range(own.likely, own.likely, own.likely), {own.low, own.high}
        assumption = _ASSUMPTION.format(
            likely=format_share(own.likely), low=format_share(own.low), high=format_share(own.high)
        )
    elif spread is not None and spread.high is not None and spread.high > 0:
        most = min(spread.high, LARGEST_COUPLING)
        growths = {min(most, thresholds.PLAUSIBLE_GROWTH), most}
    likely = Couplings(**{field: own.likely for field, own in ranges.items()})
    possible = tuple(replace(likely, spread=growth) for growth in sorted(growths - {likely.spread}))
    return CouplingScenarios(likely, tuple(_ends(likely, ranges)), possible, assumption, is_stretched, not is_known)


def _ends(likely: Couplings, ranges: Mapping[str, _Range]) -> Iterator[tuple[Couplings, Couplings]]:
    for field, own in ranges.items():
        if own.high > own.low:
            yield replace(likely, **{field: own.low}), replace(likely, **{field: own.high})


def _measured(found: CalibrationRow | None) -> _Range:
    if found is None or found.verdict != IDENTIFIABLE or found.coefficient is None:
        return _Range()
    value = found.coefficient
    below, above = value - _or(found.low, value), _or(found.high, value) - value
    return _Range(
        value - min(below, thresholds.LOPSIDED * above), value, value + min(above, thresholds.LOPSIDED * below)
    )


def _plausible(found: CalibrationRow | None) -> _Range:
    """What is plausible and, where there is an interval, not ruled out by it; the middle of that is as good as any."""
    low, high = 0.0, thresholds.PLAUSIBLE_GROWTH
    if found is not None and found.low is not None and found.high is not None:
        low, high = min(max(low, found.low), high), max(min(high, found.high), low)
    return _Range(low, (low + high) / 2, high)


def _or(value: float | None, default: float) -> float:
    return default if value is None else value
