"""Random, the placebo: delays that know nothing, up to `max_delay` x mean iteration time, drawn from `seed`.

What helps no more than this helps by no knowledge of who is early. Draws depend on the seed and on how many
iterations have passed, and on nothing else.
"""

from types import MappingProxyType

import numpy as np

from traceforge.replay.policy import Parameters, Past, Policy, Times


def _delay(past: Past, parameters: Parameters) -> Times:
    draws = np.random.default_rng([int(parameters["seed"]), len(past.wait_ns)])
    share = draws.random(past.wait_ns.shape[1]) * min(parameters["max_delay"], 1.0)
    return (share * past.mean_duration_ns()).astype(np.int64)


POLICY = Policy(
    "random",
    "Placebo: random delays that know nothing of the job.",
    MappingProxyType({"max_delay": 0.02, "seed": 0.0}),
    _delay,
    grid=MappingProxyType({"max_delay": (0.01, 0.02, 0.05)}),
    is_placebo=True,
)
