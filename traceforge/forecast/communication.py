"""What a collective costs by the alpha-beta model. In: sizes, links and numbers of ranks. Out: times and bandwidths.

    time = alpha * steps(N) + beta * bytes * factor(N)

`alpha` is the latency of a step, `beta` the time of a byte on the link (1 / bus bandwidth). For an all-reduce a ring
takes 2 (N - 1) steps and moves 2 (N - 1) / N of the bytes, a tree takes 2 log2 N steps and moves them twice (Thakur
et al. 2005; NCCL tests, PERFORMANCE.md). Two bandwidths are in use, and they differ by that factor: algorithm
bandwidth is size over time, bus bandwidth is what the slowest link carries.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Algorithm = Literal["ring", "tree"]
BYTES_OF_DTYPE = {"float32": 4, "float16": 2, "bfloat16": 2, "float8": 1}


def steps(ranks: Array, algorithm: Algorithm = "ring") -> Array:
    """Latencies that an all-reduce pays one after another, shape of `ranks`."""
    result: Array = 2 * np.log2(ranks) if algorithm == "tree" else 2 * (ranks - 1)
    return result


def bytes_factor(ranks: Array, algorithm: Algorithm = "ring") -> Array:
    """Bytes that pass the slowest link of an all-reduce over its size, shape of `ranks`."""
    result: Array = np.where(ranks > 1, 2.0, 0.0) if algorithm == "tree" else 2 * (ranks - 1) / ranks
    return result


def gradient_bytes(parameters: float, dtype: str) -> float:
    """Bytes that a data-parallel step reduces: 10 billion parameters in bfloat16 are 20 GB."""
    return parameters * BYTES_OF_DTYPE[dtype]


def transfer_s_at_algorithm_bandwidth(size_bytes: float, algorithm_bytes_per_s: float) -> float:
    """Time of a collective at an algorithm bandwidth: 20 GB at 50 GB/s take 400 ms, on any number of ranks."""
    return size_bytes / algorithm_bytes_per_s


def all_reduce_s_at_bus_bandwidth(size_bytes: float, bus_bytes_per_s: float, ranks: int) -> float:
    """Time of a ring all-reduce at a bus bandwidth: 20 GB at 50 GB/s take 800 ms on many ranks, 400 ms on two.

    The factor 2 (N - 1) / N is what a plain division by "the bandwidth" forgets.
    """
    return size_bytes * float(bytes_factor(np.array([float(ranks)]))[0]) / bus_bytes_per_s


@dataclass(frozen=True, slots=True)
class Link:
    """A path: latency of a step, s, and bytes a second that it carries."""

    latency_s: float
    bytes_per_s: float


NVLINK = Link(1.5e-6, 300e9)
"""Order of magnitude of a link between devices of one host; used where no communicator within a host was measured."""


def ring_s(size_bytes: float, ranks: float, link: Link) -> float:
    """Time of a ring all-reduce over one kind of link."""
    n = np.array([float(ranks)])
    return float(steps(n)[0] * link.latency_s + bytes_factor(n)[0] * size_bytes / link.bytes_per_s)


def hierarchical_s(size_bytes: float, ranks: int, ranks_per_host: int, inside: Link, between: Link) -> float:
    """Time of an all-reduce in two levels: reduce-scatter and all-gather in each host, rings between hosts.

    Each rank of a host keeps a share of the bytes and reduces it with its peers on the other hosts, each over its own
    NIC (rail), so that the slow links carry 1 / ranks_per_host of the bytes.
    """
    hosts = ranks / ranks_per_host
    within = ring_s(size_bytes, ranks_per_host, inside)
    return within + (ring_s(size_bytes / ranks_per_host, hosts, between) if hosts > 1 else 0.0)


def scaling_efficiency(throughput: float, ranks: int, base_throughput: float, base_ranks: int) -> float:
    """Throughput per rank over that of a smaller run of the same job: how well the job scales, 0..1."""
    return throughput / ranks / (base_throughput / base_ranks)


def utilisation(achieved_flops_per_s: float, peak_flops_per_s: float) -> float:
    """Share of a device's peak that the job reaches, 0..1. It says nothing of scaling.

    147 of 312 TFLOP/s (OPT-175B on 992 A100) are a utilisation of 47 %: one rank alone might reach no more, and the
    scaling efficiency could still be 100 %.
    """
    return achieved_flops_per_s / peak_flops_per_s
