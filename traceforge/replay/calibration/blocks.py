"""Intervals from few, dependent iterations. In: sums by iteration. Out: Student-t statistics over blocks of them.

The idea: consecutive iterations resemble one another, distant ones do not; sums over a few long blocks are nearly
independent, and Student's t on them holds its level whatever their variances are (Ibragimov and Müller, "t-statistic
based correlation and heterogeneity robust inference", 2010, after Bakirov and Székely). It needs no estimate of the
correlation, and stays honest where a bootstrap of 20 iterations does not. Not handled: dependence that outlasts blocks.
"""

import numpy as np
from numpy.typing import NDArray

Amounts = NDArray[np.float64]

FEWEST_ITERATIONS = 20
"""Below this no coupling is measured."""
_SHORTEST_BLOCK = 3
_MOST_BLOCKS = 12
# Two-sided points of Student's t by degrees of freedom, which are one less than the number of blocks.
_STUDENT = {
    0.95: {5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 11: 2.201},
    0.99: {5: 4.032, 6: 3.707, 7: 3.499, 8: 3.355, 9: 3.250, 10: 3.169, 11: 3.106},
}


def block_of(iteration: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of the block of each row, from 0.

    Blocks hold equally many consecutive iterations, at least three; there are 6 to 12 of them.

    Args:
        iteration: iteration of each row, any order; at least `FEWEST_ITERATIONS` different ones.
    """
    distinct, place = np.unique(iteration, return_inverse=True)
    blocks = min(len(distinct) // _SHORTEST_BLOCK, _MOST_BLOCKS)
    result: NDArray[np.int64] = place * blocks // len(distinct)
    return result


def sums(values: Amounts, block: NDArray[np.int64]) -> Amounts:
    """Sums of values, shape (rows,) or (rows, K), over blocks, shape (blocks,) or (blocks, K)."""
    total: Amounts = np.zeros((int(block.max()) + 1, *values.shape[1:]))
    np.add.at(total, block, values)
    return total


def t_statistic(by_block: Amounts) -> Amounts:
    """Mean over its standard error along the first axis; 0 where nothing varies and the mean is 0."""
    count = len(by_block)
    mean, error = by_block.mean(axis=0), by_block.std(axis=0, ddof=1) / np.sqrt(count)
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Amounts = np.nan_to_num(mean / error, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return result


def critical(blocks: int, level: float) -> float:
    """What |t| over so many blocks exceeds by chance with probability 1 - level (0.95 or 0.99)."""
    return _STUDENT[level][blocks - 1]
