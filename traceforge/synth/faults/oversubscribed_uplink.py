"""The uplink between racks carries more than it can; groups within a rack are spared."""

from traceforge.synth.cluster import Cluster, Group
from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _groups(cluster: Cluster, _place: int) -> list[Group]:
    return [group for group in cluster.groups() if group.path == "uplink"]


def _apply(load: Load, site: Site) -> None:
    groups = _groups(site.cluster, site.place)
    # What is left of an uplink varies with what else it carries.
    share = site.factor_of(load, groups) - 1
    site.stretch_transfers(load, groups, 1 + share * site.rng.uniform(0.7, 1.3, len(site.iterations)))


FAULT = Fault(
    "oversubscribed_uplink",
    "fabric_contention",
    "job",
    "the uplink between racks is oversubscribed",
    _apply,
    _groups,
    cause="slow_transfer",
)
