"""Transfers priced in another form. In: a run's collectives and settings of an edit. Out: arrays over its places.

Edits that change through whom bytes go share this: what of a transfer is latency, and how much faster links within a
host are. `step_us` -1 stands for what a ring's step usually takes between hosts, `within_speed` 0 for the ratio that
the run shows; what either may be as well is tried for the interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.errors import UsageError
from traceforge.replay.all_reduce import NVLINK_BYTES_PER_S, NVLINK_STEP_SHARE, Transfer, bytes_factor, taken_apart
from traceforge.replay.edit import EditedJob
from traceforge.replay.places import Places
from traceforge.replay.settings import Settings
from traceforge.thresholds import replay as thresholds

Amounts = NDArray[np.float64]

_QUANTILES = (thresholds.LEAST_SPEED_QUANTILE, 0.5, 1 - thresholds.LEAST_SPEED_QUANTILE)
_NS_A_S = 1e9


@dataclass(frozen=True, slots=True)
class Speed:
    """How much faster links within a host are than those between hosts, and what that may be as well."""

    value: float
    low: float
    high: float


def step_is_given(settings: Settings) -> bool:
    """Whether a user says what a step takes."""
    return float(settings["step_us"]) >= 0


def rings(job: EditedJob, settings: Settings) -> Transfer:
    """Every transfer of the job, taken for a ring's, ns, shape (I, P, R)."""
    places = job.places
    step_ns = 1000 * float(settings["step_us"]) if step_is_given(settings) else thresholds.STEP_LATENCY_NS
    share = np.where(places.hosts > 1, 1.0, NVLINK_STEP_SHARE)
    apart = taken_apart(job.model.transfer_ns / share, members_of(places), step_ns)
    return Transfer(apart.latency * share, apart.carried * share)


def members_of(places: Places) -> Amounts:
    """Ranks of the collective at each place, 1 where there is none."""
    return np.maximum(places.members, 1).astype(np.float64)


def measured_speed(job: EditedJob, between: NDArray[np.bool_]) -> Speed | None:
    """Bus bandwidth of all-reduces within hosts over that between them: of medians, and of opposite quartiles.

    Args:
        between: the all-reduces between hosts that are meant, shape (I, P, R).

    Returns:
        None where the run shows none within a host, or no sizes.
    """
    places, transfer = job.places, job.model.transfer_ns
    moved = places.size_bytes * bytes_factor(members_of(places))
    is_known = (places.size_bytes > 0) & (transfer > 0)
    within = places.is_op("all_reduce") & (places.hosts == 1) & (places.members > 1) & is_known
    if not within.any() or not (between & is_known).any():
        return None
    inner, outer = (
        np.quantile(moved[chosen] / transfer[chosen], _QUANTILES) for chosen in (within, between & is_known)
    )
    value, low, high = (
        max(float(ratio), 1.0) for ratio in (inner[1] / outer[1], inner[0] / outer[2], inner[2] / outer[0])
    )
    return Speed(value, low, high)


def assumed_speed(job: EditedJob, between: NDArray[np.bool_]) -> Speed:
    """The same where the run does not show it: NVLink over what was measured between hosts, or anything down to 1."""
    places, transfer = job.places, job.model.transfer_ns
    is_known = between & (places.size_bytes > 0) & (transfer > 0)
    most = thresholds.MOST_WITHIN_SPEED
    if not is_known.any():
        return Speed(most**0.5, 1.0, most)
    moved = (places.size_bytes * bytes_factor(members_of(places)))[is_known]
    speed = NVLINK_BYTES_PER_S / _NS_A_S / float(np.median(moved / transfer[is_known]))
    return Speed(min(max(speed, 1.0), most), 1.0, most)


def other_settings(settings: Settings, speed: Speed | None) -> Sequence[Settings]:
    """What the settings may be as well: the ends of a step's latency, and of the speed within hosts.

    Args:
        speed: None where a user says it, or it plays no part.
    """
    usual = (thresholds.LEAST_STEP_LATENCY_NS, thresholds.MOST_STEP_LATENCY_NS)
    steps_us = [float(settings["step_us"])] if step_is_given(settings) else [ns / 1000 for ns in usual]
    if speed is None:
        return [{**settings, "step_us": step} for step in steps_us]
    speeds = (speed.low, speed.high)
    return [{**settings, "step_us": step, "within_speed": one} for step in steps_us for one in speeds]


def check_prices(settings: Settings) -> None:
    """Refuse a speed that is none.

    Raises:
        UsageError: it is negative.
    """
    if float(settings["within_speed"]) < 0:
        raise UsageError(
            f"`within_speed={settings['within_speed']}` must not be negative", hint="0 takes it from the run"
        )
