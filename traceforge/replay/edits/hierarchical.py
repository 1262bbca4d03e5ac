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

from traceforge.replay.edit import Edit, EditedJob, InsufficientData
from traceforge.replay.settings import Settings


def _apply(job: EditedJob, settings: Settings) -> EditedJob:
    places = job.places
    chosen = places.is_op("all_reduce") & (places.hosts > 1) & (places.members > places.hosts)
    if not chosen.any():
        raise InsufficientData("No all-reduce spans several ranks on each of several hosts.")
    speed = float(settings["within_speed"]) or _measured_speed(job, chosen)
    members, hosts = places.members[chosen].astype(float), places.hosts[chosen].astype(float)
    each = members / hosts
    flat = 2 * (members - 1) / members
    within, between = 2 * (each - 1) / each / speed, 2 * (hosts - 1) / (hosts * each)
    transfer = job.model.transfer_ns.copy()
    transfer[chosen] = np.rint(transfer[chosen] * np.minimum(1.0, (within + between) / flat))
    return job.with_model(transfer_ns=transfer)


def _measured_speed(job: EditedJob, between: NDArray[np.bool_]) -> float:
    """Bus bandwidth of all-reduces within hosts over that between them, both medians."""
    places, transfer = job.places, job.model.transfer_ns
    bytes_moved = places.size_bytes * 2 * (places.members - 1) / np.maximum(places.members, 1)
    is_known = (places.size_bytes > 0) & (transfer > 0)
    within = places.is_op("all_reduce") & (places.hosts == 1) & (places.members > 1) & is_known
    if not within.any() or not (between & is_known).any():
        raise InsufficientData("No all-reduce within a host was recorded to take its speed from; give within_speed.")
    speeds = [np.median(bytes_moved[chosen] / transfer[chosen]) for chosen in (within, between & is_known)]
    return float(max(speeds[0] / speeds[1], 1.0))


def _usual(_job: EditedJob) -> Sequence[Settings]:
    return [{"within_speed": 0.0}]


EDIT = Edit(
    "hierarchical",
    "All-reduces over several hosts reduce within hosts first, then between them; within_speed 0 means as measured.",
    MappingProxyType({"within_speed": 0.0}),
    _apply,
    _usual,
    changes_transfers=True,
)
