"""Adaptive: bounded delay whose threshold and gain follow how well each rank's own slack can be forecast.

A rank forecasts its slack by the mean of the last `window` values. Over its last `memory` iterations it keeps the
root mean square of what those forecasts missed. It paces only while its forecast exceeds `threshold` times that
error, and the gain falls with the share of the slack's mean square that the error makes up: a rank whose slack comes
and goes at random is left alone. The delay never exceeds `max_delay` x mean iteration time.
"""

from types import MappingProxyType

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from traceforge.replay.policy import Parameters, Past, Policy, Times


def _delay(past: Past, parameters: Parameters) -> Times:
    window, memory = max(int(parameters["window"]), 1), max(int(parameters["memory"]), 2)
    if len(past.wait_ns) < 2 * window:
        return np.zeros(past.wait_ns.shape[1], dtype=np.int64)
    slack = past.slack_ns(memory + window).astype(np.float64)
    forecasts = sliding_window_view(slack, window, axis=0).mean(axis=2)
    error = np.mean((slack[window:] - forecasts[:-1]) ** 2, axis=0)
    power = np.mean(slack[window:] ** 2, axis=0)
    explained = 1 - np.divide(error, power, out=np.ones_like(error), where=power > 0)
    delay = np.minimum(
        parameters["max_delay"] * past.mean_duration_ns(), parameters["gain"] * explained * forecasts[-1]
    )
    engaged = (forecasts[-1] > parameters["threshold"] * np.sqrt(error)) & (explained > 0)
    return np.where(engaged, delay, 0).astype(np.int64)


POLICY = Policy(
    "adaptive",
    "Bounded delay that holds still while a rank's slack cannot be forecast.",
    MappingProxyType({"window": 3.0, "memory": 32.0, "threshold": 1.0, "gain": 0.75, "max_delay": 0.1}),
    _delay,
    grid=MappingProxyType({"window": (2, 3, 4), "threshold": (0.5, 1.0, 2.0), "gain": (0.5, 0.75)}),
    counts=frozenset({"window", "memory"}),
)
