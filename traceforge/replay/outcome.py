"""What each policy would have done. Reads graph.* through the dense model; fills replay.outcome.

Every policy is replayed with its default parameters; `traceforge replay --policy` replays others. The ceiling is
what no pacing can beat: the same iterations with every transfer at its reference.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import polars as pl

from traceforge.replay.engine import Durations, Replay, measured, replay
from traceforge.replay.model import StepModel, load_model
from traceforge.replay.policy import Policy, format_parameters, policies
from traceforge.replay.reference import clean_transfers
from traceforge.store.database import Store
from traceforge.units import format_share

# Below this a gain is not worth a change; the same line is drawn for harm.
_NOTICEABLE = 0.01


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


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, policy with its defaults)."""
    chosen = [(policy, policy.defaults) for policy in policies().values()]
    result: list[dict[str, object]] = []
    for run_id in store.query("SELECT run_id FROM meta.run ORDER BY run_id")["run_id"]:
        model = load_model(store, run_id)
        if model is not None and model.calls.any():
            result += [asdict(outcome) for outcome in outcomes(run_id, model, chosen)]
    return pl.DataFrame(result, infer_schema_length=None)


def outcomes(run_id: int, model: StepModel, chosen: Sequence[tuple[Policy, Mapping[str, float]]]) -> list[Outcome]:
    """Outcome of each policy with its parameters."""
    durations = measured(model)
    clean = Durations(durations.before_arrival_ns, durations.before_wait_ns, clean_transfers(model))
    unpaced_ns = _elapsed_ns(model, replay(model, durations))
    ceiling = unpaced_ns / _elapsed_ns(model, replay(model, clean)) - 1
    result = []
    for policy, parameters in chosen:
        paced = replay(model, durations, lambda past, p=policy, q=parameters: p.delay(past, q))  # type: ignore[misc]
        result.append(_outcome(run_id, model, policy, parameters, paced, unpaced_ns, ceiling))
    return result


def _outcome(
    run_id: int,
    model: StepModel,
    policy: Policy,
    parameters: Mapping[str, float],
    paced: Replay,
    unpaced_ns: int,
    ceiling: float,
) -> Outcome:
    ratio = unpaced_ns / _elapsed_ns(model, paced)
    steps = _steps_ns(model, paced)
    p50, p95, p99 = (round(float(value)) for value in np.quantile(steps, [0.5, 0.95, 0.99]))
    verdict, reason = judge(ratio, ceiling, is_paced=bool(paced.delay_ns.any()))
    return Outcome(
        run_id=run_id,
        policy=policy.name,
        parameters=format_parameters(parameters),
        throughput_ratio=ratio,
        throughput_ratio_low=ratio,
        throughput_ratio_high=ratio if policy.name == "none" else max(ratio, ratio * (1 + ceiling)),
        cv=float(steps.std(ddof=1) / steps.mean()) if len(steps) > 1 else None,
        p50_ns=p50,
        p95_ns=p95,
        p99_ns=p99,
        gain_ceiling=ceiling,
        verdict=verdict,
        reason=reason,
        delay_ns=round(float(paced.delay_ns.mean())),
        engaged_share=float((paced.delay_ns > 0).mean()),
    )


def judge(ratio: float, ceiling: float, *, is_paced: bool) -> tuple[str, str]:
    """Verdict and reason from the ratio without coupling and the gain ceiling (both as shares of throughput)."""
    if not is_paced:
        return "no_effect", "No rank is ever delayed."
    if (1 + ceiling) * ratio < 1 - _NOTICEABLE:
        return "harm", f"The delays cost {format_share(1 - ratio)}, more than any pacing could gain."
    if ceiling < _NOTICEABLE:
        reason = f"Were every transfer at its reference time, the job would gain {format_share(ceiling)} at most."
        return "no_effect", reason
    reason = (
        f"A gain needs transfers that slow down when arrivals spread, which was not measured. Without it the policy "
        f"changes throughput by {format_share(ratio - 1)}; with it no pacing gains more than {format_share(ceiling)}."
    )
    return "not_identifiable", reason


def _elapsed_ns(model: StepModel, outcome: Replay) -> int:
    return int(outcome.end_ns[-1].max() - model.start_ns[0].max())


def _steps_ns(model: StepModel, outcome: Replay) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """From one completion to the next; where an iteration between two is missing, that time is no step."""
    completion = outcome.end_ns.max(axis=1)
    is_next = np.diff(model.iterations, prepend=model.iterations[0] - 1) == 1
    steps: np.ndarray[tuple[int], np.dtype[np.int64]] = np.diff(completion, prepend=model.start_ns[0].max())[is_next]
    return steps
