"""Simulated histories: how often a change is seen that is none, and how soon one that is.

    python -m tests.history.simulated          # judges the thresholds on the seeds that tests use; writes RESULTS.json
    python -m tests.history.simulated --tune   # the same on the seeds that they were chosen on; writes nothing

A history is 60 runs of one metric around 100 with a spread of 1 between runs, of four kinds: normal; heavy-tailed
(Student's t with 3 degrees, scaled to the same variance); normal with 4 % of runs slower by 5 to 20 spreads; correlated
(each run keeps 0.3 of how far the one before was off). A step is 6 spreads from run 30 on.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traceforge.history.steps import steps

KINDS = ("normal", "heavy_tailed", "with_outliers", "correlated")
RUNS, CHANGED_AT, STEP_SPREADS = 60, 30, 6.0
TUNING, TESTING = 10_000, 20_000
RESULTS = Path(__file__).with_name("RESULTS.json")


def history(kind: str, seed: int, step_spreads: float = 0.0) -> NDArray[np.float64]:
    """The runs of one simulated history."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    noise = rng.normal(size=RUNS)
    if kind == "heavy_tailed":
        noise = rng.standard_t(3, size=RUNS) / np.sqrt(3)
    elif kind == "with_outliers":
        noise = noise + (rng.random(RUNS) < 0.04) * rng.uniform(5, 20, size=RUNS)
    elif kind == "correlated":
        for at in range(1, RUNS):
            noise[at] = 0.3 * noise[at - 1] + np.sqrt(1 - 0.3**2) * noise[at]
    return 100 + noise + step_spreads * (np.arange(RUNS) >= CHANGED_AT)


def false_alarm_share(kind: str, first_seed: int, histories: int) -> float:
    """The share of histories without a step in which any change is seen, by any of their 60 runs."""
    return sum(bool(steps(history(kind, first_seed + at))) for at in range(histories)) / histories


def found_in_time_share(kind: str, first_seed: int, histories: int, step_spreads: float = STEP_SPREADS) -> float:
    """The share of histories whose step is certain with its third run, and dated to its first or a neighbour of it."""
    return sum(_is_found(history(kind, first_seed + at, step_spreads)) for at in range(histories)) / histories


def _is_found(values: NDArray[np.float64]) -> bool:
    return any(abs(step.place - CHANGED_AT) <= 1 for step in steps(values[: CHANGED_AT + 3]))


def _measured(first_seed: int, histories: int) -> Iterator[tuple[str, dict[str, float]]]:
    for kind in KINDS:
        found = {f"found_{spreads}_spreads": found_in_time_share(kind, first_seed, histories // 4, spreads)
                 for spreads in (3, 4, 5, 6, 8)}  # fmt: skip
        yield kind, {"false_alarms": false_alarm_share(kind, first_seed, histories), **found}


if __name__ == "__main__":
    is_tuning = "--tune" in sys.argv
    count = 1_000
    results = dict(_measured(TUNING if is_tuning else TESTING, count))
    text = json.dumps({"histories": count, "runs": RUNS, "by_kind": results}, indent=1)
    print(text)
    if not is_tuning:
        RESULTS.write_text(text + "\n", encoding="utf-8")
