"""What one more rank adds. In: an ensemble. Out: marginal efficiency, knees, the peak, and where its time goes.

The marginal efficiency at N is the throughput that one more rank adds, over the throughput per rank at the smallest
measured scale. Where it falls below 70 % and 50 % are the knees; where it is 0 is the peak. Each model in the band
has its own; their range is the uncertainty.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.forecast.ensemble import Ensemble, Member
from traceforge.forecast.goodput import Assumptions, reliability
from traceforge.thresholds import forecast as thresholds

Array = NDArray[np.float64]
Throughput = Callable[[Array], Array]

LIMITS = {"knee_70": thresholds.KNEE_70, "knee_50": thresholds.KNEE_50, "peak": 0.0}
"""Marginal efficiency below which each limit lies."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Where one more rank stops paying.

    Attributes:
        name: a key of `LIMITS`.
        ranks: by the weighted curve, the smallest measured scale where it lies there or below; None where it lies
            beyond the range that a value is given for.
        low, high: smallest and largest over members; `high` is None where a member has it beyond that range.
    """

    name: str
    ranks: int | None
    low: int | None
    high: int | None


def throughput_of(member: Member) -> Throughput:
    """Throughput by ranks of one model."""
    return lambda ranks: ranks / member.fit.step_s(ranks)[0]


def marginal_efficiency(ensemble: Ensemble, ranks: Array, member: Member | None = None) -> Array:
    """Throughput that one more rank adds, over the throughput per rank at the smallest scale; shape of `ranks`.

    Args:
        member: by this model alone; by all of them where None.
    """
    throughput = ensemble.value if member is None else throughput_of(member)
    return (throughput(ranks + 1) - throughput(ranks)) / ensemble.base_per_rank


def limits_of(ensemble: Ensemble, member: Member | None = None) -> dict[str, int | None]:
    """The knees and the peak inside and beyond the data, by one model or by all; None beyond the range of a value.

    What lies below the smallest measured scale was not measured: a limit there is reported as that scale.
    """
    grid = np.arange(float(ensemble.smallest.ranks), ensemble.furthest + 1)
    marginal = marginal_efficiency(ensemble, grid, member)
    below = {name: np.flatnonzero(marginal < threshold) for name, threshold in LIMITS.items()}
    return {name: int(grid[places[0]]) if places.size else None for name, places in below.items()}


def limits(ensemble: Ensemble) -> list[Limit]:
    """The knees and the peak, with their range over the models in the band."""
    own = [limits_of(ensemble, member) for member in ensemble.used]
    result = []
    for name, ranks in limits_of(ensemble).items():
        known = [found[name] for found in own if found[name] is not None]
        high = max(known) if len(known) == len(own) else None  # type: ignore[type-var]  # None is left out
        result.append(Limit(name, ranks, min(known, default=None), high))  # type: ignore[type-var]
    return result


def one_more_rank(ensemble: Ensemble, ranks: int) -> str:
    """Whether one more rank at this scale `helps`, `harms`, or `cannot_be_told` because members of the band differ."""
    at = np.array([float(ranks)])
    gains = [float(marginal_efficiency(ensemble, at, member)[0]) for member in ensemble.used]
    if min(gains) > 0:
        return "helps"
    return "harms" if max(gains) <= 0 else "cannot_be_told"


def marginal_parts(ensemble: Ensemble, ranks: int, assumed: Assumptions | None = None) -> dict[str, float]:
    """Where one more rank's time goes at this scale: shares by part that add up to 1.

    Args:
        assumed: adds failures as a part of their own; left out where None.

    With T(N) the time per rank, T0 that at the smallest scale and throughput N / T, one more rank adds the share
    T0 / T - N T0 T' / T^2 of what it would add without any loss. The rest is lost to the growth of the parts of T:
    part j takes (Tj - Tj0) / T + (T0 / T) (N Tj' / T), and that adds up exactly. Parts are those of the structural
    model where it is in the band, else of the member with the most weight.
    """
    member = next((one for one in ensemble.used if one.model.name == "structural"), None)
    member = member or max(ensemble.used, key=lambda one: one.weight)
    base, here = np.array([float(ensemble.smallest.ranks)]), np.array([float(ranks)])
    near = np.array([ranks * (1 - 1e-4), ranks * (1 + 1e-4)])
    whole, whole_base = float(member.fit.step_s(here)[0, 0]), float(member.fit.step_s(base)[0, 0])
    at_base, at_here, around = (member.fit.parts(at) for at in (base, here, near))
    lost = {}
    for name in at_here:
        slope = float(np.diff(around[name])[0] / np.diff(near)[0])
        grown = float(at_here[name][0] - at_base[name][0])
        lost[name] = (grown + whole_base / whole * ranks * slope) / whole
    parts = {"useful": 1 - sum(lost.values()), **lost}
    return parts if assumed is None else _with_failures(parts, ranks, whole_base / whole, assumed)


def _with_failures(parts: dict[str, float], ranks: int, efficiency: float, assumed: Assumptions) -> dict[str, float]:
    """The same with the time that failures take, which is a larger share in a larger job.

    With the share s of work, the added rank brings s of its parts, and what all other ranks lose by its failures is
    their efficiency times N ds/dN.
    """
    share = reliability(ranks, assumed).share
    around = [reliability(ranks * (1 + off), assumed).share for off in (-1e-4, 1e-4)]
    lost_by_all = -efficiency * (around[1] - around[0]) / 2e-4
    kept = {name: share * part for name, part in parts.items()}
    return {**kept, "useful": kept["useful"] - lost_by_all, "failures": 1 - share + lost_by_all}
