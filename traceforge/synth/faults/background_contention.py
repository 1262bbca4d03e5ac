"""Other jobs take part of the network now and then, each time as much as it happens."""

from traceforge.synth.fault import Fault, Site, crossing_nodes
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    groups = crossing_nodes(site.cluster)
    share = site.factor_of(load, groups) - 1
    busy = site.rng.random(len(site.iterations)) < 0.4
    site.stretch_transfers(load, groups, 1 + share * busy * site.rng.uniform(1, 4, len(busy)))


FAULT = Fault(
    "background_contention",
    "fabric_contention",
    "job",
    "other jobs take part of the network now and then",
    _apply,
    lambda cluster, _place: crossing_nodes(cluster),
    cause="slow_transfer",
)
