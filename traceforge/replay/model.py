"""A run as dense arrays. In: graph.arrival, graph.work, timeline.window. Out: `StepModel`, ready to replay.

Axes: iterations (I), positions (P, the most collectives of any iteration), ranks (R), kinds of work (K). Iterations
with fewer collectives are padded; `calls` says how many are real. All times are int64 ns.
"""

from dataclasses import dataclass, fields

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.replay.reference_rule import ReferenceRule
from traceforge.store.database import Store

Times = NDArray[np.int64]

_WINDOWS = """
SELECT w.iteration, w.rank, w.start_ns, w.end_ns
FROM timeline.window AS w
JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE w.run_id = ? AND NOT i.is_partial
  AND (w.run_id, w.iteration) IN (SELECT (run_id, iteration) FROM graph.work WHERE is_regular)
ORDER BY w.iteration, w.rank
"""

_ARRIVALS = """
SELECT a.iteration, a.rank, a.position, a.collective_id, GREATEST(a.arrival_ns, COALESCE(q.end_ns, a.arrival_ns)) AS
  started_ns, a.end_ns, a.awaited_position, a.queued_position
FROM graph.arrival AS a
LEFT JOIN graph.arrival AS q
  ON q.run_id = a.run_id AND q.iteration = a.iteration AND q.rank = a.rank AND q.position = a.queued_position
WHERE a.run_id = ?
ORDER BY a.iteration, a.rank, a.position
"""

_WORK = """
SELECT iteration, rank, position, part, phase, activity, duration_ns FROM graph.work WHERE run_id = ?
"""


@dataclass(frozen=True, slots=True)
class StepModel:
    """The regular iterations of one run. Arrays of a loaded model are read-only, as it is shared (`Store.once`).

    Attributes:
        iterations: iteration numbers, shape (I,).
        ranks: global ranks, shape (R,).
        start_ns: start of each iteration on each rank, aligned clock, shape (I, R).
        end_ns: end, likewise.
        calls: number of collectives of each iteration, shape (I,).
        group: number of the collective at each place, equal for ranks that meet in it, -1 where there is none,
            shape (I, P, R).
        transfer_ns: from the last start of the group (see `started`) to the end on this rank, shape (I, P, R).
        awaited: position whose end the rank awaits after each arrival, -1 for none, shape (I, P, R).
        kinds: (phase, activity) of each kind of work, length K.
        before_arrival_ns: own work before each arrival, and before the iteration's end at index `calls`, shape
            (I, P + 1, R, K).
        before_wait_ns: own work between each arrival and the wait after it, shape (I, P, R, K).
        queued: position of the collective that has to end on the rank's stream before this one starts, -1 for none,
            shape (I, P, R); None where streams are always free.
        rule: which durations count as on time.
    """

    iterations: NDArray[np.int64]
    ranks: NDArray[np.int64]
    start_ns: Times
    end_ns: Times
    calls: NDArray[np.int64]
    group: NDArray[np.int64]
    transfer_ns: Times
    awaited: NDArray[np.int64]
    kinds: tuple[tuple[str, str | None], ...]
    before_arrival_ns: Times
    before_wait_ns: Times
    queued: NDArray[np.int64] | None = None
    rule: ReferenceRule = ReferenceRule.MEDIAN


def started(arrival_ns: Times, ends_ns: Times, queued: NDArray[np.int64]) -> Times:
    """When collectives start on ranks, given when they arrive and when what their streams are busy with ends.

    Args:
        arrival_ns: shape (..., R).
        ends_ns: of all positions so far, shape (..., P, R).
        queued: position that has to end before, -1 for none, shape (..., R).
    """
    free = np.take_along_axis(ends_ns, np.maximum(queued, 0)[..., None, :], axis=-2)[..., 0, :]
    result: Times = np.where(queued >= 0, np.maximum(arrival_ns, free), arrival_ns)
    return result


def load_model(store: Store, run_id: int) -> StepModel | None:
    """The model of a run, or None where no iteration was recorded by all ranks."""
    windows = store.query(_WINDOWS, [run_id])
    if windows.is_empty():
        return None
    iterations, ranks = windows["iteration"].unique().sort(), windows["rank"].unique().sort()
    complete = windows.group_by("iteration").len().filter(pl.col("len") == len(ranks))["iteration"]
    iterations = iterations.filter(iterations.is_in(complete.implode()))
    if iterations.is_empty():
        return None
    index = _Axes(iterations, ranks)
    arrivals = index.add(store.query(_ARRIVALS, [run_id]))
    positions = int(arrivals["position"].to_numpy().max()) + 1 if not arrivals.is_empty() else 0
    shape = (len(iterations), positions, len(ranks))
    windows = index.add(windows)
    before_arrival, before_wait, kinds = _work(index.add(store.query(_WORK, [run_id])), shape)
    group = _dense(arrivals, "collective_id", shape, fill=-1)
    model = StepModel(
        iterations=iterations.to_numpy().astype(np.int64),
        ranks=ranks.to_numpy().astype(np.int64),
        start_ns=windows["start_ns"].to_numpy().reshape(len(iterations), len(ranks)),
        end_ns=windows["end_ns"].to_numpy().reshape(len(iterations), len(ranks)),
        calls=(group >= 0).any(axis=2).sum(axis=1),
        group=group,
        transfer_ns=_dense(_with_transfer(arrivals), "transfer_ns", shape, fill=0),
        awaited=_dense(arrivals, "awaited_position", shape, fill=-1),
        kinds=kinds,
        before_arrival_ns=before_arrival,
        before_wait_ns=before_wait,
        queued=None
        if arrivals["queued_position"].is_null().all()
        else _dense(arrivals, "queued_position", shape, fill=-1),
        rule=ReferenceRule(store.query("SELECT reference FROM meta.analysis").item()),
    )
    for field in fields(model):
        values = getattr(model, field.name)
        if isinstance(values, np.ndarray):
            values.flags.writeable = False
    return model


class _Axes:
    """Turns iteration and rank numbers into array places `i` and `r`, dropping rows of other iterations."""

    def __init__(self, iterations: pl.Series, ranks: pl.Series) -> None:
        self._iterations = pl.DataFrame({"iteration": iterations}).with_row_index("i")
        self._ranks = pl.DataFrame({"rank": ranks}).with_row_index("r")

    def add(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.join(self._iterations, on="iteration", maintain_order="left").join(
            self._ranks, on="rank", maintain_order="left"
        )


def _with_transfer(arrivals: pl.DataFrame) -> pl.DataFrame:
    last = pl.col("started_ns").max().over("collective_id")
    return arrivals.with_columns(transfer_ns=pl.col("end_ns") - last)


def _dense(frame: pl.DataFrame, column: str, shape: tuple[int, int, int], *, fill: int) -> NDArray[np.int64]:
    array = np.full(shape, fill, dtype=np.int64)
    values = frame[column].fill_null(fill).to_numpy()
    array[frame["i"].to_numpy(), frame["position"].to_numpy(), frame["r"].to_numpy()] = values
    return array


def _work(work: pl.DataFrame, shape: tuple[int, int, int]) -> tuple[Times, Times, tuple[tuple[str, str | None], ...]]:
    kinds = work.select("phase", "activity").unique().sort("phase", "activity", nulls_last=False)
    work = work.join(kinds.with_row_index("k"), on=["phase", "activity"], nulls_equal=True)
    iterations, positions, ranks = shape
    before_arrival = np.zeros((iterations, positions + 1, ranks, kinds.height), dtype=np.int64)
    before_wait = np.zeros((iterations, positions, ranks, kinds.height), dtype=np.int64)
    for part, target in (("before_arrival", before_arrival), ("before_wait", before_wait)):
        own = work.filter(pl.col("part") == part)
        place = tuple(own[name].to_numpy() for name in ("i", "position", "r", "k"))
        target[place] = own["duration_ns"].to_numpy()
    return before_arrival, before_wait, tuple((phase, activity) for phase, activity in kinds.iter_rows())
