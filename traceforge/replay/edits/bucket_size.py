"""Bucket size: gradients are exchanged in buckets of another size.

Transfers of all-reduces are taken for alpha + beta x bytes, fitted to this run by communicator. Larger buckets join
neighbours that follow one another without a wait between them: the joined one starts with its last part and takes
alpha + beta x all bytes. Smaller buckets only cost an alpha for each further one; that they could start earlier is
not modelled, as no trace shows when their gradients would have been ready.
"""

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from traceforge.errors import UsageError
from traceforge.replay.edit import Edit, EditedJob, InsufficientData
from traceforge.replay.settings import Settings
from traceforge.thresholds import replay as thresholds

_FEWEST_SIZES = 2


def _apply(job: EditedJob, settings: Settings) -> EditedJob:
    limit = float(settings["megabytes"]) * 1e6
    if limit <= 0:
        raise UsageError(f"`megabytes={settings['megabytes']}` must be above 0")
    buckets = job.places.is_op("all_reduce") & (job.places.size_bytes > 0)
    transfer, gone = job.model.transfer_ns.copy(), np.zeros(buckets.shape, dtype=bool)
    awaited = job.model.awaited.copy()
    is_fitted = False
    for communicator in np.unique(job.places.communicator[buckets]).tolist():
        own = buckets & (job.places.communicator == communicator)
        line = _alpha_beta(job.places.size_bytes[own], transfer[own])
        if line is None:
            continue
        is_fitted = True
        for i in range(len(transfer)):
            _rebucket(job, i, own[i], limit, line, transfer[i], gone[i], awaited[i])
    if not is_fitted:
        raise InsufficientData("All-reduces of two sizes or more are needed to separate latency from bandwidth.")
    return job.with_model(transfer_ns=transfer, awaited=awaited).without(gone)


def _alpha_beta(size_bytes: NDArray[np.int64], transfer_ns: NDArray[np.int64]) -> tuple[float, float] | None:
    """Latency, ns, and time a byte, ns: a line through the first quartiles of each size; None where there is none."""
    sizes = np.unique(size_bytes)
    if len(sizes) < _FEWEST_SIZES:
        return None
    clean = np.array([np.quantile(transfer_ns[size_bytes == size], thresholds.TRANSFER_QUANTILE) for size in sizes])
    beta, alpha = np.polyfit(sizes.astype(float), clean, 1)
    return (max(float(alpha), 0.0), float(beta)) if beta > 0 else None


def _rebucket(
    job: EditedJob,
    i: int,
    own: NDArray[np.bool_],
    limit: float,
    line: tuple[float, float],
    transfer: NDArray[np.int64],
    gone: NDArray[np.bool_],
    awaited: NDArray[np.int64],
) -> None:
    """Join or split the buckets of iteration `i`; arrays of shape (P, R) are changed in place."""
    alpha, _ = line
    for joined in _runs(job, i, own, limit):
        members = own[joined[-1]]
        sizes = job.places.size_bytes[i, joined][:, members].max(axis=1)
        saved = alpha * (len(joined) - max(1, -(-int(sizes.sum()) // int(limit))))
        total = transfer[joined][:, members].sum(axis=0) - saved
        transfer[joined[-1], members] = np.maximum(np.rint(total), 0)
        for place in joined[:-1]:
            gone[place, members] = True
            awaited[:, members] = np.where(awaited[:, members] == place, joined[-1], awaited[:, members])


def _runs(job: EditedJob, i: int, own: NDArray[np.bool_], limit: float) -> list[list[int]]:
    """Buckets of iteration `i` that fall into one: up to `limit` bytes, and none awaited before the last is there."""
    runs: list[list[int]] = []
    total = 0
    for place in np.flatnonzero(own.any(axis=1)).tolist():
        size = int(job.places.size_bytes[i, place][own[place]].max())
        previous = runs[-1] if runs else []
        same = bool(previous) and bool((own[previous[-1]] == own[place]).all())
        since = job.model.awaited[i, previous[0] : place][:, own[place]] if previous else np.zeros((0, 0))
        is_awaited = bool(np.isin(since, previous).any()) if previous else True
        if same and not is_awaited and total + size <= limit:
            previous.append(place)
            total += size
        else:
            runs.append([place])
            total = size
    return runs


def _usual(_job: EditedJob) -> Sequence[Settings]:
    return [{"megabytes": 100.0}]


EDIT = Edit(
    "bucket_size",
    "All-reduces of gradients are joined into buckets of up to `megabytes`, or split; alpha-beta from this run.",
    MappingProxyType({"megabytes": 25.0}),
    _apply,
    _usual,
    changes_transfers=True,
)
