"""Bounded delay (paper, section 5.3): early ranks hold back a little, by what they waited lately.

Each rank keeps its last `window` values of slack: its mean wait over an iteration's collectives plus the delay it
injected itself, so that pacing does not hide the slack it feeds on. When their mean exceeds `threshold` x its mean
iteration time, it delays entering the next iteration by min(`max_delay` x mean iteration time, `gain` x mean slack);
when the mean falls below, pacing disengages. A gain of 1 ratchets: nobody leads any more, and all get slower.
"""

from types import MappingProxyType

import numpy as np

from traceforge.replay.policy import Parameters, Past, Policy, Times


def _delay(past: Past, parameters: Parameters) -> Times:
    window = max(int(parameters["window"]), 1)
    if len(past.wait_ns) < window:
        return np.zeros(past.wait_ns.shape[1], dtype=np.int64)
    slack = past.slack_ns(window).mean(axis=0)
    iteration = past.mean_duration_ns()
    delay = np.minimum(parameters["max_delay"] * iteration, parameters["gain"] * slack)
    engaged = slack > parameters["threshold"] * iteration
    return np.where(engaged, delay, 0).astype(np.int64)


POLICY = Policy(
    "bounded_delay",
    "A rank that waited much lately delays its next iteration by part of that.",
    MappingProxyType({"window": 4.0, "threshold": 0.02, "gain": 0.5, "max_delay": 0.05}),
    _delay,
    grid=MappingProxyType({"window": (2, 4, 8), "gain": (0.25, 0.5, 0.75), "max_delay": (0.05, 0.1)}),
    counts=frozenset({"window"}),
)
