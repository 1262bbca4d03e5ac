"""What an all-reduce costs by the alpha-beta model: the latency of its steps, and the bytes that its links carry.

    time = alpha * steps(N) + beta * bytes * bytes_factor(N)

A ring takes 2 (N - 1) steps and moves 2 (N - 1) / N of the bytes, a tree takes 2 log2 N steps and moves them twice
(Thakur et al. 2005; NCCL tests, PERFORMANCE.md). `beta` is one over the bus bandwidth. Over several hosts every step of
a ring is as slow as the link between hosts; NCCL's trees join hosts, and go through the ranks of each in a row.
What-ifs of the replay and of the forecast take the price of another form from here.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Algorithm = Literal["ring", "tree"]

# Order of magnitude of a link between devices of one host; used where no communicator within a host was measured.
NVLINK_BYTES_PER_S = 300e9
# A step within a host takes this share of one between hosts.
NVLINK_STEP_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer taken apart: what its steps take, and what its bytes take; any unit, shapes alike."""

    latency: Array
    carried: Array

    @property
    def total(self) -> Array:
        """What it takes."""
        return self.latency + self.carried


def steps(ranks: Array, algorithm: Algorithm = "ring") -> Array:
    """Latencies that an all-reduce pays one after another, shape of `ranks`."""
    result: Array = 2 * np.log2(ranks) if algorithm == "tree" else 2 * (ranks - 1)
    return result


def bytes_factor(ranks: Array, algorithm: Algorithm = "ring") -> Array:
    """Bytes that pass the slowest link of an all-reduce over its size, shape of `ranks`."""
    result: Array = np.where(ranks > 1, 2.0, 0.0) if algorithm == "tree" else 2 * (ranks - 1) / np.maximum(ranks, 1)
    return result


def taken_apart(transfer: Array, ranks: Array, step: float) -> Transfer:
    """A ring's transfer, of which each step takes so long, or the whole what all steps would take more."""
    latency = np.minimum(transfer, step * steps(ranks))
    return Transfer(latency, transfer - latency)


def of_fewer(ring: Transfer, ranks: Array, fewer: Array) -> Transfer:
    """The same buffer in a ring of fewer ranks; a gather or scatter of a buffer shrinks by the same share."""
    return Transfer(
        ring.latency * _over(steps(fewer), steps(ranks)), ring.carried * _over(bytes_factor(fewer), bytes_factor(ranks))
    )


def as_tree(ring: Transfer, ranks: Array, hosts: Array) -> Transfer:
    """A ring's transfer as a tree over hosts, in which the ranks of a host stand in a row."""
    within = 2 * (ranks / hosts - 1) * NVLINK_STEP_SHARE
    latency = ring.latency * _over(steps(hosts, "tree") + within, steps(ranks))
    return Transfer(latency, ring.carried * _over(bytes_factor(ranks, "tree"), bytes_factor(ranks)))


def in_two_levels(ring: Transfer, ranks: Array, hosts: Array, speed: float | Array) -> Transfer:
    """A ring's transfer within hosts first, `speed` times as fast, then between them, rail by rail.

    Each rank of a host sends its own part of the bytes to the others.
    """
    each = ranks / hosts
    step = ring.latency * _over(1.0, steps(ranks))
    carried = ring.carried * _over(1.0, bytes_factor(ranks))
    return Transfer(
        step * (steps(hosts) + steps(each) * NVLINK_STEP_SHARE),
        carried * (bytes_factor(each) / speed + bytes_factor(hosts) / each),
    )


def _over(above: Array | float, below: Array) -> Array:
    """A quotient; 0 where nothing communicates."""
    result: Array = np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.0)
    return result
