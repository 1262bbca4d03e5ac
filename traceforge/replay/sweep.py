"""Which parameters would be best. Reads as `outcome`; fills replay.sweep where a coupling was measured.

All combinations of the values in a policy's grid are replayed. A point is on the front where no other has both more
throughput and less variation; of settings that do the same, only the first is. Best of many is a biased choice: the
more points, the more one is best by luck, so the intervals count and not the order.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import product

import polars as pl

from traceforge.replay.outcome import Outcome, outcomes
from traceforge.replay.policy import Policy, policies
from traceforge.replay.replay_input import ReplayInput, load_replay_input
from traceforge.store.database import Store

_COLUMNS = (
    "run_id", "policy", "parameters", "throughput_ratio", "throughput_ratio_low", "throughput_ratio_high",
    "cv", "cv_low", "cv_high", "verdict",
)  # fmt: skip


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """One row a (run with a measured coupling, policy that could be run, combination of its parameters)."""
    chosen = [policy for policy in policies().values() if not (policy.sees_future or policy.is_placebo)]
    for run_id in store.run_ids():
        run = store.once(load_replay_input, run_id)
        if run is not None and run.known.is_positive:
            yield table(sweep(run, [(policy, policy.defaults) for policy in chosen]))


def sweep(run: ReplayInput, chosen: Sequence[tuple[Policy, Mapping[str, float]]]) -> list[Outcome]:
    """Outcomes of all combinations of parameters; what a grid does not hold stays as given."""
    tried = [(policy, combination) for policy, given in chosen for combination in combinations(policy, given)]
    return outcomes(run, tried)


def combinations(policy: Policy, given: Mapping[str, float]) -> list[dict[str, float]]:
    """All combinations of the values in a policy's grid, with the given values first where they are not in it."""
    names = list(policy.grid)
    found = [{**given, **dict(zip(names, values, strict=True))} for values in product(*policy.grid.values())]
    return found if dict(given) in found else [dict(given), *found]


def table(found: Sequence[Outcome]) -> pl.DataFrame:
    """Rows of replay.sweep, best throughput first."""
    every = pl.DataFrame([asdict(one) for one in found], infer_schema_length=None)
    frame = every.select(*_COLUMNS, pl.Series("is_on_front", front(found)))
    return frame.sort("throughput_ratio", "policy", "parameters", descending=[True, False, False])


def front(found: Sequence[Outcome]) -> list[bool]:
    """Whether no other outcome has both more throughput and less variation; of equal ones, the first."""
    points = [(-one.throughput_ratio, one.cv if one.cv is not None else 0.0) for one in found]
    best = [not any(other[0] <= one[0] and other[1] <= one[1] and other != one for other in points) for one in points]
    return [holds and points.index(one) == place for place, (holds, one) in enumerate(zip(best, points, strict=True))]
