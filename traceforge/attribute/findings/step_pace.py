"""How long a step is for everybody. In: a model. Out: the other ranks' work by iteration, as a multiple of the usual.

Steps of one run may vary alike on all ranks, as with sequence lengths or packed batches. What a rank loses is then what
it takes beyond its peers in the same iteration, not beyond the usual iteration. The idea: the median of the peers,
drawn to 1 as far as ranks vary on their own (shrinkage by the share of variation that ranks have in common).
Not handled: one rank alone, which has no peers; work of which the reference is nothing, such as stalls.
"""

from collections.abc import Sequence

import numpy as np

from traceforge.replay.model import StepModel
from traceforge.replay.reference import Amounts, Reference
from traceforge.stats import mad_sd
from traceforge.thresholds import attribute as thresholds


def step_paces(
    model: StepModel, of_length: dict[int, Reference], kinds: Sequence[int], rank_places: Sequence[int]
) -> Amounts:
    """Multiple of the reference that the peers of some ranks need in each iteration, shape (I,); 1 where none is known.

    Args:
        of_length: the model's references.
        kinds: which work counts, places of `model.kinds`.
    """
    paces = _paces_of_ranks(model, of_length, list(kinds))
    peers = np.setdiff1d(np.flatnonzero(np.isfinite(paces).all(axis=0)), rank_places)
    if not len(peers) or len(paces) <= thresholds.ONE_OFF_OTHERS:
        return np.ones(len(paces))
    varied = _within_reach(paces[:, np.isfinite(paces).all(axis=0)])
    middle = np.median(_within_reach(paces[:, peers], reach=np.inf), axis=1)
    result: Amounts = np.maximum(0.0, 1 + _part_in_common(varied, len(peers)) * middle)
    return result


def _paces_of_ranks(model: StepModel, of_length: dict[int, Reference], kinds: list[int]) -> Amounts:
    """Each rank's work as a multiple of the reference, shape (I, R); NaN where the reference is nothing."""
    result = np.full((len(model.iterations), len(model.ranks)), np.nan)
    for calls, reference in of_length.items():
        alike = model.calls == calls
        work = model.before_arrival_ns[alike, : calls + 1][..., kinds].sum(axis=(1, 3))
        work += model.before_wait_ns[alike, :calls][..., kinds].sum(axis=(1, 3))
        expected = reference.before_arrival_ns[..., kinds].sum(axis=(0, -1))
        expected = np.broadcast_to(expected + reference.before_wait_ns[..., kinds].sum(axis=(0, -1)), work.shape[1:])
        result[alike] = np.divide(work, expected, out=np.full(work.shape, np.nan), where=expected > 0)
    return result


def _within_reach(paces: Amounts, reach: float = thresholds.JOB_SPREADS) -> Amounts:
    """Paces less each rank's own median, none further away than some deviations, shape (I, ranks)."""
    deviation = paces - np.median(paces, axis=0)
    bound = reach * max(mad_sd(own) for own in deviation.T) if np.isfinite(reach) else np.inf
    result: Amounts = np.clip(deviation, -bound, bound)
    return result


def _part_in_common(deviation: Amounts, peers: int) -> float:
    """Share of the variance of the mean of so many peers that is common to all ranks, 0 to 1; shape (I, ranks)."""
    ranks = deviation.shape[1]
    if ranks < 2:
        return 0.0
    covariance = np.cov(deviation, rowvar=False)
    of_one = float(np.trace(covariance)) / ranks
    common = (float(covariance.sum()) - ranks * of_one) / (ranks * (ranks - 1))
    if common <= 0:
        return 0.0
    return float(common / (common + max(0.0, of_one - common) / peers))
