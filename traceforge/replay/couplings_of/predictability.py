"""Can a rank know that it will be early? In: mean waits by iteration and rank. Out: how far they follow the last ones.

    y = wait of a rank in an iteration less the mean over ranks;  coefficient = corr(y, y one iteration before)

A rank that always waits and one that waits in turns of several iterations are both predictable. `lasting_share` tells
them apart: the share of the variation of y that lies between ranks for good (intraclass correlation).
"""

import numpy as np
from numpy.typing import NDArray

from traceforge.replay.couplings_of.blocks import FEWEST_ITERATIONS, block_of, critical
from traceforge.replay.couplings_of.measurement import Measurement, refused
from traceforge.units import format_share

Amounts = NDArray[np.float64]


def predictability(wait_ns: Amounts, error_ns: float) -> Measurement:
    """Correlation of ranks' waits with those of the iteration before.

    Args:
        wait_ns: mean wait over the iteration's collectives, shape (I, R), consecutive iterations.
        error_ns: how unsure the clocks are against one another.
    """
    iterations, ranks = wait_ns.shape
    if iterations <= FEWEST_ITERATIONS or ranks < 2:
        return refused(
            wait_ns.size, f"{iterations} iterations of {ranks} ranks; more than {FEWEST_ITERATIONS} of two are needed."
        )
    relative = wait_ns - wait_ns.mean(axis=1, keepdims=True)
    if relative.std() < 3 * error_ns or not relative.any():
        return refused(
            wait_ns.size,
            f"Waits differ between ranks by {relative.std() / 1e3:.3g} us, less than three times the uncertainty of "
            f"the clocks ({error_ns / 1e3:.3g} us).",
        )
    before, after = relative[:-1], relative[1:]
    block = block_of(np.arange(len(before)))
    blocks = int(block.max()) + 1
    products = np.stack([(a * b).sum(axis=1) for a, b in ((before, after), (before, before), (after, after))])
    whole = products.sum(axis=1)
    # Delete-a-block jackknife of the correlation on Fisher's scale, where its error does not depend on its size.
    without = np.stack([whole - products[:, block == number].sum(axis=1) for number in range(blocks)])
    scale = _fisher(*whole)
    replicates = np.array([_fisher(*row) for row in without])
    error = float(np.sqrt((blocks - 1) / blocks * np.sum((replicates - replicates.mean()) ** 2)))
    ends = [np.tanh(scale + side * critical(blocks, level) * error) for level in (0.95, 0.99) for side in (-1, 1)]
    low, high, surely_low, surely_high = (float(end) for end in ends)
    share = format_share(max(lasting_share(relative), 0.0))
    return Measurement(
        float(np.tanh(scale)), low, high, surely_low, surely_high, wait_ns.size,
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


def _fisher(product: float, square: float, other: float) -> float:
    correlation = product / np.sqrt(square * other) if square * other > 0 else 0.0
    return float(np.arctanh(np.clip(correlation, -0.999_999, 0.999_999)))
