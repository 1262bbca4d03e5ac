"""All devices of a pipeline stage compute more slowly: its layers grew, or its kernels fell back to slow ones."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    share = site.extra_ns / site.compute_ns(load)
    ranks = list(site.cluster.ranks_of_stage(site.place))
    site.slow_down(load, ranks, np.full((len(site.iterations), len(ranks)), 1 + share))


FAULT = Fault(
    "stage_slow_compute",
    "synchronization_amplification",
    "stage",
    "computes more slowly on all of its devices",
    _apply,
    cause="slow_compute",
)
