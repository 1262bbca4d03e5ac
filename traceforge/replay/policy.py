"""What a pacing policy is. In: what a rank has seen so far. Out: how long it delays entering its next iteration.

A policy is one file in `policies/` that exposes `POLICY`, or an entry point `traceforge.policies` of an installed
package. It is called before each iteration with the past only, and for each rank may use only that rank's column:
ranks do not talk.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from traceforge.errors import PluginError, UsageError
from traceforge.registry import discover, installed
from traceforge.replay.settings import parse_settings

Times = NDArray[np.int64]
Parameters = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Past:
    """What every rank has seen; one column a rank, one row a past iteration (I' of them), ns.

    Attributes:
        wait_ns: the rank's mean wait over the iteration's collectives, shape (I', R).
        delay_ns: the delay it injected, shape (I', R).
        duration_ns: its iteration's duration, shape (I', R).
        total_ns: sum of these durations, shape (R,); worked out where it is not given.
        slack_ahead_ns: how long each rank may be delayed before the next iteration without anything ending later,
            shape (R,). The future: None for every policy that is not marked `sees_future`.
    """

    wait_ns: Times
    delay_ns: Times
    duration_ns: Times
    total_ns: Times | None = None
    slack_ahead_ns: Times | None = None

    def mean_duration_ns(self) -> NDArray[np.float64]:
        """Mean duration of the rank's iterations so far, shape (R,); 0 before the first."""
        total = self.duration_ns.sum(axis=0) if self.total_ns is None else self.total_ns
        mean: NDArray[np.float64] = total / max(len(self.duration_ns), 1)
        return mean

    def slack_ns(self, window: int) -> Times:
        """Wait plus own delay in the last `window` iterations, so that pacing does not hide the slack it feeds on."""
        return self.wait_ns[-window:] + self.delay_ns[-window:]

    def foreseeing(self, slack_ahead_ns: Times) -> "Past":
        """The same with the slack that is about to come."""
        return replace(self, slack_ahead_ns=slack_ahead_ns)


@dataclass(frozen=True, slots=True)
class Policy:
    """A pacing policy.

    Attributes:
        name: the word used on the command line.
        description: what it does, in one sentence.
        defaults: parameters and their default values, in the order in which they are shown.
        delay: the delay before the next iteration, ns, >= 0, shape (R,), from the past and the parameters.
        grid: values of the parameters that `--sweep` tries; parameters that are absent keep their defaults.
        counts: parameters that count iterations: whole numbers from 1 on.
        sees_future: True for a bound that no job could run.
        is_placebo: True where the delays know nothing of the job.
    """

    name: str
    description: str
    defaults: Parameters
    delay: Callable[[Past, Parameters], Times]
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    counts: frozenset[str] = frozenset()
    sees_future: bool = False
    is_placebo: bool = False


@cache
def policies() -> Mapping[str, Policy]:
    """All policies by name: the files of `policies/`, and entry points `traceforge.policies` of installed packages.

    Raises:
        PluginError: a file or an entry point exposes something else, or two have one name.
    """
    found: dict[str, Policy] = {}
    of_packages = installed("traceforge.policies")
    for where, plugin in (discover("traceforge.replay.policies", "POLICY") | of_packages).items():
        if not isinstance(plugin, Policy):
            raise PluginError("it is not a Policy", where=f"policy plug-in {where}")
        if plugin.name in found:
            raise PluginError(f"there is another policy `{plugin.name}`", where=f"policy plug-in {where}")
        found[plugin.name] = plugin
    return MappingProxyType(found)


def parse_policy(text: str) -> tuple[Policy, dict[str, float]]:
    """A policy and its parameters from text such as `bounded_delay:window=8,gain=0.5`.

    Raises:
        UsageError: there is no such policy or parameter, or a value is no number that it may have.
    """
    name, settings = parse_settings(
        text, "policy", "policies", {name: policy.defaults for name, policy in policies().items()}
    )
    policy = policies()[name]
    parameters = {key: float(value) for key, value in settings.items()}
    for key, value in parameters.items():
        if value < 0:
            raise UsageError(f"`{key}={value:g}` must not be negative", hint=f"usually it is {policy.defaults[key]:g}")
        if key in policy.counts and (value < 1 or value != int(value)):
            hint = f"it counts iterations: a whole number from 1 on, usually {policy.defaults[key]:g}"
            raise UsageError(f"`{key}={value:g}` is no number of iterations", hint=hint)
    return policy, parameters
