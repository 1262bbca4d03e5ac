"""A device computes more slowly than the others: a bad part, or a neighbour that takes its power or its memory."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    share = site.extra_ns / site.compute_ns(load)
    site.slow_down(load, [site.place], np.full((len(site.iterations), 1), 1 + share))


FAULT = Fault(
    "compute_straggler",
    "synchronization_amplification",
    "rank",
    "computes more slowly than the other ranks",
    _apply,
    cause="slow_compute",
)
