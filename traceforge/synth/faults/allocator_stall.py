"""A rank at the limit of its memory frees and allocates in every iteration; both wait for the device."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load, Stall


def _apply(load: Load, site: Site) -> None:
    for place in site.places("compute")[1:3]:
        duration = np.zeros((len(load.host_ns), site.cluster.ranks))
        duration[site.iterations, site.place] = np.rint(site.extra_ns / 2)
        load.stalls.append(Stall(place, duration, "cudaMalloc", "cuda_runtime", drains_device=True))


FAULT = Fault("allocator_stall", "runtime_control_plane", "rank", "is held up in device memory allocation", _apply)
