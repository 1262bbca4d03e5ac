"""How sure a cost is. In: a cost by iteration, and how well the reference is known. Out: a 95 % interval of its mean.

The interval is of what this run lost, given how often it was struck: affected iterations are drawn among themselves, in
blocks as long as departures last (circular block bootstrap, Politis and Romano 1992), and widened as Student's t is
against the normal, as few iterations tell their own spread badly. What the subject would have taken without its delay
is known from the others alone: by how much they differ among themselves is added in quadrature, and so is what a replay
gets wrong.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.attribute.findings.counterfactual import BlamedTime, transfer_noise_ns
from traceforge.attribute.findings.significance import lasting_iterations
from traceforge.attribute.ledger.ledger_input import LedgerInput
from traceforge.replay.reference import Amounts

_BOOTSTRAPS = 1000
# Fewer affected iterations do not tell their spread.
_LEAST = 3
_NORMAL = 1.96
# Removing a known delay in a replay misses what it truly cost by about this share (generated jobs).
_REPLAY_ERROR = 0.01
# The standard error of a median over that of a mean, of normally distributed values.
_MEDIAN_ERROR = 1.25
_MAD_TO_SD = 1.48


@dataclass(frozen=True, slots=True)
class PeerSpread:
    """How well the reference of a source is known: a standard deviation, ns an iteration, from so many peers."""

    sd_ns: float
    degrees: int


def interval_of(
    costs_ns: Amounts, affected: NDArray[np.int64], known: PeerSpread, rng: np.random.Generator
) -> tuple[float, float]:
    """Lower and upper end of the 95 % interval of the mean.

    Args:
        costs_ns: by iteration.
        affected: the iterations that were struck.
    """
    mean, part = float(costs_ns.mean()), len(affected) / len(costs_ns)
    other = np.hypot(student(known.degrees) * known.sd_ns, _NORMAL * _REPLAY_ERROR * mean)
    below = above = 0.0
    if len(affected) >= _LEAST:
        below, above = _drawn(costs_ns[affected], rng)
    return mean - float(np.hypot(part * below, other)), mean + float(np.hypot(part * above, other))


def _drawn(costs_ns: Amounts, rng: np.random.Generator) -> tuple[float, float]:
    """By how much the mean may lie below and above, from the iterations' own spread."""
    count = len(costs_ns)
    # Correlation is told too low by few iterations; the cube root of their number is the usual least length of blocks.
    length = max(lasting_iterations(costs_ns[:, None]), min(round(count ** (1 / 3)), count // 3))
    starts = rng.integers(0, count, (_BOOTSTRAPS, -(-count // length)))
    drawn = (starts[:, :, None] + np.arange(length)).reshape(_BOOTSTRAPS, -1)[:, :count] % count
    low, high = np.quantile(costs_ns[drawn].mean(axis=1), [0.025, 0.975])
    widened, mean = student(count // length - 1) / _NORMAL, float(costs_ns.mean())
    return widened * (mean - float(low)), widened * (float(high) - mean)


def student(degrees: int) -> float:
    """The 97.5 % point of Student's t, within 1 % from two degrees of freedom on; that of two below."""
    least = max(degrees, 2)
    return _NORMAL + 2.37 / least + 2.82 / least**2 + 3.6 / least**3


def uncertainty_of(run: LedgerInput, cause: str, source: BlamedTime) -> PeerSpread:
    """How well is known what the source's ranks or transfers would have taken."""
    model = run.model
    iterations = len(model.iterations)
    if source.transfer_ns is not None:
        affected = int((source.transfer_ns > 0).any(axis=(1, 2)).sum())
        clean = max(1, iterations - affected)
        sd = transfer_noise_ns(model, source) * affected / iterations * np.sqrt(1 / max(affected, 1) + 1 / clean)
        return PeerSpread(float(sd), max(2, iterations - 1))
    kinds = [k for k, (name, _) in enumerate(model.kinds) if name == cause]
    total = model.before_arrival_ns[..., kinds].sum(axis=(1, 3)) + model.before_wait_ns[..., kinds].sum(axis=(1, 3))
    others = np.setdiff1d(np.arange(len(model.ranks)), source.rank_places)
    if not len(others):
        return PeerSpread(_MEDIAN_ERROR * float(total.std()) / np.sqrt(total.size), max(2, iterations - 1))
    means = total[:, others].mean(axis=0)
    if len(others) == 1:
        return PeerSpread(float(total[:, others].std()), 2)
    if len(others) < 5:
        return PeerSpread(float(means.std(ddof=1)), len(others) - 1)
    spread = _MAD_TO_SD * float(np.median(np.abs(means - np.median(means))))
    return PeerSpread(spread, len(others) - 1)
