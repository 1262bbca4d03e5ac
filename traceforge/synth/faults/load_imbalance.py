"""Each iteration divides its work unevenly, anew: sequences of different lengths, experts of different load."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    ranks = list(range(site.cluster.ranks))
    parts = site.rng.random((len(site.iterations), len(ranks)))
    # The same work in sum, and the rank with most of it has about the severity more.
    uneven = 2 * (parts - parts.mean(axis=1, keepdims=True))
    share = site.extra_ns / site.compute_ns(load)
    site.slow_down(load, ranks, np.maximum(0.1, 1 + share * uneven))


FAULT = Fault(
    "load_imbalance",
    "synchronization_amplification",
    "job",
    "work is divided unevenly over the ranks, anew in each iteration",
    _apply,
    cause="slow_compute",
)
