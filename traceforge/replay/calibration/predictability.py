"""Can a rank know that it will be early? In: mean waits by iteration and rank. Out: how far they follow the last ones.

    y = wait of a rank in an iteration less the mean over ranks;  coefficient = corr(y, y one iteration before)

Waits beyond what 95 % of them stay below count as that much, so that a single pause does not decide.
A rank that always waits and one that waits in turns of several iterations are both predictable. `lasting_share` tells
them apart: the share of the variation of y that lies between ranks for good (intraclass correlation).
"""

import numpy as np
from numpy.typing import NDArray

from traceforge.replay.calibration.blocks import FEWEST_ITERATIONS, block_of, critical
from traceforge.replay.calibration.measurement import Measurement, refused
from traceforge.units import format_ns, format_share

Amounts = NDArray[np.float64]

_ORDINARY = 0.95


def predictability(wait_ns: Amounts, error_ns: float) -> Measurement:
    """Correlation of ranks' waits with those of the iteration before.

    Args:
        wait_ns: mean wait over the iteration's collectives, shape (I, R), consecutive iterations.
        error_ns: how unsure the clocks are against one another.
    """
    iterations, ranks = wait_ns.shape
    if iterations <= FEWEST_ITERATIONS or ranks < 2:
        reason = f"Waits of {ranks} ranks in {iterations} iterations; more than {FEWEST_ITERATIONS} of two are needed."
        return refused(wait_ns.size, reason)
    relative = (wait_ns - wait_ns.mean(axis=1, keepdims=True)).astype(np.float64)
    if relative.std() < 3 * error_ns or not relative.any():
        return refused(
            wait_ns.size,
            f"Waits differ between ranks by {format_ns(float(relative.std()))}, less than three times the "
            f"uncertainty of the clocks ({format_ns(error_ns)}).",
        )
    bound = np.quantile(np.abs(relative), _ORDINARY)
    held = np.clip(relative, -bound, bound)
    before, after = held[:-1], held[1:]
    block = block_of(np.arange(len(before)))
    blocks = int(block.max()) + 1
    products = np.stack([(a * b).sum(axis=1) for a, b in ((before, after), (before, before), (after, after))])
    whole = products.sum(axis=1)
    # Delete-a-block jackknife.
    replicates = np.array([_correlation(*(whole - products[:, block == n].sum(axis=1))) for n in range(blocks)])
    error = float(np.sqrt((blocks - 1) / blocks * np.sum((replicates - replicates.mean()) ** 2)))
    found = _correlation(*whole)
    ends = [found + side * critical(blocks, level) * error for level in (0.95, 0.99) for side in (-1, 1)]
    low, high, surely_low, surely_high = (min(max(end, -1.0), 1.0) for end in ends)
    share = format_share(max(lasting_share(relative), 0.0))
    return Measurement(
        found, low, high, surely_low, surely_high, wait_ns.size,
        scope=f"{iterations} iterations of {ranks} ranks",
        caveat=f" {share} of the differences between ranks last for the whole run.",
    )  # fmt: skip


def lasting_share(relative: Amounts) -> float:
    """Intraclass correlation of ranks (one-way), at most 1; shape (I, R). Below 0: ranks differ less than by chance."""
    iterations, ranks = relative.shape
    between = iterations * float(relative.mean(axis=0).var(ddof=1))
    within = float(((relative - relative.mean(axis=0)) ** 2).sum()) / (ranks * (iterations - 1))
    total = between + (iterations - 1) * within
    return (between - within) / total if total > 0 else 0.0


def _correlation(product: float, square: float, other: float) -> float:
    return float(product / np.sqrt(square * other)) if square * other > 0 else 0.0
