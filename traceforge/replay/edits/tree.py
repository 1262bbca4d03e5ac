"""Trees in the place of rings: all-reduces over several hosts take fewer steps and carry a little more.

Recorded all-reduces are taken for rings. NCCL's trees join hosts, and go through the ranks of each in a row: 2 log2 h
steps between h hosts and 2 (g - 1) short ones between the g ranks of a host, for 2 (N - 1); the bytes pass each link
twice, for 2 (N - 1) / N. Within a host nothing changes.
"""

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from traceforge.replay.all_reduce import as_tree
from traceforge.replay.edit import Edit, EditedJob, InsufficientData
from traceforge.replay.pricing import members_of, other_settings, rings
from traceforge.replay.settings import Settings


def _apply(job: EditedJob, settings: Settings) -> EditedJob:
    chosen = job.places.is_op("all_reduce") & (job.places.hosts > 1)
    if not chosen.any():
        raise InsufficientData("No all-reduce is known to span several hosts.")
    hosts = np.maximum(job.places.hosts, 1).astype(np.float64)
    priced = as_tree(rings(job, settings), members_of(job.places), hosts).total
    return job.with_model(transfer_ns=np.where(chosen, np.rint(priced).astype(np.int64), job.model.transfer_ns))


def _others(_job: EditedJob, settings: Settings) -> Sequence[Settings]:
    return other_settings(settings, None)


def _usual(job: EditedJob) -> Sequence[Settings]:
    return [{"step_us": -1.0}] if (job.places.hosts > 2).any() else []


EDIT = Edit(
    "tree",
    "All-reduces over several hosts go through trees and no longer through rings, for which they are taken.",
    MappingProxyType({"step_us": -1.0}),
    _apply,
    _usual,
    changes_transfers=True,
    others=_others,
)
