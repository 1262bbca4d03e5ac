"""What an all-reduce costs by the alpha-beta model: the latency of its steps, and the bytes that its links carry.

    time = alpha * steps(N) + beta * bytes * bytes_factor(N)

A ring takes 2 (N - 1) steps and moves 2 (N - 1) / N of the bytes, a tree takes 2 log2 N steps and moves them twice
(Thakur et al. 2005; NCCL tests, PERFORMANCE.md). `beta` is one over the bus bandwidth.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Algorithm = Literal["ring", "tree"]

# Order of magnitude of a link between devices of one host; used where no communicator within a host was measured.
NVLINK_LATENCY_S = 1.5e-6
NVLINK_BYTES_PER_S = 300e9


def steps(ranks: Array, algorithm: Algorithm = "ring") -> Array:
    """Latencies that an all-reduce pays one after another, shape of `ranks`."""
    result: Array = 2 * np.log2(ranks) if algorithm == "tree" else 2 * (ranks - 1)
    return result


def bytes_factor(ranks: Array, algorithm: Algorithm = "ring") -> Array:
    """Bytes that pass the slowest link of an all-reduce over its size, shape of `ranks`."""
    result: Array = np.where(ranks > 1, 2.0, 0.0) if algorithm == "tree" else 2 * (ranks - 1) / ranks
    return result
