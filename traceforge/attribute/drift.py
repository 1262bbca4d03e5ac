"""Whether iterations grow longer while the job runs. In: judged iterations. Out: what the verdict says of it.

A slope of durations over iterations, whose interval allows for errors that follow one another. What changes its level
once is an episode and no drift, and single long iterations hide one rather than make one.
Not handled: iterations that grow shorter, as they do after a start; what grows, which the traces of a few steps seldom
tell.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from traceforge.stats import Trend, Values, clearest_step, slope
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_ns, format_share

# Of the ranks themselves: from the first to the last of ranks that never meet grows, however steady each is.
_DURATIONS = """
SELECT e.run_id, i.iteration, AVG(w.duration_ns) AS duration_ns
FROM attribute.excess AS e
JOIN timeline.iteration AS i USING (run_id, iteration)
JOIN timeline.rank_iteration AS w USING (run_id, iteration)
WHERE NOT i.is_warmup
GROUP BY ALL
ORDER BY ALL
"""

_STEP = (
    "See what grows with the iterations: memory and its fragmentation, a list or cache that is kept, sequence lengths, "
    "a log."
)


@dataclass(frozen=True, slots=True)
class Drift:
    """A rise of iteration time, ns from one iteration to the next, and over all judged as a share of their mean."""

    rise_ns: Trend
    total_ns: float
    share: float


def drifts_of(store: Store) -> Mapping[int, Drift]:
    """The drift of each run that has one."""
    judged = store.query(_DURATIONS).partition_by("run_id", as_dict=True)
    found = {
        run_id: drift_of(own["iteration"].to_numpy().astype(float), own["duration_ns"].to_numpy().astype(float))
        for (run_id,), own in judged.items()
    }
    return {int(run_id): drift for run_id, drift in found.items() if drift is not None}


def drift_of(iterations: Values, durations_ns: Values) -> Drift | None:
    """How iterations grow longer; None where they do not for certain, by much, and steadily; shape (count,) each."""
    count = len(iterations)
    if count < thresholds.DRIFT_ITERATIONS:
        return None
    rise, mean, span = slope(iterations, durations_ns), float(durations_ns.mean()), float(np.ptp(iterations))
    if rise.low * span < thresholds.DRIFT_SHARE * mean:
        return None
    steady = durations_ns - mean - rise.value * (iterations - iterations.mean())
    if clearest_step(durations_ns, thresholds.DRIFT_LEVEL_ITERATIONS).left.std() <= steady.std():
        return None
    return Drift(rise, rise.value * span, rise.value * span / mean)


def of_drift(row: dict[str, Any], drift: Drift | None) -> dict[str, object]:
    """What a drift changes in the verdict: nobody is named for it, and it is nothing that could be called healthy."""
    if drift is None or row["kind"] == "cannot_be_known":
        return {}
    each = f"{format_ns(drift.rise_ns.value)} from one to the next"
    interval = f"{format_ns(drift.rise_ns.low)} to {format_ns(drift.rise_ns.high)}"
    total = f"{format_ns(drift.total_ns)} ({format_share(drift.share)}) from the first judged to the last"
    explanation = f"Iterations grow longer by {each} ({interval}), {total}. {row['explanation']}"
    if row["kind"] == "finding":
        return {"explanation": explanation}
    return {
        "headline": f"Iterations grow longer, by {total}. {row['headline']}",
        "explanation": explanation,
        "next_step": f"{_STEP} {row['next_step']}",
        "confidence": "low",
    }
