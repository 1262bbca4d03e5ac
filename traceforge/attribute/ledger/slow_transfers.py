"""Whose path is slow. In: the ledger's input. Out: for each communicator, the cause that owns its slow transfers.

Communicators that meet at the same place of the program move the same bytes; a message path counts as one. One that is
slower than most of its peers in nearly all iterations has a worse path; what comes and goes, or affects most of them,
is the fabric's. The path of a communicator without peers cannot be judged. Where a member has no trace it may have come
late after all the others, which looks the same: only if peers with all traces are slow as well it is the fabric.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from traceforge.attribute.cause import cause_of_transfer
from traceforge.attribute.ledger.ledger_input import LedgerInput
from traceforge.replay.reference import Amounts, Reference
from traceforge.thresholds import attribute as thresholds


def transfer_causes(run: LedgerInput, of_length: Mapping[int, Reference], *, on_device: bool = True) -> list[str]:
    """Cause of each communicator's slow transfers, length C.

    Args:
        on_device: whether devices communicate. Hosts that communicate by themselves share their cores with it: how
            long that takes does not depend on a path alone.
    """
    excess, reference = excess_of(run, of_length)
    path = _slow_paths(run, excess, reference) if on_device else set()
    causes = []
    for c in range(len(run.communicators)):
        if c in run.lacking and not _is_shared(run, c, excess):
            causes.append(cause_of_transfer("unrecorded"))
        else:
            causes.append(cause_of_transfer("path" if c in path else "fabric"))
    return causes


def _is_shared(run: LedgerInput, c: int, excess: Amounts) -> bool:
    """Whether the peers of which all traces are here are slow together with `c`."""
    complete = [peer for peer in peers_of(run, c) if peer not in run.lacking]
    slow = excess[:, c] >= max(0.0, float(excess[:, c].mean()))
    if not complete or not slow.any():
        return False
    shared = float(np.median(excess[slow][:, complete].mean(axis=0)))
    return shared >= thresholds.SHARED_EXCESS * float(excess[slow, c].mean()) > 0


def _slow_paths(run: LedgerInput, excess: Amounts, reference: Amounts) -> set[int]:
    """Communicators that are slower than most of their peers throughout."""
    beyond = excess.copy()
    for c in np.flatnonzero(_is_steady(excess, reference)).tolist():
        # What most peers have as well is no path: the time of a message also shows what its ranks did meanwhile.
        peers = np.sort(excess[:, peers_of(run, c)], axis=1)
        beyond[:, c] -= np.maximum(0.0, peers[:, (peers.shape[1] - 1) // 2])
    steady = _is_steady(beyond, reference)
    return {c for c in np.flatnonzero(steady).tolist() if _is_exception(steady, peers_of(run, c))}


def _is_steady(excess: Amounts, reference: Amounts) -> NDArray[np.bool_]:
    """Communicators that are slower than the reference in nearly all iterations, shape (C,)."""
    lowest = np.quantile(excess, thresholds.STEADY_EXCEPTIONS, axis=0)
    mean = excess.mean(axis=0)
    least = np.maximum(thresholds.STEADY_SHARE * mean, thresholds.PATH_EXCESS * reference.mean(axis=0))
    result: NDArray[np.bool_] = (lowest >= least) & (mean > 0)
    return result


def excess_of(run: LedgerInput, of_length: Mapping[int, Reference]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Transfer time above the reference, and the reference, by iteration and communicator, shape (I, C)."""
    model = run.model
    excess = np.zeros((len(model.iterations), len(run.communicators)))
    expected = np.zeros_like(excess)
    for i, calls in enumerate(model.calls.tolist()):
        reference = of_length[calls].transfer_ns
        for p in range(calls):
            of = run.communicator[i, p]
            real = model.group[i, p] >= 0
            usual = np.broadcast_to(reference[p], len(of))[real]
            np.add.at(excess[i], of[real], model.transfer_ns[i, p][real] - usual)
            np.add.at(expected[i], of[real], usual)
    joined = model.group >= 0
    rank = np.broadcast_to(np.arange(joined.shape[2]), joined.shape)
    members = np.unique(run.communicator[joined] * joined.shape[2] + rank[joined]) // max(1, joined.shape[2])
    sizes = np.maximum(1, np.bincount(members, minlength=excess.shape[1]))
    return excess / sizes, expected / sizes


def peers_of(run: LedgerInput, c: int) -> NDArray[np.int64]:
    """Communicators that meet where `c` does, itself included; of message paths those between the same stages."""
    joined = run.model.group[0] >= 0
    places = ((run.communicator[0] == c) & joined).any(axis=1)
    found = np.unique(run.communicator[0][places][joined[places]])
    stages = _stages(run, c)
    return found if stages is None else np.array([peer for peer in found if _stages(run, int(peer)) == stages])


def _stages(run: LedgerInput, c: int) -> set[int] | None:
    """Roles at both ends of a message path; None of a communicator."""
    path, roles = run.paths.get(run.communicators[c]), run.model.role
    if path is None:
        return None
    places = np.flatnonzero(np.isin(run.model.ranks, [path.low_rank, path.high_rank]))
    return set() if roles is None else set(roles[places].tolist())


def _is_exception(steady: NDArray[np.bool_], peers: NDArray[np.int64]) -> bool:
    """Whether at most half of several peers are slow."""
    return len(peers) > 1 and int(steady[peers].sum()) <= len(peers) / 2
