"""Even experts: every rank of an expert-parallel group gets as many tokens as the mean one.

What a rank computes between the all-to-all that takes tokens to experts and the one that brings them back goes by its
tokens, and so do both transfers (see `routing`). How long a router that evens out takes, and what that does to
convergence, is not modelled. A rank that got no tokens keeps its work.
"""

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from traceforge.replay.edit import Edit, EditedJob, InsufficientData
from traceforge.replay.model import Times
from traceforge.replay.routing import Amounts, Chosen, Routing, find_routing
from traceforge.replay.settings import Settings


def _apply(job: EditedJob, _settings: Settings) -> EditedJob:
    model, routing = job.model, _routing(job)
    computes = np.array([phase == "compute" for phase, _ in model.kinds])
    before_arrival, before_wait = model.before_arrival_ns.copy(), model.before_wait_ns.copy()
    factor = np.ones(model.group.shape[::2])
    for place in range(model.group.shape[1]):
        before_arrival[:, place] = _scaled(before_arrival[:, place], factor, computes)
        known = routing.known[:, place]
        before_wait[:, place] = _scaled(before_wait[:, place], np.where(known, 1.0, factor), computes)
        factor = np.where(known, routing.work[:, place], factor)
    return job.with_model(before_arrival_ns=before_arrival, before_wait_ns=before_wait, transfer_ns=routing.transfer_ns)


def _scaled(work_ns: Times, factor: Amounts, kinds: Chosen) -> Times:
    """Work (I, R, K) of some kinds times a factor (I, R)."""
    scaled: Times = np.where(kinds, np.rint(work_ns * factor[..., None]).astype(np.int64), work_ns)
    return scaled


def _routing(job: EditedJob) -> Routing:
    found = find_routing(job.places, job.model.group, job.model.transfer_ns)
    if found is None:
        raise InsufficientData("No all-to-all states how much each rank sends and receives.")
    if not found.is_uneven:
        raise InsufficientData("No all-to-all takes more to some ranks than to others, and brings it back.")
    return found


def _usual(job: EditedJob) -> Sequence[Settings]:
    found = find_routing(job.places, job.model.group, job.model.transfer_ns)
    return [{}] if found is not None and found.is_uneven else []


EDIT = Edit(
    "even_experts",
    "Every rank of an expert-parallel group gets as many tokens as the mean one: its experts' work and the transfers of"
    " tokens go by them.",
    MappingProxyType({}),
    _apply,
    _usual,
    changes_transfers=True,
)
