"""Sharing a lateness. In: how late each of several is. Out: shares that add up to the latest.

The latest of several sets the pace. The Shapley value of the game v(Q) = max over Q of the lateness has a closed
form: sort ascending; each step from one lateness to the next is shared by all that are at least that late (Littlechild
and Owen, 1973). Ties share equally; a change of 1 ns moves shares by at most 1 ns.
"""

import numpy as np
from numpy.typing import NDArray

Lateness = NDArray[np.float64]


def share_lateness(lateness_ns: Lateness) -> Lateness:
    """Shares of the greatest lateness of each row, shape as given; all >= 0.

    Exact but for rounding: of 1,024, two that are as late as each other to 1 in 2^42 may be taken in either order.

    Args:
        lateness_ns: shape (..., members); who is early (below 0) has no part.
    """
    members = lateness_ns.shape[-1]
    late = np.maximum(0.0, lateness_ns, order="C")
    # The bits of numbers >= 0 have their order; with the place in their last bits, sorting shows who is where.
    last = (1 << max(0, members - 1).bit_length()) - 1
    place = late.view(np.int64) & ~last
    place |= np.arange(members)
    place.sort(axis=-1)
    place &= last
    place += np.arange(0, late.size, max(1, members)).reshape(*late.shape[:-1], 1)
    shares = late.take(place)
    shares[..., 1:] = np.diff(shares, axis=-1)
    # At each step share all that are at least as late.
    shares /= np.arange(members, 0, -1)
    np.cumsum(shares, axis=-1, out=shares)
    late.put(place, shares)
    return late
