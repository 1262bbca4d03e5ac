"""A rank waits for its data loader."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    load.host_ns[site.block(site.operations("input"), [site.place])] += np.rint(site.extra_ns)


FAULT = Fault(
    "input_stall", "runtime_control_plane", "rank", "waits for its next batch of input", _apply, cause="input_stall"
)
