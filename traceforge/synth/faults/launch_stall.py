"""A host is so slow that its device runs dry between kernels: CPU contention, a throttled core, no affinity."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    launched = site.operations("compute", "collective", "copy")
    # The host's lead hides the first part of its slowness: it must take as long as the device does, and more.
    each = (site.compute_ns(load) + site.extra_ns) / len(launched)
    block = site.block(launched, [site.place])
    load.host_ns[block] = np.rint(np.maximum(load.host_ns[block], each))


FAULT = Fault(
    "launch_stall",
    "runtime_control_plane",
    "rank",
    "launches work more slowly than its device does it",
    _apply,
    cause="late_launch",
)
