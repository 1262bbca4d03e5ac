"""In each iteration another rank computes longer, in turn: long sequences that wander, a moving hot expert."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    ranks = list(range(site.cluster.ranks))
    share = site.extra_ns / site.compute_ns(load)
    turn = np.arange(len(site.iterations))[:, None] % len(ranks) == np.array(ranks)
    site.slow_down(load, ranks, 1 + share * turn)


FAULT = Fault(
    "rotating_straggler",
    "synchronization_amplification",
    "job",
    "in each iteration another rank computes longer, in turn",
    _apply,
    cause="slow_compute",
)
