"""How much of each collective its rank's compute hid. Reads timeline.arrival, collective and segment; fills
timeline.exposure.

A collective is hidden while its rank computes and exposed otherwise; it waits until the last arrival and transfers
after it. Where members have no trace nobody knows which of the two it does after the last arrival that is known. Each
counts by itself: two collectives exposed at once count twice, unlike in timeline.phase.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.align.rank_batches import Parts, RankBatch, rank_batches
from traceforge.store.database import Store
from traceforge.timeline.layers import Times, covered_before

_ARRIVALS = """
SELECT a.run_id, a.collective_id, a.rank, a.arrival_ns, a.end_ns, c.last_arrival_ns, c.complete
FROM timeline.arrival AS a
JOIN timeline.collective AS c USING (run_id, collective_id)
WHERE a.run_id = $1 AND a.rank BETWEEN $2 AND $3 AND a.iteration IS NOT NULL
ORDER BY a.rank, a.collective_id
"""

_COMPUTE = """
SELECT rank, start_ns, duration_ns
FROM timeline.segment
WHERE run_id = $1 AND rank BETWEEN $2 AND $3 AND phase = 'compute'
ORDER BY rank, start_ns
"""

_SCHEMA = {
    "run_id": pl.Int32,
    "collective_id": pl.Int64,
    "rank": pl.Int32,
    "exposed_wait_ns": pl.Int64,
    "exposed_transfer_ns": pl.Int64,
    "exposed_unsplit_ns": pl.Int64,
    "hidden_ns": pl.Int64,
}


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """One row a (collective, rank) inside an iteration, some ranks at a time."""
    for batch in rank_batches(store):
        every = batch.by_rank(store, _ARRIVALS).frame
        if every.is_empty():
            continue  # and there may be millions of stretches of work
        compute = batch.by_rank(store, _COMPUTE)
        arrival, end, last = (every[name].to_numpy() for name in ("arrival_ns", "end_ns", "last_arrival_ns"))
        until = np.maximum(arrival, end)
        all_arrived = np.clip(last, arrival, until)
        computed = _computed(batch, every["rank"].to_numpy(), compute, (arrival, all_arrived, until))
        after = until - all_arrived - (computed[2] - computed[1])
        complete = every["complete"].to_numpy()
        found = every.select("run_id", "collective_id", "rank").with_columns(
            exposed_wait_ns=pl.Series(all_arrived - arrival - (computed[1] - computed[0])),
            exposed_transfer_ns=pl.Series(np.where(complete, after, 0)),
            exposed_unsplit_ns=pl.Series(np.where(complete, 0, after)),
            hidden_ns=pl.Series(computed[2] - computed[0]),
        )
        yield found.select(pl.col(name).cast(kind) for name, kind in _SCHEMA.items())


def _computed(
    batch: RankBatch, ranks: NDArray[np.int32], compute: Parts, instants_ns: tuple[Times, ...]
) -> list[Times]:
    """How long the rank of each row has computed before instants, ns.

    Args:
        ranks: of each row, ascending.
        compute: when each rank computes.
        instants_ns: of each row.
    """
    result = [np.zeros(len(ranks), dtype=np.int64) for _ in instants_ns]
    for one in batch.ranks:
        rows = slice(*np.searchsorted(ranks, [one.rank, one.rank + 1]))
        starts, durations = (compute.of(one.rank)[name].to_numpy() for name in ("start_ns", "duration_ns"))
        for before, instants in zip(result, instants_ns, strict=True):
            before[rows] = covered_before(starts, durations, instants[rows])
    return result
