"""Whole ns that still add up. In: amounts as real numbers. Out: integers with the same rounded sums."""

import numpy as np
from numpy.typing import NDArray

from traceforge.replay.reference import Amounts


def round_to_sum(amounts: Amounts) -> NDArray[np.int64]:
    """Round amounts to integers whose sum, row by row, is the rounded sum; the largest fractions are rounded up.

    Args:
        amounts: shape (iterations, owners).
    """
    rounded = np.floor(amounts).astype(np.int64)
    missing = np.rint(amounts.sum(axis=1)).astype(np.int64) - rounded.sum(axis=1)
    order = np.argsort(rounded - amounts, axis=1, kind="stable")
    is_raised = np.arange(amounts.shape[1])[None, :] < missing[:, None]
    raised = np.zeros_like(rounded)
    np.put_along_axis(raised, order, is_raised.astype(np.int64), axis=1)
    return rounded + raised
