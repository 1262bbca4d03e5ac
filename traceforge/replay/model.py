"""A run as dense arrays. In: graph.arrival, graph.work, timeline.window. Out: `StepModel`, ready to replay.

Axes: iterations (I), positions (P, the most collectives of any iteration), ranks (R), kinds of work (K). Iterations
with fewer collectives are padded; `calls` says how many are real. All times are int64 ns.
"""

from dataclasses import dataclass, fields

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.replay.reference_rule import ReferenceRule
from traceforge.replay.usual_pace import usual_iterations
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
  started_ns, a.end_ns, a.awaited_position, a.queued_position, a.behind_position, a.also_awaited
FROM graph.arrival AS a
LEFT JOIN graph.arrival AS q
  ON q.run_id = a.run_id AND q.iteration = a.iteration AND q.rank = a.rank AND q.position = a.queued_position
WHERE a.run_id = ?
ORDER BY a.iteration, a.rank, a.position
"""

_ROLES = "SELECT rank, role FROM timeline.role WHERE run_id = ?"

_HOSTS = "SELECT rank, host FROM align.rank WHERE run_id = ?"

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
        calls: number of positions of each iteration, shape (I,); that of its collectives where all ranks are in step.
        group: number of the collective at each place, equal for ranks that meet in it, -1 where there is none,
            shape (I, P, R).
        transfer_ns: from the last start of the group (see `started`) to the end on this rank, shape (I, P, R).
        awaited: position whose end the rank awaits after each arrival, -1 for none, shape (I, P, R). A rank may await
            one where it joins no collective: one of several that it arrived at together.
        kinds: (phase, activity) of each kind of work, length K.
        before_arrival_ns: own work before each arrival, and before the iteration's end at index `calls`, shape
            (I, P + 1, R, K).
        before_wait_ns: own work between each arrival and the wait after it, shape (I, P, R, K).
        queued: position of the collective that has to end on the rank's stream before this one starts, -1 for none,
            shape (I, P, R); None where streams are always free.
        behind: position of the collective before this one on the rank's stream, held up by it or not, -1 for none,
            shape (I, P, R); None where no two share a stream. Changed durations may make it hold this one up.
        role: number shared by ranks that do the same work (stages of a pipeline), shape (R,); None where all do.
        leaves_host: whether the collective joins ranks of several hosts, shape (I, P, R); None where all ranks have one
            role: replicas of a stage may lie differently.
        rule: which durations count as on time.
        usual: iterations of a rank that show its usual pace (`usual_pace`), shape (I, R); None where all do.
        usual_transfers: iterations whose transfers show their usual pace, shape (I,); None where all do.
        pauses: kinds of work that no role has by design, because a device idles meanwhile, shape (K,); None where that
            is not known.
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
    behind: NDArray[np.int64] | None = None
    role: NDArray[np.int64] | None = None
    leaves_host: NDArray[np.bool_] | None = None
    rule: ReferenceRule = ReferenceRule.MEDIAN
    usual: NDArray[np.bool_] | None = None
    usual_transfers: NDArray[np.bool_] | None = None
    pauses: NDArray[np.bool_] | None = None

    @property
    def has_unfelt_ends(self) -> bool:
        """Whether there are collectives whose end no rank awaits, so that it is not known who would."""
        felt = np.zeros(self.group.shape[:2], dtype=np.bool_)
        iteration, place, rank = np.nonzero(self.awaited >= 0)
        felt[iteration, self.awaited[iteration, place, rank]] = True
        return bool(((self.group >= 0).any(axis=2) & ~felt).any())


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
    last = arrivals.select(pl.col("position") + pl.col("also_awaited").list.len().fill_null(0)).to_series()
    positions = 0 if arrivals.is_empty() else int(last.to_numpy().max()) + 1
    shape = (len(iterations), positions, len(ranks))
    windows = index.add(windows)
    group, awaited = (_dense(arrivals, name, shape, fill=-1) for name in ("collective_id", "awaited_position"))
    _await_others(awaited, arrivals)
    calls = _positions(group, awaited)
    transfers = _dense(_with_transfer(arrivals), "transfer_ns", shape, fill=0)
    work = _with_ends(index.add(store.query(_WORK, [run_id])), arrivals, calls)
    before_arrival, before_wait, kinds = _work(work, shape)
    role = _roles(store, run_id, ranks)
    model = StepModel(
        iterations=iterations.to_numpy().astype(np.int64),
        ranks=ranks.to_numpy().astype(np.int64),
        start_ns=windows["start_ns"].to_numpy().reshape(len(iterations), len(ranks)),
        end_ns=windows["end_ns"].to_numpy().reshape(len(iterations), len(ranks)),
        calls=calls,
        group=group,
        transfer_ns=transfers,
        awaited=awaited,
        kinds=kinds,
        before_arrival_ns=before_arrival,
        before_wait_ns=before_wait,
        queued=_positions_before(arrivals, "queued_position", shape),
        behind=_positions_before(arrivals, "behind_position", shape),
        role=role,
        leaves_host=None if role is None else _leaves_host(arrivals, store.query(_HOSTS, [run_id]), shape),
        rule=ReferenceRule(store.value("SELECT reference FROM meta.analysis")),
        usual=usual_iterations(before_arrival.sum(axis=(1, 3)) + before_wait.sum(axis=(1, 3)), calls),
        usual_transfers=_usual_transfers(transfers, calls),
    )
    for field in fields(model):
        values = getattr(model, field.name)
        if isinstance(values, np.ndarray):
            values.flags.writeable = False
    return model


def _usual_transfers(transfer_ns: Times, calls: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    """Iterations whose transfers of all groups together show their usual pace, shape (I,)."""
    usual = usual_iterations(transfer_ns.sum(axis=(1, 2))[:, None], calls)
    return None if usual is None else usual[:, 0]


def _positions_before(arrivals: pl.DataFrame, name: str, shape: tuple[int, int, int]) -> NDArray[np.int64] | None:
    return None if arrivals[name].is_null().all() else _dense(arrivals, name, shape, fill=-1)


def _roles(store: Store, run_id: int, ranks: pl.Series) -> NDArray[np.int64] | None:
    of_rank = dict(store.rows(_ROLES, [run_id]))
    roles = np.array([of_rank.get(rank, 0) for rank in ranks], dtype=np.int64)
    return roles if len(np.unique(roles)) > 1 else None


def _leaves_host(arrivals: pl.DataFrame, hosts: pl.DataFrame, shape: tuple[int, int, int]) -> NDArray[np.bool_]:
    found = arrivals.join(hosts, on="rank", how="left", maintain_order="left").with_columns(
        leaves=(pl.col("host").n_unique().over("collective_id") > 1).cast(pl.Int64)
    )
    return _dense(found, "leaves", shape, fill=0) > 0


def _positions(group: NDArray[np.int64], awaited: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of positions up to the last one at which anything happens, shape (I,)."""
    used = ((group >= 0) | (awaited >= 0)).any(axis=2)
    places = np.arange(1, used.shape[1] + 1)
    result: NDArray[np.int64] = np.where(used, places, 0).max(axis=1, initial=0).astype(np.int64)
    return result


def _await_others(awaited: NDArray[np.int64], arrivals: pl.DataFrame) -> None:
    """Note the further meetings of a call where the rank awaits them, one after the other."""
    for i, position, rank, others in (
        arrivals.filter(pl.col("also_awaited").is_not_null()).select("i", "position", "r", "also_awaited").iter_rows()
    ):
        awaited[i, position + 1 : position + 1 + len(others), rank] = others


def _with_ends(work: pl.DataFrame, arrivals: pl.DataFrame, calls: NDArray[np.int64]) -> pl.DataFrame:
    """Work with what ranks do behind their last collective at the iteration's end, where others go on before."""
    last = arrivals.group_by("i", "r").agg(last=pl.col("position").max())
    ends = pl.DataFrame({"i": np.arange(len(calls)), "calls": calls}).cast({"i": pl.UInt32})
    joined = work.join(last, on=["i", "r"], how="left", maintain_order="left").join(
        ends, on="i", how="left", maintain_order="left"
    )
    is_end = pl.col("position") > pl.col("last").fill_null(-1)
    return joined.with_columns(position=pl.when(is_end).then("calls").otherwise("position"))


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
