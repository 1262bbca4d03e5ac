"""What live pacing brought. Reads raw.pacing, raw.pacing_policy and timeline.rank_iteration; fills replay.paced.

A step lasts as long as on the mean rank. A pair of blocks counts where all ranks were in the arm that the block is of,
and all steps that count were recorded. The mean of the logarithms of the pairs' ratios has the interval of a mean.
Not handled: hooks of several ranks with different policies, of which the lowest rank's is reported.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from traceforge.stats import mean_interval
from traceforge.store.database import Store

_POLICIES = """
SELECT r.run_id, p.policy, p.foretold_ratio, p.foretold_ratio_low, p.foretold_ratio_high, p.foretold_verdict,
  COALESCE(p.first_step, 0) AS first_step, p.block_steps, COALESCE(p.settling_steps, 0) AS settling_steps
FROM raw.pacing_policy AS p
JOIN align.rank AS r USING (source_id)
QUALIFY ROW_NUMBER() OVER (PARTITION BY r.run_id ORDER BY r.rank) = 1
ORDER BY r.run_id
"""

_STEPS = """
SELECT t.iteration, ANY_VALUE(p.arm) AS arm, COUNT(DISTINCT p.arm) = 1 AND COUNT(p.arm) = COUNT(*) AS is_agreed,
  COALESCE(BOOL_OR(p.state = 'off'), false) AS is_off, COALESCE(BOOL_OR(p.state = 'dry_run'), false) AS is_dry_run,
  AVG(p.delay_ns) AS delay_ns, AVG(t.duration_ns) AS duration_ns
FROM timeline.rank_iteration AS t
JOIN align.rank AS r USING (run_id, rank)
LEFT JOIN raw.pacing AS p ON p.source_id = r.source_id AND p.iteration = t.iteration
WHERE t.run_id = ?
GROUP BY t.iteration
ORDER BY t.iteration
"""
_ENDS = ("throughput_ratio_low", "throughput_ratio_high", "foretold_ratio_low", "foretold_ratio_high")


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """One row a run that was paced."""
    for policy in store.query(_POLICIES).iter_rows(named=True):
        steps = store.query(_STEPS, [policy["run_id"]])
        foretold = {name: policy[name] for name in policy if name.startswith("foretold")}
        measured = measure(steps, policy["first_step"], policy["block_steps"], policy["settling_steps"])
        known = {"run_id": policy["run_id"], "policy": policy["policy"], **measured, **foretold}
        yield pl.DataFrame([{**known, "agrees": _agrees(known)}], infer_schema_length=None)


def measure(steps: pl.DataFrame, first: int, length: int | None, settling: int) -> dict[str, object]:
    """Pairs, their ratio, its interval and what the hook did, from the steps of a run."""
    changes = np.array(list(_changes(steps, first, length, settling)) if length else [], dtype=np.float64)
    interval = mean_interval(changes)
    paced, off = steps.filter(pl.col("arm") == "paced"), steps.filter("is_off")
    return {
        "is_dry_run": bool(steps["is_dry_run"].any()),
        "pairs": len(changes),
        "throughput_ratio": float(np.exp(changes.mean())) if len(changes) else None,
        "throughput_ratio_low": None if interval is None else float(np.exp(interval.low)),
        "throughput_ratio_high": None if interval is None else float(np.exp(interval.high)),
        "delay_ns": None if paced.is_empty() else round(float(paced["delay_ns"].to_numpy().mean())),
        "off_from_iteration": None if off.is_empty() else off["iteration"][0],
    }


def _changes(steps: pl.DataFrame, first: int, length: int, settling: int) -> Iterator[float]:
    """Logarithm of the ratio of throughputs, by pair of blocks."""
    since = pl.col("iteration") - first
    counted = steps.filter(
        pl.col("is_agreed"), ~pl.col("is_off"), pl.col("arm") != "warm_up", since % length >= settling
    )
    found = counted.group_by((since // length).alias("block"), maintain_order=True).agg(
        pl.col("arm").first(), pl.col("arm").n_unique().alias("arms"), pl.len().alias("steps"), pl.mean("duration_ns")
    )
    yield from _of_pairs([row for row in found.iter_rows(named=True) if row["arms"] == 1], length - settling)


def _of_pairs(blocks: Sequence[Mapping[str, Any]], whole: int) -> Iterator[float]:
    for before, after in pairwise(blocks):
        is_pair = before["block"] % 2 == 0 and after["block"] == before["block"] + 1
        if is_pair and before["arm"] != after["arm"] and before["steps"] == after["steps"] == whole:
            paced, unpaced = (before, after) if before["arm"] == "paced" else (after, before)
            yield float(np.log(unpaced["duration_ns"] / paced["duration_ns"]))


def _agrees(row: Mapping[str, object]) -> bool | None:
    known = [end for end in (row[name] for name in _ENDS) if isinstance(end, float)]
    if len(known) < len(_ENDS):
        return None
    low, high, foretold_low, foretold_high = known
    return low <= foretold_high and foretold_low <= high
