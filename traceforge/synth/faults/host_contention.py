"""Another program takes processors of a host: its ranks pause in every iteration, now one longer and now another."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    ranks = site.host_ranks
    # The longest of so many exponential pauses has the harmonic number as its mean, over that of one.
    mean_ns = site.extra_ns / sum(1 / number for number in range(1, len(ranks) + 1))
    extra_ns = np.zeros((len(site.iterations), site.cluster.ranks))
    extra_ns[:, ranks] = site.rng.exponential(mean_ns, (len(site.iterations), len(ranks)))
    site.stall_ranks(load, site.operations("copy")[0], extra_ns)


FAULT = Fault(
    "host_contention",
    "runtime_control_plane",
    "node",
    "shares its processors with another program, which delays now one of its ranks and now another",
    _apply,
    cause="host_stall",
)
