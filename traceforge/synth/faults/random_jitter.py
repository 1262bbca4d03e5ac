"""Now one rank and now another loses time in one kernel; nobody in particular."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    places = site.operations("compute")
    for i in site.iterations:
        rank = int(site.rng.integers(site.cluster.ranks))
        place = places[int(site.rng.integers(len(places)))]
        extra_ns = site.extra_ns * site.rng.uniform(0.5, 1.5)
        load.device_ns[i, place, site.own([rank])] += np.rint(extra_ns)


FAULT = Fault(
    "random_jitter",
    "synchronization_amplification",
    "job",
    "one rank or another loses time in a kernel, in turns",
    _apply,
    cause="slow_compute",
)
