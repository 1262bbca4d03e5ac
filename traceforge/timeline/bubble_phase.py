"""How much of the phases of communication is bubble. Reads what timeline.bubble rests on; fills timeline.bubble_phase.

Not handled: messages and collectives of one stage that run at once; that time is the collectives'.
"""

from collections.abc import Iterator

import polars as pl

from traceforge.store.database import Store
from traceforge.timeline.pipeline_run import read_pipeline_run

_SCHEMA = {"run_id": pl.Int32, "iteration": pl.Int32, "rank": pl.Int32, "phase": pl.String, "duration_ns": pl.Int64}


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """Three rows an iteration of a rank whose pipeline is known."""
    for (run_id,) in store.query("SELECT DISTINCT run_id FROM timeline.bubble ORDER BY run_id").iter_rows():
        run = store.once(read_pipeline_run, int(run_id))
        if run is None:
            continue
        for rank, times in sorted(run.times.items()):
            for phase, spent in times.exchanging.items():
                frame = pl.DataFrame({"iteration": run.iterations, "duration_ns": spent}).with_columns(
                    run_id=pl.lit(run_id), rank=pl.lit(rank), phase=pl.lit(phase)
                )
                yield frame.select(pl.col(name).cast(kind) for name, kind in _SCHEMA.items())
