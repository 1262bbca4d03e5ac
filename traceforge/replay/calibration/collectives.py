"""The collectives of a run as `arrival_spread` takes them. Reads timeline.*, graph.*, align.clock.

Taken are complete collectives of iterations of the commonest length, in which all ranks issue the same ones; but no
all-to-alls that are known to be uneven: more tokens make them longer and their ranks late, which is no coupling.
"""

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.replay.calibration.arrival_spread import Collectives, spread_coupling
from traceforge.replay.calibration.measurement import Measurement, mean_iteration_ns, refused
from traceforge.replay.calibration.own_work_spread import own_work_waits
from traceforge.replay.model import StepModel, load_model
from traceforge.replay.places import load_places
from traceforge.replay.routing import find_routing
from traceforge.store.database import Store
from traceforge.thresholds import replay as thresholds

_COLLECTIVES = """
WITH met AS (
  SELECT a.collective_id, AVG(a.wait_ns) AS wait_ns, MAX(k.residual_ns) AS error_ns
  FROM timeline.arrival AS a
  JOIN align.clock AS k USING (run_id, rank)
  WHERE a.run_id = ?
  GROUP BY ALL
)
SELECT c.collective_id, c.iteration, c.communicator_id, c.op, c.size_bytes, c.transfer_ns, m.wait_ns, m.error_ns
FROM timeline.collective AS c
JOIN timeline.iteration AS i USING (run_id, iteration)
JOIN met AS m USING (collective_id)
WHERE c.run_id = ? AND c.complete AND NOT i.is_partial AND NOT i.is_warmup
  AND c.op NOT IN ('send', 'recv', 'send_recv')
"""


def measure_spread(store: Store, run_id: int) -> Measurement:
    """Measure arrival_spread."""
    model = store.once(load_model, run_id)
    found = store.query(_COLLECTIVES, [run_id, run_id])
    if model is None or found.is_empty() or not model.calls.any():
        return refused(0, "No iteration holds collectives whose every member was recorded and is on one clock.")
    local = _local(of_commonest_length(model))
    uneven = _uneven(store, run_id, model) if "all_to_all" in found["op"] else []
    rows = found.join(local, on="collective_id").filter(~pl.col("collective_id").is_in(uneven)).sort("collective_id")
    if rows.is_empty():
        return refused(0, "All collectives are all-to-alls that take longer the more their busiest rank sends.")
    place = rows.select(pl.struct("communicator_id", "op", "size_bytes", "position").rank("dense")).to_series()
    collectives = Collectives(
        iteration=rows["iteration"].to_numpy().astype(np.int64),
        place=place.to_numpy().astype(np.int64),
        **{
            name: rows[name].to_numpy().astype(np.float64)
            for name in ("transfer_ns", "wait_ns", "local_ns", "error_ns")
        },
    )
    measured = spread_coupling(collectives)
    unbounded = measured.high
    if unbounded is None:
        return measured
    measured = replace(measured, high=max(min(unbounded, most_growth(rows)), measured.coefficient or 0.0))
    if measured.coefficient is None:
        return measured
    waited = float(rows["wait_ns"].sum()) / rows["iteration"].n_unique()
    step = mean_iteration_ns(store, run_id)
    scope = ", ".join(sorted({op or "unnamed" for op in rows["op"]}))
    largest = max(unbounded, -float(measured.low or 0.0))
    return replace(measured, gain_bound=largest * waited / step, scope=scope)


def most_growth(rows: pl.DataFrame) -> float:
    """As much of the mean wait as transfers can have grown by: all that the slowest took beyond a clean one.

    Transfers of one size on the same ranks take about as long wherever they stand, if nobody waits; so those that
    ranks hardly wait for bound how much of the others is growth. Of a size that stands in one place only all may be.

    Args:
        rows: collectives with communicator_id, op, size_bytes, position, transfer_ns, wait_ns.
    """
    kind = ["communicator_id", "op", "size_bytes"]
    places = rows.group_by(*kind, "position").agg(
        pl.mean("transfer_ns", "wait_ns"),
        clean_ns=pl.quantile("transfer_ns", thresholds.TRANSFER_QUANTILE),
        waited_ns=pl.sum("wait_ns"),
    )
    long = places.filter(pl.col("waited_ns") > thresholds.NOTICEABLE_WAITS * pl.col("waited_ns").sum())
    part = thresholds.CLEAN_PART
    pairs = long.join(places.select(*kind, "clean_ns", pl.col("wait_ns").alias("other_ns")), on=kind, nulls_equal=True)
    growth = (pl.col("transfer_ns") - part * pl.col("clean_ns_right")) / (pl.col("wait_ns") - part * pl.col("other_ns"))
    bounds = [
        *long.select(pl.col("transfer_ns") / pl.col("wait_ns")).to_series(),
        *pairs.filter(pl.col("other_ns") < pl.col("wait_ns")).select(growth).to_series(),
    ]
    return max(0.0, min(bounds, default=np.inf))


def _uneven(store: Store, run_id: int, model: StepModel) -> list[int]:
    """All-to-alls of which some rank sends or receives another amount than the others."""
    routing = find_routing(load_places(store, run_id, model), model.group, model.transfer_ns)
    if routing is None:
        return []
    found: list[int] = np.unique(model.group[routing.known & (routing.transfer_ns != model.transfer_ns)]).tolist()
    return found


def of_commonest_length(model: StepModel) -> StepModel:
    """The iterations with as many collectives as most have that have any: steps that gather gradients have none."""
    lengths, count = np.unique(model.calls[model.calls > 0], return_counts=True)
    calls = int(lengths[np.argmax(count)])
    alike: NDArray[np.bool_] = model.calls == calls
    return replace(
        model,
        iterations=model.iterations[alike],
        start_ns=model.start_ns[alike],
        end_ns=model.end_ns[alike],
        calls=model.calls[alike],
        group=model.group[alike, :calls],
        transfer_ns=model.transfer_ns[alike, :calls],
        awaited=model.awaited[alike, :calls],
        before_arrival_ns=model.before_arrival_ns[alike, : calls + 1],
        before_wait_ns=model.before_wait_ns[alike, :calls],
    )


def _local(model: StepModel) -> pl.DataFrame:
    """Local mean wait and position of every collective: collective_id, position, local_ns."""
    waits = own_work_waits(model)
    collective, first = np.unique(model.group, return_index=True)
    _, place, _ = np.unravel_index(first, model.group.shape)
    frame = pl.DataFrame({"collective_id": collective, "position": place, "local_ns": waits.ravel()[first]})
    return frame.filter(pl.col("collective_id") >= 0)
