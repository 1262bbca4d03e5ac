"""Messages between two ranks of neighbouring pipeline stages are slow, both ways: a bad cable, a port with errors."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load
from traceforge.synth.target import ranks_struck


def _apply(load: Load, site: Site) -> None:
    one, other = ranks_struck(site.cluster, "link", site.place)
    links = [(one, other), (other, one)]
    spent_ns = site.sent_ns(load, links)
    if spent_ns:
        site.stretch_messages(load, links, np.full(len(site.iterations), 1 + site.extra_ns / 2 / spent_ns))


FAULT = Fault(
    "slow_link", "fabric_contention", "link", "messages between two ranks are slow", _apply, cause="slow_transfer"
)
