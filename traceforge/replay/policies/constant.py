"""Constant: every rank delays every iteration by the same share of its mean iteration time. It only costs."""

from types import MappingProxyType

import numpy as np

from traceforge.replay.policy import Parameters, Past, Policy, Times


def _delay(past: Past, parameters: Parameters) -> Times:
    return np.rint(min(parameters["delay"], 1.0) * past.mean_duration_ns()).astype(np.int64)


POLICY = Policy(
    "constant",
    "Every rank delays every iteration by the same share of its mean duration.",
    MappingProxyType({"delay": 0.01}),
    _delay,
    grid=MappingProxyType({"delay": (0.005, 0.01, 0.02)}),
    is_placebo=True,
)
