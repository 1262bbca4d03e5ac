"""A device heats up and slows down from iteration to iteration."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load

_HEAT = 0x20  # NVML's bit


def _apply(load: Load, site: Site) -> None:
    share = site.extra_ns / site.compute_ns(load)
    ramp = np.linspace(0, 2, len(site.iterations))
    site.lower_clock(load, 1 + share * ramp, _HEAT)


FAULT = Fault(
    "thermal_drift",
    "synchronization_amplification",
    "rank",
    "computes ever more slowly as it heats up",
    _apply,
    cause="slow_compute",
)
