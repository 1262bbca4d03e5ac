"""A rank's own work between collectives. Reads graph.arrival, timeline.segment and window; fills graph.work.

The segments of a rank are integrated to running totals by (phase, activity); each stretch is a difference of two
totals, so the stretches add up to the ns. Iterations without any collective are one stretch.
"""

from collections.abc import Iterator

import polars as pl

from traceforge.store.database import Store
from traceforge.timeline.layers import covered_before

_ARRIVALS = """
SELECT w.run_id, w.rank, w.iteration, w.start_ns, w.end_ns AS window_end_ns, a.position, a.arrival_ns,
  a.awaited_position, b.end_ns AS awaited_end_ns, COALESCE(a.is_regular, r.is_regular, true) AS is_regular
FROM timeline.window AS w
LEFT JOIN graph.arrival AS a USING (run_id, iteration, rank)
LEFT JOIN graph.arrival AS b
  ON b.run_id = a.run_id AND b.iteration = a.iteration AND b.rank = a.rank AND b.position = a.awaited_position
LEFT JOIN (SELECT DISTINCT run_id, iteration, is_regular FROM graph.arrival) AS r
  ON r.run_id = w.run_id AND r.iteration = w.iteration
WHERE (w.run_id, w.iteration) IN (SELECT (run_id, iteration) FROM graph.arrival)
  OR (w.run_id, w.iteration) NOT IN (
    SELECT (run_id, iteration) FROM timeline.arrival WHERE iteration IS NOT NULL
  )
ORDER BY w.run_id, w.rank, w.iteration, a.position
"""

_SEGMENTS = """
SELECT phase, activity, start_ns, duration_ns FROM timeline.segment WHERE run_id = ? AND rank = ? ORDER BY start_ns
"""


def rows(store: Store) -> pl.DataFrame:
    """One row a (rank, iteration, position, part, phase, activity) with work in it."""
    parts = []
    for (run_id, rank), arrivals in store.query(_ARRIVALS).group_by("run_id", "rank", maintain_order=True):
        stretches = _stretches(arrivals)
        segments = store.query(_SEGMENTS, [run_id, rank])
        for (phase, activity), own in segments.group_by("phase", "activity", maintain_order=True):
            parts.append(
                _amounts(stretches, own, is_exposed=phase in ("transfer", "wait", "communication")).with_columns(
                    run_id=pl.lit(run_id),
                    rank=pl.lit(rank),
                    phase=pl.lit(phase, dtype=pl.String),
                    activity=pl.lit(activity, dtype=pl.String),
                )
            )
    if not parts:
        return pl.DataFrame()
    return (
        pl.concat(parts)
        .filter(pl.col("duration_ns") > 0)
        .sort("run_id", "iteration", "rank", "position", "part", "phase", "activity")
    )


def _stretches(arrivals: pl.DataFrame) -> pl.DataFrame:
    """Stretches of one rank: iteration, position, part, from_ns, until_ns, is_regular."""
    names = ["iteration", "position", "part", "from_ns", "until_ns", "is_regular"]
    return pl.DataFrame(list(_each_stretch(arrivals)), schema=names, orient="row")


def _each_stretch(arrivals: pl.DataFrame) -> Iterator[tuple[int, int, str, int, int, bool]]:
    for (iteration,), frame in arrivals.group_by("iteration", maintain_order=True):
        number, position, is_regular = int(str(iteration)), 0, bool(frame["is_regular"][0])
        reached = int(frame["start_ns"][0])
        for position_, arrival, awaited_end in frame.select("position", "arrival_ns", "awaited_end_ns").iter_rows():
            if position_ is None:
                break
            yield number, position_, "before_arrival", reached, arrival, is_regular
            position, reached = position_ + 1, arrival
            if awaited_end is not None:
                yield number, position_, "before_wait", reached, awaited_end, is_regular
                reached = max(reached, awaited_end)
        yield number, position, "before_arrival", reached, int(frame["window_end_ns"][0]), is_regular


def _amounts(stretches: pl.DataFrame, own: pl.DataFrame, *, is_exposed: bool) -> pl.DataFrame:
    starts, durations = own["start_ns"].to_numpy(), own["duration_ns"].to_numpy()
    total = covered_before(starts, durations, stretches["until_ns"].to_numpy()) - covered_before(
        starts, durations, stretches["from_ns"].to_numpy()
    )
    if is_exposed:
        # Before a wait, exposed communication is the wait itself.
        total[(stretches["part"] == "before_wait").to_numpy()] = 0
    return stretches.select("iteration", "position", "part", "is_regular").with_columns(duration_ns=pl.Series(total))
