"""Durations at which nothing is late. In: a run's durations. Out: reference durations by place in the program.

Medians over ranks of each one's median over iterations, of the same place, or what else the model's rule says; of
transfers, first quartiles. So half of the ranks may be slow in all iterations before the reference moves. Of a rank
that gets slower for good the iterations before that count (`usual_pace`), and likewise of transfers. Stages of a
pipeline are each held against the same stage of all replicas; where there is one replica, against its own iterations. A
stage may compute longer by design, but it does not pause by design: its pauses are held against those of all ranks.
Iterations with different numbers of collectives are different programs and have their own references.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceforge.replay.model import StepModel
from traceforge.replay.reference_rule import ReferenceRule
from traceforge.thresholds import replay as thresholds

Amounts = NDArray[np.float64]

# The lower of two middle values, so that the faster half of two ranks is the reference and not a point between.
WORK_QUANTILES = {
    ReferenceRule.MEDIAN: 0.5,
    ReferenceRule.FIRST_QUARTILE: thresholds.FIRST_QUARTILE,
    ReferenceRule.BEST_RANK: 0.5,
}
# Values in a sample, and how far from its place in it the one that is looked for may lie: three standard deviations.
_SAMPLED = 4_096
_SAMPLE_REACH = 100


@dataclass(frozen=True, slots=True)
class Reference:
    """Durations at which nothing is late, for iterations of one length; ns.

    Attributes:
        before_arrival_ns: shape (positions + 1, K); of ranks with several roles (positions + 1, R, K).
        before_wait_ns: shape (positions, K), or (positions, R, K).
        transfer_ns: shape (positions,), or (positions, R).
    """

    before_arrival_ns: Amounts
    before_wait_ns: Amounts
    transfer_ns: Amounts


def references(model: StepModel) -> dict[int, Reference]:
    """Reference durations by number of collectives in the iteration."""
    result = {}
    for calls in np.unique(model.calls):
        # Where all iterations are alike, nothing has to be copied.
        alike = slice(None) if (model.calls == calls).all() else np.flatnonzero(model.calls == calls)
        arrivals, waits = model.before_arrival_ns[alike, : calls + 1], model.before_wait_ns[alike, :calls]
        transfers, group = model.transfer_ns[alike, :calls], model.group[alike, :calls]
        clean = None if model.usual_transfers is None else model.usual_transfers[alike]
        usual = None if model.usual is None else model.usual[alike]
        joined = group >= 0 if model.role is not None or group.min(initial=0) < 0 else None
        roles = None if joined is None else _roles(model, joined)
        if joined is not None and roles is not None and roles.any():
            work = _by_role(model.rule, roles, arrivals, waits, usual)
            if model.pauses is not None:
                work = _with_common_pauses(*work, model.pauses)
            leaves = None if model.leaves_host is None else model.leaves_host[alike, :calls]
            result[int(calls)] = Reference(*work, _transfers_by_role(roles, transfers, joined, leaves, clean))
            continue
        if model.rule is ReferenceRule.BEST_RANK:
            best = _best_rank(arrivals, waits)
            arrivals, waits = arrivals[:, :, [best]], waits[:, :, [best]]
        result[int(calls)] = Reference(
            _of_rule(model.rule, arrivals, usual),
            _of_rule(model.rule, waits, usual),
            _clean_transfers(transfers, joined, clean),
        )
    return result


def _clean_transfers(
    transfers_ns: NDArray[np.int64], joined: NDArray[np.bool_] | None, clean: NDArray[np.bool_] | None
) -> Amounts:
    """Reference transfers by place, of clean iterations; of all where ranks lack at the place in some of these."""
    if clean is None:
        return _by_place(transfers_ns, thresholds.TRANSFER_QUANTILE)
    result = _by_place(transfers_ns[clean], thresholds.TRANSFER_QUANTILE)
    if joined is not None and not joined[clean].all():
        lacking = ~joined[clean].all(axis=(0, 2))
        result[lacking] = _by_place(transfers_ns[:, lacking], thresholds.TRANSFER_QUANTILE)
    return result


def _roles(model: StepModel, joined: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Number shared by ranks of one role that join collectives at the same places in most iterations, shape (R,).

    Ranks of which now one, now another makes more calls than its peers run one program over unlike data.
    """
    role = np.zeros(len(model.ranks), dtype=np.int64) if model.role is None else model.role
    if joined.all():
        return role
    usual = (2 * joined.sum(axis=0) > len(joined)).T
    program = np.unique(usual, axis=0, return_inverse=True)[1].ravel()
    calls = (model.group >= 0).sum(axis=1)
    for one in np.unique(role):
        if _take_turns(calls[:, role == one]):
            program[role == one] = 0
    found: NDArray[np.int64] = np.unique(np.stack([role, program]), axis=1, return_inverse=True)[1].ravel()
    return found


def _take_turns(calls: NDArray[np.int64]) -> bool:
    """Whether no order of the ranks, by number of calls of shape (I, R), holds in nearly all iterations."""
    ordered = calls[:, np.argsort(calls.sum(axis=0), kind="stable")]
    against = (np.diff(ordered, axis=1) < 0).any(axis=1)
    return bool(against.mean() > thresholds.MOST_OUT_OF_TURN)


def _by_role(
    rule: ReferenceRule,
    roles: NDArray[np.int64],
    arrivals_ns: NDArray[np.int64],
    waits_ns: NDArray[np.int64],
    usual: NDArray[np.bool_] | None,
) -> tuple[Amounts, Amounts]:
    """Reference work of each rank before arrivals and waits: that of the ranks of its role."""
    arrival, wait = (np.zeros((work.shape[1], *work.shape[2:])) for work in (arrivals_ns, waits_ns))
    for role in np.unique(roles):
        ranks = np.flatnonzero(roles == role)
        own = arrivals_ns[:, :, ranks], waits_ns[:, :, ranks]
        if rule is ReferenceRule.BEST_RANK:
            best = _best_rank(*own)
            own = own[0][:, :, [best]], own[1][:, :, [best]]
        of_role = None if usual is None else usual[:, ranks]
        arrival[:, ranks], wait[:, ranks] = (_of_rule(rule, work, of_role)[:, None] for work in own)
    return arrival, wait


def _with_common_pauses(arrivals_ns: Amounts, waits_ns: Amounts, pauses: NDArray[np.bool_]) -> tuple[Amounts, Amounts]:
    """Reference work of each rank, of shape (places, R, K), that pauses no longer than most ranks do."""
    total = arrivals_ns.sum(axis=0) + waits_ns.sum(axis=0)
    middle = (len(total) - 1) // 2
    usual = np.partition(total, middle, axis=0)[middle]
    part = np.divide(usual, total, out=np.ones_like(total), where=pauses & (total > usual))
    return arrivals_ns * part, waits_ns * part


def _of_rule(rule: ReferenceRule, work_ns: NDArray[np.int64], usual: NDArray[np.bool_] | None) -> Amounts:
    quantile = WORK_QUANTILES[rule]
    return _by_rank(work_ns, quantile, usual) if rule is ReferenceRule.MEDIAN else _by_place(work_ns, quantile)


def _transfers_by_role(
    roles: NDArray[np.int64],
    transfers_ns: NDArray[np.int64],
    joined: NDArray[np.bool_],
    leaves_host: NDArray[np.bool_] | None,
    clean: NDArray[np.bool_] | None,
) -> Amounts:
    """Reference transfers of each rank: of ranks of its role whose collective leaves the host as well, or stays.

    Args:
        clean: iterations that count, shape (I,), where ranks of the role join in any of them; None where all do.
    """
    result = np.zeros((transfers_ns.shape[1], len(roles)))
    leaves = np.zeros(joined.shape, dtype=np.bool_) if leaves_host is None else leaves_host
    usually = 2 * leaves.sum(axis=0) > np.maximum(1, joined.sum(axis=0))
    for place in np.flatnonzero(joined.any(axis=(0, 2))).tolist():
        for role in np.unique(roles):
            for away in (False, True):
                ranks = np.flatnonzero((roles == role) & (usually[place] == away))
                here = joined[:, place, ranks]
                if clean is not None and here[clean].any():
                    here = here & clean[:, None]
                real = transfers_ns[:, place, ranks][here]
                if len(real):
                    result[place, ranks] = nth(real, int(thresholds.TRANSFER_QUANTILE * (len(real) - 1)))
    return result


def _best_rank(arrivals_ns: NDArray[np.int64], waits_ns: NDArray[np.int64]) -> int:
    """Place of the rank with the least work in its median iteration; work of shape (I, places, R, K)."""
    total = arrivals_ns.sum(axis=(1, 3)) + waits_ns.sum(axis=(1, 3))
    return int(np.median(total, axis=0).argmin())


def _by_rank(durations_ns: NDArray[np.int64], quantile: float, usual: NDArray[np.bool_] | None) -> Amounts:
    """Quantile over ranks (third axis) of each one's quantile over iterations (first axis), the lower of two values.

    Args:
        usual: the iterations that count of each rank, shape (I, R); all by default.
    """
    iterations, places, ranks = durations_ns.shape[:3]
    result = np.zeros((places, *durations_ns.shape[3:]))
    if not durations_ns.size:
        return result
    paces = _paces(np.ones((iterations, ranks), dtype=np.bool_) if usual is None else usual)
    middle = int(quantile * (ranks - 1))
    own = np.empty(durations_ns.shape[2:], dtype=np.int64)
    for place in range(places):
        if durations_ns[:, place].any():
            for rows, of in paces:
                here = durations_ns[rows, place][:, of]
                kth = int(quantile * (len(here) - 1))
                own[of] = np.partition(here, kth, axis=0)[kth]
            result[place] = np.partition(own, middle, axis=0)[middle]
    return result


def _paces(usual: NDArray[np.bool_]) -> list[tuple[NDArray[np.int64] | slice, NDArray[np.int64] | slice]]:
    """Iterations that count, and of which ranks: all of those that have none."""
    if usual.all():
        return [(slice(None), slice(None))]
    alike = np.unique(usual, axis=1, return_inverse=True)[1].ravel()
    found: list[tuple[NDArray[np.int64] | slice, NDArray[np.int64] | slice]] = []
    for number in range(int(alike.max()) + 1):
        ranks = np.flatnonzero(alike == number)
        rows = usual[:, ranks[0]]
        found.append((np.flatnonzero(rows) if rows.any() else slice(None), ranks))
    return found


def _by_place(durations_ns: NDArray[np.int64], quantile: float) -> Amounts:
    """Quantile over iterations and ranks (first and third axis), the lower of two values where it lies between."""
    places, rest = durations_ns.shape[1], durations_ns.shape[3:]
    result = np.zeros((places, *rest))
    count = durations_ns.shape[0] * durations_ns.shape[2]
    if not durations_ns.size:
        return result
    kth = int(quantile * (count - 1))
    for place in range(places):
        # One place at a time stays in the processor's cache; a partition is all that one quantile needs.
        here = durations_ns[:, place]
        if here.any():
            rows = np.ascontiguousarray(here.reshape(count, -1).T)
            result[place] = np.reshape([nth(row, kth) for row in rows], rest)
    return result


def nth(values: NDArray[np.int64], kth: int) -> int:
    """The value at place `kth`, from 0, in ascending order; values of shape (N,).

    Of many values only those near it are put in order: a sample shows between which two it lies.
    """
    count = len(values)
    if count > 8 * _SAMPLED:
        sample = values[:: count // _SAMPLED].copy()
        middle = kth / count * len(sample)
        ends = max(0, int(middle - _SAMPLE_REACH)), min(len(sample) - 1, int(middle + _SAMPLE_REACH))
        sample.partition(ends)
        low, high = sample[list(ends)]
        below = int(np.count_nonzero(values < low))
        near = values.take(np.flatnonzero((values >= low) & (values <= high)))
        if below <= kth < below + len(near):
            values, kth = near, kth - below
    return int(np.partition(values, kth)[kth])


def by_rank(transfer_ns: NDArray[Any]) -> NDArray[Any]:
    """Reference transfers with an axis of ranks, shape (positions, R) or (positions, 1)."""
    return transfer_ns if transfer_ns.ndim > 1 else transfer_ns[:, None]


def clean_transfers(model: StepModel) -> NDArray[np.int64]:
    """Transfers cut down to the reference, ns, shape (I, P, R)."""
    transfer = model.transfer_ns.copy()
    of_length = references(model)
    for i, calls in enumerate(model.calls.tolist()):
        reference = np.rint(of_length[calls].transfer_ns).astype(np.int64)
        transfer[i, :calls] = np.minimum(transfer[i, :calls], by_rank(reference))
    return transfer
