"""Can a rank know that it will be early? Reads timeline.*, align.clock; measures how far waits follow the last ones.

    y = wait of a rank in an iteration less the mean over ranks;  coefficient = corr(y, y one iteration before)

Waits beyond what 95 % of them stay below count as that much, so that a single pause does not decide.
A rank that always waits and one that waits in turns of several iterations are both predictable. `lasting_share`
separates them: the share of the variation of y that lies between ranks for good (intraclass correlation).
"""

from dataclasses import replace

import numpy as np
import polars as pl

from traceforge.replay.calibration.measurement import Amounts, Measurement, Numbers, block_of, measured, refused
from traceforge.store.database import Store
from traceforge.thresholds import replay as thresholds
from traceforge.thresholds.align import RESOLUTION_RESIDUALS
from traceforge.units import format_ns, format_share

_WAITS = """
SELECT a.iteration, a.rank, AVG(a.wait_ns) AS wait_ns
FROM timeline.arrival AS a
JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE a.run_id = ? AND NOT i.is_partial AND NOT i.is_warmup
GROUP BY ALL
ORDER BY a.iteration, a.rank
"""
_ERROR = "SELECT COALESCE(MAX(residual_ns), 0) FROM align.clock WHERE run_id = ?"


def measure_predictability(store: Store, run_id: int) -> Measurement:
    """Measure predictability over the longest stretch of iterations in which every rank met others."""
    waits = store.query(_WAITS, [run_id])
    if waits.is_empty():
        return refused(0, "No iteration holds collectives of aligned ranks.")
    ranks = waits["rank"].n_unique()
    whole = waits.filter(pl.len().over("iteration") == ranks)
    iterations = whole["iteration"].unique().sort().to_numpy()
    if not len(iterations):
        return refused(0, "In no iteration every rank met others.")
    first, length = _longest_stretch(iterations)
    chosen = whole.filter(pl.col("iteration").is_between(int(iterations[first]), int(iterations[first + length - 1])))
    table = chosen["wait_ns"].to_numpy().astype(np.float64).reshape(length, ranks)
    return predictability(table, float(store.value(_ERROR, [run_id])))


def _longest_stretch(iterations: Numbers) -> tuple[int, int]:
    """Where the longest run of consecutive numbers begins, and its length."""
    edges = np.concatenate(([0], np.flatnonzero(np.diff(iterations) != 1) + 1, [len(iterations)]))
    lengths = np.diff(edges)
    longest = int(np.argmax(lengths))
    return int(edges[longest]), int(lengths[longest])


def predictability(wait_ns: Amounts, error_ns: float) -> Measurement:
    """Correlation of ranks' waits with those of the iteration before.

    Args:
        wait_ns: mean wait over the iteration's collectives, shape (I, R), consecutive iterations.
        error_ns: how unsure the clocks are against one another.
    """
    iterations, ranks = wait_ns.shape
    if iterations <= thresholds.LEAST_ITERATIONS or ranks < 2:
        few = f"Waits of {ranks} ranks in {iterations} iterations"
        return refused(wait_ns.size, f"{few}; more than {thresholds.LEAST_ITERATIONS} of two are needed.")
    relative = (wait_ns - wait_ns.mean(axis=1, keepdims=True)).astype(np.float64)
    if relative.std() < RESOLUTION_RESIDUALS * error_ns or not relative.any():
        return refused(
            wait_ns.size,
            f"Waits differ between ranks by {format_ns(float(relative.std()))}, less than three times the "
            f"uncertainty of the clocks ({format_ns(error_ns)}).",
        )
    bound = np.quantile(np.abs(relative), thresholds.ORDINARY_WAIT_QUANTILE)
    held = np.clip(relative, -bound, bound)
    before, after = held[:-1], held[1:]
    block = block_of(np.arange(len(before)))
    blocks = int(block.max()) + 1
    products = np.stack([(a * b).sum(axis=1) for a, b in ((before, after), (before, before), (after, after))])
    whole = products.sum(axis=1)
    # Delete-a-block jackknife.
    replicates = np.array([_correlation(*(whole - products[:, block == n].sum(axis=1))) for n in range(blocks)])
    error = float(np.sqrt((blocks - 1) / blocks * np.sum((replicates - replicates.mean()) ** 2)))
    found = _correlation(*whole)
    share = format_share(max(lasting_share(relative), 0.0))
    return replace(
        measured(found, error, blocks, wait_ns.size, lambda end: min(max(end, -1.0), 1.0)),
        scope=f"{iterations} iterations of {ranks} ranks",
        caveat=f" {share} of the differences between ranks last for the whole run.",
    )


def lasting_share(relative: Amounts) -> float:
    """Intraclass correlation of ranks (one-way), at most 1; shape (I, R). Below 0: ranks differ less than by chance."""
    iterations, ranks = relative.shape
    between = iterations * float(relative.mean(axis=0).var(ddof=1))
    within = float(((relative - relative.mean(axis=0)) ** 2).sum()) / (ranks * (iterations - 1))
    total = between + (iterations - 1) * within
    return (between - within) / total if total > 0 else 0.0


def _correlation(product: float, square: float, other: float) -> float:
    return float(product / np.sqrt(square * other)) if square * other > 0 else 0.0
