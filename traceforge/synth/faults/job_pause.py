"""All ranks stand still in the same iterations and nothing names why; each begins at a moment of its own."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    places = site.before_first_meeting("copy", "compute")
    onset = site.rng.integers(len(places), size=(len(site.iterations), site.cluster.ranks))
    for number, place in enumerate(places):
        site.stall_ranks(load, place, np.where(onset == number, site.extra_ns, 0.0))


FAULT = Fault(
    "job_pause",
    "runtime_control_plane",
    "job",
    "all ranks stand still in the same iterations",
    _apply,
    cause="host_stall",
)
