"""Hierarchical transfers: all-reduces over several hosts reduce within hosts first, then between them, rail by rail.

A flat ring over N ranks moves 2 (N - 1) / N of the payload past each rank at the speed it was measured at. With g ranks
on each of h hosts, the hierarchy moves 2 (g - 1) / g of it within hosts, `within_speed` times as fast, and
2 (h - 1) / (h g) between hosts, where every rank has a path of the flat ring's speed. `within_speed` 0 takes the ratio
of measured bus bandwidths within and between hosts; without both there is no answer.
"""

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from traceforge.replay.all_reduce import in_two_levels
from traceforge.replay.edit import Edit, EditedJob, InsufficientData
from traceforge.replay.pricing import Speed, check_prices, measured_speed, members_of, other_settings, rings
from traceforge.replay.settings import Settings


def _apply(job: EditedJob, settings: Settings) -> EditedJob:
    check_prices(settings)
    chosen = _chosen(job)
    speed = _speed(job, settings, chosen).value
    hosts = np.maximum(job.places.hosts, 1).astype(np.float64)
    priced = in_two_levels(rings(job, settings), members_of(job.places), hosts, speed).total
    return job.with_model(transfer_ns=np.where(chosen, np.rint(priced).astype(np.int64), job.model.transfer_ns))


def _chosen(job: EditedJob) -> NDArray[np.bool_]:
    places = job.places
    chosen = places.is_op("all_reduce") & (places.hosts > 1) & (places.members > places.hosts)
    if not chosen.any():
        raise InsufficientData("No all-reduce spans several ranks on each of several hosts.")
    return chosen


def _speed(job: EditedJob, settings: Settings, chosen: NDArray[np.bool_]) -> Speed:
    given = float(settings["within_speed"])
    found = Speed(given, given, given) if given else measured_speed(job, chosen)
    if found is None:
        raise InsufficientData("No all-reduce within a host was recorded to take its speed from; give within_speed.")
    return found


def _others(job: EditedJob, settings: Settings) -> Sequence[Settings]:
    return other_settings(settings, _speed(job, settings, _chosen(job)))


def _usual(_job: EditedJob) -> Sequence[Settings]:
    return [{"within_speed": 0.0, "step_us": -1.0}]


EDIT = Edit(
    "hierarchical",
    "All-reduces over several hosts reduce within hosts first, then between them; within_speed 0 means as measured.",
    MappingProxyType({"within_speed": 0.0, "step_us": -1.0}),
    _apply,
    _usual,
    changes_transfers=True,
    others=_others,
)
