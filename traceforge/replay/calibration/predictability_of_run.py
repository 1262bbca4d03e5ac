"""Mean waits of a run as `predictability` takes them. Reads timeline.* and align.clock."""

import numpy as np
import polars as pl

from traceforge.replay.calibration.measurement import Measurement, refused
from traceforge.replay.calibration.predictability import predictability
from traceforge.store.database import Store

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
    return predictability(table, float(store.query(_ERROR, [run_id]).item()))


def _longest_stretch(iterations: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> tuple[int, int]:
    """Where the longest run of consecutive numbers begins, and its length."""
    edges = np.concatenate(([0], np.flatnonzero(np.diff(iterations) != 1) + 1, [len(iterations)]))
    lengths = np.diff(edges)
    longest = int(np.argmax(lengths))
    return int(edges[longest]), int(lengths[longest])
