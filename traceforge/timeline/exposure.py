"""How much of each collective its rank's compute hid. Reads timeline.arrival, collective and segment; fills
timeline.exposure.

A collective is hidden while its rank computes and exposed otherwise; it waits until the last arrival and transfers
after it. Where members have no trace nobody knows which of the two it does after the last arrival that is known. Each
counts by itself: two collectives exposed at once count twice, unlike in timeline.phase.
"""

import numpy as np
import polars as pl

from traceforge.store.database import Store
from traceforge.timeline.layers import Times, covered_before

_ARRIVALS = """
SELECT a.run_id, a.collective_id, a.rank, a.arrival_ns, a.end_ns, c.last_arrival_ns, c.complete
FROM timeline.arrival AS a
JOIN timeline.collective AS c USING (run_id, collective_id)
WHERE a.iteration IS NOT NULL
ORDER BY a.run_id, a.rank, a.collective_id
"""

_COMPUTE = """
SELECT start_ns, duration_ns FROM timeline.segment WHERE run_id = ? AND rank = ? AND phase = 'compute' ORDER BY start_ns
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


def rows(store: Store) -> pl.DataFrame:
    """One row a (collective, rank) inside an iteration."""
    frames = []
    for (run_id, rank), own in store.query(_ARRIVALS).group_by("run_id", "rank", maintain_order=True):
        compute = store.arrays(_COMPUTE, [run_id, rank])
        arrival, end, last = (own[name].to_numpy() for name in ("arrival_ns", "end_ns", "last_arrival_ns"))
        all_arrived = np.clip(last, arrival, np.maximum(arrival, end))
        computed = [_before(compute, instants) for instants in (arrival, all_arrived, np.maximum(arrival, end))]
        after = np.maximum(arrival, end) - all_arrived - (computed[2] - computed[1])
        complete = own["complete"].to_numpy()
        frames.append(
            own.select("run_id", "collective_id", "rank").with_columns(
                exposed_wait_ns=pl.Series(all_arrived - arrival - (computed[1] - computed[0])),
                exposed_transfer_ns=pl.Series(np.where(complete, after, 0)),
                exposed_unsplit_ns=pl.Series(np.where(complete, 0, after)),
                hidden_ns=pl.Series(computed[2] - computed[0]),
            )
        )
    if not frames:
        return pl.DataFrame(schema=_SCHEMA)
    return pl.concat(frames).select(pl.col(name).cast(kind) for name, kind in _SCHEMA.items())


def _before(compute: dict[str, Times], instants_ns: Times) -> Times:
    return covered_before(compute["start_ns"], compute["duration_ns"], instants_ns)
