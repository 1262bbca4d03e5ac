"""The power of a device is capped, so that it runs at a lower clock than the others."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load

_POWER_CAP = 0x4  # NVML's bit


def _apply(load: Load, site: Site) -> None:
    share = site.extra_ns / site.compute_ns(load)
    site.lower_clock(load, np.full(len(site.iterations), 1 + share), _POWER_CAP)


FAULT = Fault(
    "power_cap",
    "synchronization_amplification",
    "rank",
    "runs at a lower clock than the other ranks' devices, since its power is capped",
    _apply,
    cause="slow_compute",
)
