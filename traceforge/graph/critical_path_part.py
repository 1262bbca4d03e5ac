"""What the pieces of the critical path consist of. Reads graph.critical_path and timeline.segment; fills
graph.critical_path_part.

Work of a rank is divided by what the rank did then; transfers, pauses and what is unknown stay whole.
"""

import polars as pl

from traceforge.store.database import Store
from traceforge.timeline.layers import covered_before

_PIECES = "SELECT run_id, piece, rank, kind, start_ns, duration_ns FROM graph.critical_path ORDER BY run_id, piece"

_SEGMENTS = """
SELECT CASE WHEN phase = 'runtime' THEN activity ELSE phase END AS cause, start_ns, duration_ns
FROM timeline.segment
WHERE run_id = ? AND rank = ?
ORDER BY start_ns
"""


def rows(store: Store) -> pl.DataFrame:
    """One row a (piece, cause) with time in it."""
    pieces = store.query(_PIECES)
    parts = [pieces.filter(pl.col("kind") != "work").with_columns(cause=pl.col("kind"))]
    for (run_id, rank), own in pieces.filter(pl.col("kind") == "work").group_by("run_id", "rank", maintain_order=True):
        segments = store.query(_SEGMENTS, [run_id, rank])
        for (cause,), stretches in segments.group_by("cause", maintain_order=True):
            parts.append(
                own.with_columns(
                    cause=pl.lit(cause, dtype=pl.String), duration_ns=pl.Series(_overlap(stretches, own))
                ).select(parts[0].columns)
            )
    found = pl.concat(parts).filter(pl.col("duration_ns") > 0).sort("run_id", "piece", "cause")
    return found.select("run_id", "piece", "cause", "duration_ns")


def _overlap(stretches: pl.DataFrame, pieces: pl.DataFrame) -> pl.Series:
    starts, durations = stretches["start_ns"].to_numpy(), stretches["duration_ns"].to_numpy()
    since = pieces["start_ns"].to_numpy()
    until = since + pieces["duration_ns"].to_numpy()
    return pl.Series(covered_before(starts, durations, until) - covered_before(starts, durations, since))
