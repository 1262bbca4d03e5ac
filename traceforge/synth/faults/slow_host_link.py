"""Messages between two hosts are slow, both ways, whichever ranks send them: a bad trunk, a busy switch port."""

from itertools import product

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load
from traceforge.synth.target import host_pair


def _apply(load: Load, site: Site) -> None:
    one, other = map(site.cluster.ranks_of, host_pair(site.cluster, site.place))
    links = [*product(one, other), *product(other, one)]
    spent_ns = site.sent_ns(load, links)
    if spent_ns:
        site.stretch_messages(load, links, np.full(len(site.iterations), 1 + site.extra_ns / 2 / spent_ns))


FAULT = Fault(
    "slow_host_link",
    "fabric_contention",
    "hosts",
    "messages between two hosts are slow",
    _apply,
    cause="slow_transfer",
)
