"""All devices of a host compute more slowly: its power is capped, its air is hot, its driver is an old one."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    share = site.extra_ns / site.compute_ns(load)
    ranks = site.host_ranks
    site.slow_down(load, ranks, np.full((len(site.iterations), len(ranks)), 1 + share))


FAULT = Fault(
    "host_slow_compute",
    "synchronization_amplification",
    "node",
    "computes more slowly on all of its devices",
    _apply,
    cause="slow_compute",
)
