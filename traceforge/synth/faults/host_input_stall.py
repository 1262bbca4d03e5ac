"""All ranks of a host wait for their input: its disk is slow, its mount hangs, its loaders starve one another."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    ranks = site.host_ranks
    # What they share is slow for all of them alike, and their batches are not read at the same moment.
    extra_ns = site.extra_ns * site.rng.uniform(0.9, 1.1, (len(site.iterations), 1, len(ranks)))
    own = site.own(ranks)
    there = [ranks.index(rank) for rank in own]
    load.host_ns[site.block(site.operations("input"), own)] += np.rint(extra_ns[..., there])


FAULT = Fault(
    "host_input_stall",
    "runtime_control_plane",
    "node",
    "waits for the input of all of its ranks",
    _apply,
    cause="input_stall",
)
