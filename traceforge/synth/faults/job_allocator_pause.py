"""All ranks run out of device memory in the same iterations and free what they hold, each when it gets there."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    places = site.before_first_meeting("compute")
    # Every rank pauses once in an iteration, before they first meet: nobody's pause adds to that of another.
    onset = site.rng.integers(len(places), size=(len(site.iterations), site.cluster.ranks))
    for number, place in enumerate(places):
        extra_ns = np.where(onset == number, site.extra_ns, 0.0)
        site.stall_ranks(load, place, extra_ns, name="cudaFree", category="cuda_runtime", drains_device=True)


FAULT = Fault(
    "job_allocator_pause",
    "runtime_control_plane",
    "job",
    "all ranks free device memory in the same iterations, each at a moment of its own",
    _apply,
    cause="allocator_stall",
)
