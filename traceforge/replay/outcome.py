"""What each policy would have done. Reads graph.* through the dense model; fills replay.outcome.

Every policy is replayed with its default parameters; `traceforge replay --policy` replays others. Each is replayed
with the couplings at their best values and at both ends of their intervals, without any, and once more with the same
delays dealt out to the ranks at random.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import polars as pl

from traceforge.replay.coupling import NO_COUPLING
from traceforge.replay.engine import Arm, Delay, Replay, measured, replay, replay_arms
from traceforge.replay.policy import Past, Policy, Times, policies
from traceforge.replay.replay_input import ReplayInput, cv_interval, load_replay_input
from traceforge.replay.settings import format_settings
from traceforge.replay.verdict import PolicyPrediction, judge
from traceforge.stats import Interval
from traceforge.store.database import Store

# Policies replayed at once: more take more memory, and gain little.
_AT_ONCE = 6

Chosen = tuple[Policy, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row of replay.outcome; see there for the fields."""

    run_id: int
    policy: str
    parameters: str
    throughput_ratio: float
    throughput_ratio_low: float
    throughput_ratio_high: float
    cv: float | None
    p50_ns: int
    p95_ns: int
    p99_ns: int
    gain_ceiling: float
    verdict: str
    reason: str
    delay_ns: int
    engaged_share: float
    throughput_ratio_without_coupling: float
    throughput_ratio_placebo: float
    cv_low: float | None
    cv_high: float | None
    overshoot_share: float
    throughput_ratio_next_low: float | None
    throughput_ratio_next_high: float | None


@dataclass(frozen=True, slots=True)
class _Arms:
    """The replays of one policy: couplings at their best values, lower and upper ends, none, placebo and no delays."""

    point: Replay
    low: Replay
    high: Replay
    none: Replay
    placebo: Replay
    unpaced: Replay


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, policy with its defaults)."""
    chosen = [(policy, policy.defaults) for policy in policies().values()]
    result: list[dict[str, object]] = []
    for run_id in store.run_ids():
        run = store.once(load_replay_input, run_id)
        if run is not None:
            result += [asdict(outcome) for outcome in outcomes(run, chosen)]
    return pl.DataFrame(result, infer_schema_length=None)


def outcomes(run: ReplayInput, chosen: Sequence[Chosen]) -> list[Outcome]:
    """Outcome of each policy with its parameters."""
    ceiling = run.ceiling()
    parts = [_replayed(run, chosen[first : first + _AT_ONCE]) for first in range(0, len(chosen), _AT_ONCE)]
    replays = [arms for part in parts for arms in part]
    return [_outcome(run, *one, arms, ceiling) for one, arms in zip(chosen, replays, strict=True)]


def _replayed(run: ReplayInput, chosen: Sequence[Chosen]) -> list[_Arms]:
    known, durations = run.known, measured(run.model)
    values = (known.point, known.low, known.possible, NO_COUPLING)
    distinct = list(dict.fromkeys(values))
    arms = [Arm(_delay(*one), couplings, one[0].sees_future) for one in chosen for couplings in distinct]
    unpaced = replay(run.model, durations)
    found = replay_arms(run.model, durations, arms, recorded=run.recorded)
    by_policy = [found[n : n + len(distinct)] for n in range(0, len(found), len(distinct))]
    dealt = [Arm(_dealt_out(own[0].delay_ns), known.point) for own in by_policy]
    placebos = replay_arms(run.model, durations, dealt, recorded=run.recorded)
    point, low, high, none = (distinct.index(value) for value in values)
    return [
        _Arms(own[point], own[low], own[high], own[none], placebo, unpaced)
        for own, placebo in zip(by_policy, placebos, strict=True)
    ]


def _delay(policy: Policy, parameters: Mapping[str, float]) -> Delay:
    return lambda past: policy.delay(past, parameters)


def _dealt_out(delay_ns: Times) -> Delay:
    """The same delays in each iteration, at ranks drawn at random."""
    dealt = np.random.default_rng(0).permuted(delay_ns, axis=1)

    def delay(past: Past) -> Times:
        mine: Times = dealt[len(past.wait_ns)]
        return mine

    return delay


def _outcome(run: ReplayInput, policy: Policy, parameters: Mapping[str, float], arms: _Arms, ceiling: float) -> Outcome:
    ratio = _ratio(run, arms.point)
    is_paced = bool(arms.point.delay_ns.any())
    steps = run.steps_ns(arms.point.end_ns)
    to_come = _to_come(run, arms) if is_paced else Interval(ratio, ratio)
    prediction = PolicyPrediction(
        ratio=ratio,
        interval=_interval(run, arms, ratio) if is_paced else Interval(ratio, ratio),
        without_coupling=_ratio(run, arms.none),
        placebo=_ratio(run, arms.placebo),
        ceiling=ceiling,
        steps=len(steps),
        is_paced=is_paced,
        sees_future=policy.sees_future,
        overshoot=overshoot(arms.point, arms.unpaced),
        to_come=to_come,
    )
    verdict, reason = judge(prediction, run.known)
    p50, p95, p99 = (round(float(value)) for value in np.quantile(steps, [0.5, 0.95, 0.99]))
    cv_ends = cv_interval(steps) or (None, None)
    return Outcome(
        run_id=run.run_id,
        policy=policy.name,
        parameters=format_settings(parameters),
        throughput_ratio=ratio,
        throughput_ratio_low=prediction.interval.low,
        throughput_ratio_high=prediction.interval.high,
        cv=float(steps.std(ddof=1) / steps.mean()) if len(steps) > 1 else None,
        p50_ns=p50,
        p95_ns=p95,
        p99_ns=p99,
        gain_ceiling=ceiling,
        verdict=verdict,
        reason=reason,
        delay_ns=round(float(arms.point.delay_ns.mean())),
        engaged_share=float((arms.point.delay_ns > 0).mean()),
        throughput_ratio_without_coupling=prediction.without_coupling,
        throughput_ratio_placebo=prediction.placebo,
        cv_low=cv_ends[0],
        cv_high=cv_ends[1],
        overshoot_share=prediction.overshoot,
        throughput_ratio_next_low=None if to_come is None else to_come.low,
        throughput_ratio_next_high=None if to_come is None else to_come.high,
    )


def overshoot(paced: Replay, unpaced: Replay) -> float:
    """Share of iterations in which a rank that is held back waits least of all, and would not have without delays."""
    is_least, was_least = (one.wait_ns == one.wait_ns.min(axis=1, keepdims=True) for one in (paced, unpaced))
    return float((is_least & ~was_least & (paced.delay_ns > 0)).any(axis=1).mean())


def _ratio(run: ReplayInput, outcome: Replay) -> float:
    return run.elapsed_ns / run.elapsed_of(outcome)


def _interval(run: ReplayInput, arms: _Arms, ratio: float) -> Interval:
    """What couplings and steps leave open; where no coupling is known, from none to the largest that is possible."""
    if not run.known.is_measured and not run.known.is_positive:
        interval = run.ratio_interval(arms.point, arms.point, arms.high)
        return Interval(min(interval.low, ratio), max(interval.high, _ratio(run, arms.high), ratio))
    interval = run.ratio_interval(arms.low, arms.point, arms.high)
    return Interval(min(interval.low, ratio), max(interval.high, ratio))


def _to_come(run: ReplayInput, arms: _Arms) -> Interval | None:
    """The interval for as many steps to come."""
    is_known = run.known.is_measured or run.known.is_positive
    return run.next_interval(arms.low if is_known else arms.point, arms.point, arms.high)
