"""Drop a host: its ranks take no part, and every iteration has fewer samples.

The others keep their work. Collectives that had members there go through fewer ranks: a ring takes fewer steps and
carries a smaller share of the buffer; one that is left on one host becomes faster by `within_speed` (0: as measured,
else as NVLink). A job whose ranks hold parts of a model (tensor or pipeline parallel) over several hosts could not run
without them. So this answers whether a slow host costs the job more than it brings.
"""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from traceforge.errors import UsageError
from traceforge.replay.all_reduce import Transfer, of_fewer
from traceforge.replay.edit import Edit, EditedJob, InsufficientData
from traceforge.replay.pricing import (
    Speed,
    assumed_speed,
    check_prices,
    measured_speed,
    members_of,
    other_settings,
    rings,
)
from traceforge.replay.settings import Settings


def _apply(job: EditedJob, settings: Settings) -> EditedJob:
    check_prices(settings)
    gone = _gone(job, settings)
    if gone.all():
        raise InsufficientData("No rank would be left.")
    left = _left(job, gone)
    is_smaller, becomes_local = _struck(job, left)
    members = members_of(job.places)
    priced = of_fewer(rings(job, settings), members, np.where(is_smaller, left, members).astype(np.float64))
    if becomes_local.any():
        speed = _speed(job, settings, becomes_local).value
        local = Transfer(priced.latency / speed, priced.carried / speed)
        priced = Transfer(*(np.where(becomes_local, *pair) for pair in zip(_parts(local), _parts(priced), strict=True)))
    transfer = np.where(is_smaller, np.rint(priced.total).astype(np.int64), job.model.transfer_ns)
    places = replace(
        job.places,
        members=np.where(is_smaller, left, job.places.members),
        hosts=np.where(is_smaller, np.maximum(job.places.hosts - 1, 1), job.places.hosts),
    )
    fewer = replace(job, places=places).with_model(transfer_ns=transfer).of_ranks(~gone)
    return replace(fewer, samples_share=job.samples_share * float((~gone).mean()))


def _parts(transfer: Transfer) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return transfer.latency, transfer.carried


def _gone(job: EditedJob, settings: Settings) -> NDArray[np.bool_]:
    """Which ranks are those of the host, shape (R,)."""
    names = sorted(set(job.places.host_of))
    if len(names) < 2:
        raise InsufficientData("The ranks' hosts are not known, or there is only one.")
    name = str(settings["host"])
    if name not in names:
        raise UsageError(f"there is no host `{name}`", hint=f"hosts are: {', '.join(names)}")
    return np.array([host == name for host in job.places.host_of])


def _left(job: EditedJob, gone: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Members of the communicator at each place that stay, shape (I, P, R); 1 where there is none."""
    communicator, left = job.places.communicator, job.places.members.copy()
    for one in np.unique(communicator[communicator >= 0]).tolist():
        own = communicator == one
        left[own] -= int((own.any(axis=(0, 1)) & gone).sum())
    return np.maximum(left, 1)


def _struck(job: EditedJob, left: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Where collectives lose members, and where those that stay are on one host and were on several."""
    is_smaller = left < job.places.members
    return is_smaller, is_smaller & (job.places.hosts == 2) & (left > 1)


def _speed(job: EditedJob, settings: Settings, becomes_local: NDArray[np.bool_]) -> Speed:
    given = float(settings["within_speed"])
    if given:
        return Speed(given, given, given)
    return measured_speed(job, becomes_local) or assumed_speed(job, becomes_local)


def _others(job: EditedJob, settings: Settings) -> Sequence[Settings]:
    _, becomes_local = _struck(job, _left(job, _gone(job, settings)))
    return other_settings(settings, _speed(job, settings, becomes_local) if becomes_local.any() else None)


def _usual(job: EditedJob) -> Sequence[Settings]:
    """The host whose ranks arrive last most often."""
    if len(set(job.places.host_of)) < 2:
        return []
    real = (job.model.group >= 0).any(axis=2)
    latest = job.recorded.arrival_ns.argmax(axis=2)[real]
    hosts, counts = np.unique(np.array(job.places.host_of)[latest], return_counts=True)
    return [{"host": str(hosts[counts.argmax()]), "within_speed": 0.0, "step_us": -1.0}]


EDIT = Edit(
    "drop_host",
    "The ranks of one host take no part, and bring no samples; the others keep their work, and collectives go through"
    " fewer ranks.",
    MappingProxyType({"host": "", "within_speed": 0.0, "step_us": -1.0}),
    _apply,
    _usual,
    others=_others,
)
