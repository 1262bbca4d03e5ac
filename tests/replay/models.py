"""Runs as dense models, told as stories. In: durations by iteration, place and rank. Out: a `StepModel` of that run.

    model = lockstep_model([[[100, 60]]], transfer_ns=20)

        rank 0   |work 100············|transfer 20|
        rank 1   |work 60···|wait 40··|transfer 20|

When everything ends is worked out here once more, one rank and one event after another, so that the engine is
compared with something that shares no code with it. All times are ns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import ArrayLike, NDArray

from traceforge.replay.coupling import Couplings
from traceforge.replay.engine import record
from traceforge.replay.evidence import NOTHING_KNOWN, Evidence
from traceforge.replay.model import StepModel
from traceforge.replay.replay_input import ReplayInput

Times = NDArray[np.int64]
Kinds = tuple[tuple[str, str | None], ...]

COMPUTE: Kinds = (("compute", None),)
THREE_KINDS: Kinds = (("compute", None), ("input", "input"), ("runtime", "allocator"))


@dataclass(frozen=True)
class Plan:
    """What each rank does in each iteration; shapes and meanings as in `StepModel`.

    Attributes:
        first_start_ns: when each rank starts the first iteration, shape (R,).
        pause_ns: from the end of each iteration to the start of the next one, shape (I - 1, R).
    """

    calls: NDArray[np.int64]
    group: NDArray[np.int64]
    awaited: NDArray[np.int64]
    transfer_ns: Times
    before_arrival_ns: Times
    before_wait_ns: Times
    first_start_ns: Times
    pause_ns: Times
    kinds: Kinds = COMPUTE


def model_of(plan: Plan) -> StepModel:
    """The run that a plan makes."""
    iterations, ranks = len(plan.calls), plan.group.shape[2]
    start, end = (np.zeros((iterations, ranks), dtype=np.int64) for _ in range(2))
    for i in range(iterations):
        start[i] = plan.first_start_ns if i == 0 else end[i - 1] + plan.pause_ns[i - 1]
        end[i] = _ends(plan, i, start[i].tolist())
    return StepModel(
        iterations=np.arange(iterations),
        ranks=np.arange(ranks),
        start_ns=start,
        end_ns=end,
        calls=plan.calls,
        group=plan.group,
        transfer_ns=plan.transfer_ns,
        awaited=plan.awaited,
        kinds=plan.kinds,
        before_arrival_ns=plan.before_arrival_ns,
        before_wait_ns=plan.before_wait_ns,
    )


def _ends(plan: Plan, i: int, clock: list[int]) -> list[int]:
    """End of iteration `i` on each rank: one rank, one event at a time."""
    ranks = range(len(clock))
    ended: dict[tuple[int, int], int] = {}
    for p in range(int(plan.calls[i])):
        arrived = [clock[r] + int(plan.before_arrival_ns[i, p, r].sum()) for r in ranks]
        for r in ranks:
            peers = [arrived[other] for other in ranks if plan.group[i, p, other] == plan.group[i, p, r]]
            ended[p, r] = max(peers) + int(plan.transfer_ns[i, p, r])
        for r in ranks:
            clock[r] = arrived[r] + int(plan.before_wait_ns[i, p, r].sum())
            awaited = int(plan.awaited[i, p, r])
            if awaited >= 0:
                clock[r] = max(clock[r], ended[awaited, r])
    return [clock[r] + int(plan.before_arrival_ns[i, plan.calls[i], r].sum()) for r in ranks]


def lockstep_plan(
    work_ns: ArrayLike,
    *,
    transfer_ns: ArrayLike = 10,
    kinds: Kinds = COMPUTE,
    groups: Sequence[Sequence[int]] | None = None,
    start_ns: Sequence[int] | None = None,
) -> Plan:
    """Every rank works, meets the others, waits for the meeting's end and goes on; nothing overlaps.

    Args:
        work_ns: by iteration, place and rank, or by iteration, place, rank and kind.
        transfer_ns: one for all, or by iteration and place.
        groups: for each place the number of the group that each rank meets; all ranks meet by default.
        start_ns: of the first iteration by rank; 0 by default.
    """
    work = np.array(work_ns, dtype=np.int64)
    if work.ndim == 3:
        work = work[..., None]
    iterations, places, ranks, count = work.shape
    transfer = np.zeros((iterations, places, ranks), dtype=np.int64)
    transfer += np.array(transfer_ns).reshape(np.shape(transfer_ns) + (1,) * bool(np.ndim(transfer_ns)))
    meet = np.zeros((places, ranks)) if groups is None else np.array(groups)
    return Plan(
        calls=np.full(iterations, places),
        group=np.broadcast_to(meet.astype(np.int64), transfer.shape).copy(),
        awaited=np.broadcast_to(np.arange(places)[:, None], transfer.shape).copy(),
        transfer_ns=transfer,
        before_arrival_ns=np.concatenate([work, np.zeros((iterations, 1, ranks, count), dtype=np.int64)], axis=1),
        before_wait_ns=np.zeros((iterations, places, ranks, count), dtype=np.int64),
        first_start_ns=np.array(start_ns or [0] * ranks, dtype=np.int64),
        pause_ns=np.zeros((max(iterations - 1, 0), ranks), dtype=np.int64),
        kinds=kinds if count == len(kinds) else kinds[:count],
    )


def lockstep_model(
    work_ns: ArrayLike,
    *,
    transfer_ns: ArrayLike = 10,
    kinds: Kinds = COMPUTE,
    groups: Sequence[Sequence[int]] | None = None,
    start_ns: Sequence[int] | None = None,
) -> StepModel:
    """The run of a `lockstep_plan`."""
    return model_of(lockstep_plan(work_ns, transfer_ns=transfer_ns, kinds=kinds, groups=groups, start_ns=start_ns))


def scene_of(model: StepModel, known: Evidence = NOTHING_KNOWN) -> ReplayInput:
    """The run as it is changed by policies and edits, with what is known of its couplings."""
    return ReplayInput(0, model, record(model), known)


def coupled_by(spread: float, *, low: float | None = None, high: float | None = None, lag: float = 0.9) -> Evidence:
    """What is known where the spread's coupling was measured, and lateness can be told from the past."""
    ends = (spread, spread if low is None else low, spread if high is None else high)
    point, lower, upper = (Couplings(spread=end) for end in ends)
    return Evidence(point, lower, upper, True, lower.spread > 0, lag, "It was measured.")


@st.composite
def plans(draw: st.DrawFn, *, max_ranks: int = 5, equal_starts: bool = False) -> Plan:
    """Any run: sub-groups that differ from place to place, waits for earlier collectives, iterations of any length."""
    iterations, places = draw(st.integers(1, 4)), draw(st.integers(0, 4))
    ranks, kinds = draw(st.integers(1, max_ranks)), draw(st.integers(1, 3))
    calls = draw(arrays(np.int64, iterations, elements=st.integers(0, places)))
    shape = (iterations, places, ranks)

    def times(*of_shape: int, most: int = 60) -> Times:
        return draw(arrays(np.int64, of_shape, elements=st.integers(0, most)))

    real = np.arange(places)[None, :, None] < calls[:, None, None]
    latest = np.broadcast_to(np.arange(places)[:, None], shape)
    before_arrival = times(iterations, places + 1, ranks, kinds)
    before_arrival[np.arange(places + 1)[None, :] > calls[:, None]] = 0
    equal = np.zeros(ranks, dtype=np.int64)
    return Plan(
        calls=calls,
        group=np.where(real, draw(arrays(np.int64, shape, elements=st.integers(0, ranks - 1))), -1),
        awaited=np.where(real, np.minimum(latest, draw(arrays(np.int64, shape, elements=st.integers(-1, 4)))), -1),
        transfer_ns=times(*shape) * real,
        before_arrival_ns=before_arrival,
        before_wait_ns=times(*shape, kinds) * real[..., None],
        first_start_ns=equal if equal_starts else times(ranks, most=1_000),
        pause_ns=np.zeros((iterations - 1, ranks), dtype=np.int64) if equal_starts else times(iterations - 1, ranks),
        kinds=THREE_KINDS[:kinds],
    )


def with_ranks_permuted(plan: Plan, order: Sequence[int]) -> Plan:
    """The same run with its ranks numbered otherwise: new rank r is old rank order[r]."""
    own = list(order)
    return replace(
        plan,
        group=plan.group[:, :, own],
        awaited=plan.awaited[:, :, own],
        transfer_ns=plan.transfer_ns[:, :, own],
        before_arrival_ns=plan.before_arrival_ns[:, :, own],
        before_wait_ns=plan.before_wait_ns[:, :, own],
        first_start_ns=plan.first_start_ns[own],
        pause_ns=plan.pause_ns[:, own],
    )


def times_scaled(plan: Plan, factor: int) -> Plan:
    """The same run with all times multiplied."""
    return replace(
        plan,
        transfer_ns=plan.transfer_ns * factor,
        before_arrival_ns=plan.before_arrival_ns * factor,
        before_wait_ns=plan.before_wait_ns * factor,
        first_start_ns=plan.first_start_ns * factor,
        pause_ns=plan.pause_ns * factor,
    )
