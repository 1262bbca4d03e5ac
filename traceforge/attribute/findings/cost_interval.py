"""How sure a cost is. In: a cost by iteration, and how well the reference is known. Out: a 95 % interval of its mean.

The interval is of what this run lost, given how many iterations were affected: these are drawn among themselves, in
blocks as long as departures last (circular block bootstrap, Politis and Romano 1992), and widened as Student's t is
against the normal, since few iterations estimate their own spread badly. What the subject would have taken without its
delay is known from its peers alone: their spread is added in quadrature, and so is the error of a replay.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.attribute.findings.counterfactual import BlamedTime, transfer_noise_ns
from traceforge.attribute.ledger.ledger_input import LedgerInput
from traceforge.replay.reference import Amounts
from traceforge.stats import (
    LEAST_COUNT,
    MEDIAN_ERROR,
    NORMAL,
    Interval,
    block_draws,
    block_length,
    lasting_count,
    mad_sd,
    percentile_interval,
    t_quantile,
)
from traceforge.thresholds import attribute as thresholds

_DRAWS = 1000


@dataclass(frozen=True, slots=True)
class PeerSpread:
    """How well the reference of a source is known: a standard deviation, ns an iteration, from so many peers."""

    sd_ns: float
    degrees: int


def interval_of(
    costs_ns: Amounts, affected: NDArray[np.int64], known: PeerSpread, rng: np.random.Generator
) -> Interval:
    """95 % interval of the mean.

    Args:
        costs_ns: by iteration.
        affected: the iterations that were struck.
    """
    mean, part = float(costs_ns.mean()), len(affected) / len(costs_ns)
    other = np.hypot(_t_of(known.degrees) * known.sd_ns, NORMAL * thresholds.REPLAY_ERROR * mean)
    below = above = 0.0
    if len(affected) >= LEAST_COUNT:
        below, above = _drawn(costs_ns[affected], rng)
    return Interval(mean - float(np.hypot(part * below, other)), mean + float(np.hypot(part * above, other)))


def _drawn(costs_ns: Amounts, rng: np.random.Generator) -> tuple[float, float]:
    """How far the mean may lie below and above, from the iterations' own spread."""
    count = len(costs_ns)
    # Few iterations show too little correlation, so that blocks have their usual length at least.
    length = max(lasting_count(costs_ns[:, None]), min(block_length(count), count // LEAST_COUNT))
    low, high = percentile_interval(costs_ns[block_draws(count, _DRAWS, rng, length)].mean(axis=1))
    widened, mean = _t_of(count // length - 1) / NORMAL, float(costs_ns.mean())
    return widened * (mean - low), widened * (high - mean)


def _t_of(degrees: int) -> float:
    """The 97.5 % point of Student's t; that of two degrees of freedom below two."""
    return float(t_quantile(max(degrees, 2)))


def peer_spread_of(
    run: LedgerInput,
    causes: Sequence[str],
    source: BlamedTime,
    struck: NDArray[np.int64],
    late_themselves: Sequence[int] = (),
) -> PeerSpread:
    """How well others of their role show what the blamed ranks or transfers would have taken; without others, they do.

    Args:
        struck: iterations in which they are late.
        late_themselves: ranks (as places of the model) that other findings blame, which show nothing.
    """
    model = run.model
    iterations = len(model.iterations)
    if source.is_transfer and source.transfer_ns is not None:
        affected = int((source.transfer_ns > 0).any(axis=(1, 2)).sum())
        clean = max(1, iterations - affected)
        sd = transfer_noise_ns(model, source) * affected / iterations * np.sqrt(1 / max(affected, 1) + 1 / clean)
        return PeerSpread(float(sd), max(2, iterations - 1))
    kinds = [k for k, (name, _) in enumerate(model.kinds) if name in causes]
    total = model.before_arrival_ns[..., kinds].sum(axis=(1, 3)) + model.before_wait_ns[..., kinds].sum(axis=(1, 3))
    role = np.zeros(len(model.ranks), dtype=np.int64) if model.role is None else model.role
    blamed = list(source.rank_places)
    others = np.setdiff1d(np.flatnonzero(np.isin(role, role[blamed])), [*blamed, *late_themselves])
    if not len(others):
        return _own_spread(total[:, blamed], struck)
    means, of_role = total[:, others].mean(axis=0), role[others]
    for one in np.unique(of_role):
        # Stages differ by design.
        means[of_role == one] -= means[of_role == one].mean()
    degrees = len(others) - len(np.unique(of_role))
    if degrees < 1:
        # A single peer shows its own scatter alone, of which one odd iteration, such as a warm-up, is no part.
        return PeerSpread(max(mad_sd(own) for own in total[:, others].T), 2)
    if len(others) < thresholds.FEW_PEERS:
        return PeerSpread(float(np.sqrt((means**2).sum() / degrees)), degrees)
    return PeerSpread(mad_sd(means), degrees)


def _own_spread(total_ns: NDArray[np.int64], struck: NDArray[np.int64]) -> PeerSpread:
    """How well the other iterations of ranks show what they would have taken in these; shape (I, ranks)."""
    count = len(total_ns)
    clean = np.setdiff1d(np.arange(count), struck)
    if len(clean) < LEAST_COUNT:
        return PeerSpread(MEDIAN_ERROR * mad_sd(total_ns.ravel()) / np.sqrt(total_ns.size), max(2, count - 1))
    sd = max(mad_sd(own) for own in total_ns[clean].T)
    known = sd * len(struck) / count * np.sqrt(1 / max(len(struck), 1) + 1 / len(clean))
    return PeerSpread(float(known), len(clean) - 1)
