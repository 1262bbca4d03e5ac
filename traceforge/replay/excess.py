"""Work cut down to its reference. In: a run, which ranks and kinds of work. Out: the run without that excess."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from traceforge.replay.edit import Job
from traceforge.replay.model import Times
from traceforge.replay.reference import Amounts, references


def without_excess(job: Job, *, ranks: Sequence[int] | None = None, kinds: Sequence[int] | None = None) -> Job:
    """The job in which work of these ranks and kinds never exceeds the reference of its place; all by default."""
    model = job.model
    chosen = np.zeros((len(model.ranks), len(model.kinds)), dtype=bool)
    chosen[np.ix_(_all_or(ranks, len(model.ranks)), _all_or(kinds, len(model.kinds)))] = True
    before_arrival, before_wait = model.before_arrival_ns.copy(), model.before_wait_ns.copy()
    of_length = references(model)
    for i, calls in enumerate(model.calls.tolist()):
        reference = of_length[calls]
        _cut(before_arrival[i, : calls + 1], reference.before_arrival_ns, chosen)
        _cut(before_wait[i, :calls], reference.before_wait_ns, chosen)
    return job.with_model(before_arrival_ns=before_arrival, before_wait_ns=before_wait)


def _all_or(some: Sequence[int] | None, count: int) -> Sequence[int]:
    return range(count) if some is None else some


def _cut(work_ns: Times, reference_ns: Amounts, chosen: NDArray[np.bool_]) -> None:
    """Cut work (places, R, K) down to references (places, K) where it is chosen (R, K), in place."""
    limit = np.rint(reference_ns).astype(np.int64)[:, None, :]
    np.minimum(work_ns, limit, out=work_ns, where=chosen)
