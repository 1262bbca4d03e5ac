"""A device heats up and slows down from iteration to iteration."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    share = site.extra_ns / site.compute_ns(load)
    ramp = np.linspace(0, 2, len(site.iterations))
    site.slow_down(load, [site.place], 1 + share * ramp[:, None])


FAULT = Fault(
    "thermal_drift",
    "synchronization_amplification",
    "rank",
    "computes ever more slowly as it heats up",
    _apply,
    cause="slow_compute",
)
