"""The network is slow for a while: a flapping link, a storm of pauses, a failed-over switch."""

from traceforge.synth.fault import Fault, Site, crossing_nodes
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    site.slow_transfers(load, crossing_nodes(site.cluster))


FAULT = Fault(
    "fabric_episode",
    "fabric_contention",
    "job",
    "the network is slow for a while",
    _apply,
    lambda cluster, _place: crossing_nodes(cluster),
    cause="slow_transfer",
)
