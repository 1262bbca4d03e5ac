"""Oracle, a bound: it sees the next iteration and delays each rank by all the time it would only have waited.

Nothing ends later by it, and no policy that delays ranks before an iteration brings arrivals closer together at no
cost. It is the only policy that may see the future, so no job can run it.
"""

from types import MappingProxyType

import numpy as np

from traceforge.replay.policy import Parameters, Past, Policy, Times


def _delay(past: Past, _parameters: Parameters) -> Times:
    if past.slack_ahead_ns is None:
        return np.zeros(past.wait_ns.shape[1], dtype=np.int64)
    return past.slack_ahead_ns


POLICY = Policy(
    "oracle",
    "Bound: each rank is delayed by what it is about to wait; no job could know that.",
    MappingProxyType({}),
    _delay,
    sees_future=True,
)
