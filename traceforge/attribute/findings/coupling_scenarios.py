"""Couplings that findings are costed with. In: replay.calibration. Out: the likely ones, their ends, what is assumed.

A coupling that the run shows is taken at its value, and its 95 % interval goes into those of the costs. Where a run
does not show whether transfers grow with the spread of arrivals, but shows that collectives slow kernels down, waiting
is known to cost something: then the middle of what is plausible is taken, and the interval spans all of it. Where
nothing else is slowed either, or not known to be, transfers are taken not to grow; but what of it the run's own
estimate does not exclude is in the intervals of the costs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from traceforge.replay.coupling import NO_COUPLING, Couplings
from traceforge.replay.evidence import ABSENT, IDENTIFIABLE, MECHANISMS, CalibrationRow, calibration_rows
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
        assumption: what is taken for granted without being measured, a sentence; empty where nothing is.
        open_growth: as much of the mean wait may transfers grow by beyond that, as the run cannot exclude it.
    """

    likely: Couplings = NO_COUPLING
    ends: tuple[tuple[Couplings, Couplings], ...] = ()
    assumption: str = ""
    open_growth: float = 0.0

    @property
    def grown(self) -> tuple[Couplings, ...]:
        """The likely couplings with transfers that grow by what is plausible, and by all that cannot be excluded.

        What a delay costs need not rise with the coupling: transfers are at least nothing long.
        """
        growths = sorted({min(self.open_growth, thresholds.PLAUSIBLE_GROWTH), self.open_growth} - {0.0})
        return tuple(replace(self.likely, spread=self.likely.spread + growth) for growth in growths)


@dataclass(frozen=True, slots=True)
class _Range:
    low: float = 0.0
    likely: float = 0.0
    high: float = 0.0


def load_coupling_scenarios(store: Store, run_id: int) -> CouplingScenarios:
    """Couplings of a run, from what calibration measured."""
    return coupling_scenarios(calibration_rows(store, run_id))


def coupling_scenarios(estimates: Mapping[str, CalibrationRow]) -> CouplingScenarios:
    """Couplings from estimates by mechanism."""
    ranges = {field: _measured(estimates.get(MECHANISMS[field])) for field in ("spread", *_OVERLAPS)}
    assumption, open_growth, spread = "", 0.0, estimates.get(MECHANISMS["spread"])
    is_known = spread is not None and spread.verdict in (IDENTIFIABLE, ABSENT)
    if not is_known and any(ranges[field].low > 0 for field in _OVERLAPS):
        ranges["spread"] = own = _plausible(spread)
        assumption = _ASSUMPTION.format(
            likely=format_share(own.likely), low=format_share(own.low), high=format_share(own.high)
        )
    elif not is_known and spread is not None and spread.high is not None:
        open_growth = min(max(spread.high, 0.0), LARGEST_COUPLING)
    likely = Couplings(**{field: own.likely for field, own in ranges.items()})
    return CouplingScenarios(likely, tuple(_ends(likely, ranges)), assumption, open_growth)


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
