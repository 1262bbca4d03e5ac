"""Sharing a lateness. In: how late each of several is. Out: shares that add up to the latest.

The latest of several sets the pace. The Shapley value of the game v(Q) = max over Q of the lateness has a closed
form: sort ascending; each step from one lateness to the next is shared by all that are at least that late (Littlechild
and Owen's airport game). Ties share equally; a change of 1 ns moves shares by at most 1 ns.
"""

import numpy as np
from numpy.typing import NDArray

Lateness = NDArray[np.float64]


def share_lateness(lateness_ns: Lateness) -> Lateness:
    """Shares of the greatest lateness of each row, shape as given; all >= 0.

    Args:
        lateness_ns: shape (..., members); who is early (below 0) has no part.
    """
    order = np.argsort(lateness_ns, axis=-1)
    # Clipped only now: many equal values are slow to sort.
    ascending = np.maximum(0.0, np.take_along_axis(lateness_ns, order, axis=-1))
    steps = np.diff(ascending, prepend=0.0, axis=-1)
    at_least_as_late = np.arange(lateness_ns.shape[-1], 0, -1)
    shares = np.empty_like(lateness_ns)
    np.put_along_axis(shares, order, np.cumsum(steps / at_least_as_late, axis=-1), axis=-1)
    return shares
