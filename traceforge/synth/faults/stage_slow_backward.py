"""All devices of a pipeline stage are slow in backward alone: a kernel that fell back, recomputation that grew."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load

_FORWARD = "forward"


def _apply(load: Load, site: Site) -> None:
    ranks = site.own(site.cluster.ranks_of_stage(site.place))
    passes = [n for n in site.operations("compute") if site.program[n].work not in ("", _FORWARD)]
    spent_ns = float(np.median(load.device_ns[np.ix_(range(len(load.device_ns)), passes, ranks)].sum(axis=1)))
    block = site.block(passes, ranks)
    load.device_ns[block] = np.rint(load.device_ns[block] * (1 + site.extra_ns / spent_ns))


FAULT = Fault(
    "stage_slow_backward",
    "synchronization_amplification",
    "stage",
    "computes more slowly on all of its devices, in backward alone",
    _apply,
    cause="slow_compute",
)
