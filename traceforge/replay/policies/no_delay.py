"""No pacing: the trace as it was."""

from types import MappingProxyType

import numpy as np

from traceforge.replay.policy import Parameters, Past, Policy, Times


def _delay(past: Past, _parameters: Parameters) -> Times:
    return np.zeros(past.wait_ns.shape[1], dtype=np.int64)


POLICY = Policy("none", "Nobody is delayed.", MappingProxyType({}), _delay)
