"""One expert of each layer gets more tokens than the others: its router has collapsed, or the data are of one kind."""

import numpy as np

from traceforge.errors import UsageError
from traceforge.synth.experts import reroute
from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    places = [n for n in site.operations("compute") if site.program[n].routed is not None]
    if not places:
        raise UsageError("no rank holds experts of its own", hint="choose a cluster with expert_parallel")
    spent_ns = float(np.median(load.device_ns[:, places].sum(axis=1)))
    for layer, sent in load.tokens.items():
        tokens, total = sent.copy(), sent.sum(axis=2)
        hot = np.rint(tokens[..., site.place] * (1 + site.extra_ns / spent_ns))
        hot = np.minimum(hot, total)
        others = np.maximum(1, total - tokens[..., site.place])
        cooled = np.floor(tokens * ((total - hot) / others)[..., None])
        cooled[..., site.place] = 0
        # What rounding leaves goes to the hot expert, too.
        cooled[..., site.place] = total - cooled.sum(axis=2)
        tokens[site.iterations] = cooled[site.iterations].astype(tokens.dtype)
        reroute(load, site.program, layer, tokens)


FAULT = Fault(
    "hot_expert",
    "synchronization_amplification",
    "expert",
    "has an expert that gets more tokens than the others",
    _apply,
    cause="slow_compute",
)
