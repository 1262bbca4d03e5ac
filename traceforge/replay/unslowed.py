"""Work without what couplings made of it. In: a recorded run and its couplings. Out: what work would take alone.

Device work is slower while a collective waits or transfers beside it. Ranks that wait for a slow one are slowed, the
slow one is not; held against their durations as recorded, it would seem less slow than it is.
"""

from dataclasses import replace

import numpy as np

from traceforge.replay.coupling import Baseline, Couplings, device_share, slowed_by
from traceforge.replay.model import StepModel, Times
from traceforge.replay.rank_groups import rank_groups


def unslowed(model: StepModel, recorded: Baseline, couplings: Couplings) -> StepModel:
    """The model with the work that each stretch would have taken with no collective under way beside it."""
    if not (couplings.waiting or couplings.transferring):
        return model
    met = rank_groups(model.group)
    before_arrival, before_wait = model.before_arrival_ns.copy(), model.before_wait_ns.copy()
    for i, calls in enumerate(model.calls.tolist()):
        for p in range(calls):
            last = met.layouts[met.at[i, p]].latest(recorded.begun_ns[i, p])
            end = last + recorded.transfer_ns[i, p]
            after = recorded.arrival_ns[i, p + 1] if p + 1 < calls else model.end_ns[i]
            begin = after - recorded.before_arrival_ns[i, p + 1]
            _take_out(before_arrival[i, p + 1], begin, last, end, recorded, couplings)
            _take_out(before_wait[i, p], recorded.arrival_ns[i, p], last, end, recorded, couplings)
    return replace(model, before_arrival_ns=before_arrival, before_wait_ns=before_wait)


def _take_out(
    work_ns: Times, begin_ns: Times, last_ns: Times, end_ns: Times, recorded: Baseline, couplings: Couplings
) -> None:
    """Take the slow-down out of a stretch (R, K) that begins then, beside a collective that waits until `last`."""
    total = work_ns.sum(axis=1)
    lost = slowed_by(total, device_share(work_ns, recorded.device_kinds), couplings, begin_ns, last_ns, end_ns)
    kinds = list(recorded.device_kinds)
    device = work_ns[:, kinds]
    share = device / np.maximum(device.sum(axis=1, keepdims=True), 1)
    work_ns[:, kinds] = np.maximum(device - np.rint(share * lost[:, None]).astype(np.int64), 0)
