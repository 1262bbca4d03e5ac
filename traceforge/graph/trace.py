"""Which rank an execution trace belongs to. Reads raw.chakra_file, meta.source and align.rank; fills graph.trace.

Writers rarely state the rank. What is stated counts first; then the process id, if exactly one timeline of the run has
it; then the only number in which the names of the files of one kind differ. Not handled: ranks by a pattern that
a person gives.
"""

from collections import Counter
from collections.abc import Iterator

import polars as pl

from traceforge.align.trace_ranks import ranks_by_number
from traceforge.store.database import Store

_TRACES = """
SELECT s.run_id, f.source_id, f.part, f.format, s.kind, s.path, f.process_id, s.rank, s.rank_origin
FROM raw.chakra_file AS f
JOIN meta.source AS s USING (source_id)
ORDER BY s.run_id, f.source_id, f.part
"""
_TIMELINES = """
SELECT r.run_id, r.rank, r.source_id, ARRAY_AGG(DISTINCT TRY_CAST(t.process AS BIGINT)) AS processes
FROM align.rank AS r
LEFT JOIN raw.track AS t USING (source_id)
GROUP BY r.run_id, r.rank, r.source_id
ORDER BY r.run_id, r.rank
"""


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """One row a trace."""
    timelines = store.query(_TIMELINES)
    for (run_id,), own in store.query(_TRACES).group_by("run_id", maintain_order=True):
        yield _of_run(own, timelines.filter(pl.col("run_id") == run_id))


def _of_run(traces: pl.DataFrame, timelines: pl.DataFrame) -> pl.DataFrame:
    by_process = _ranks_by_process(timelines)
    by_number = ranks_by_number(traces.unique("source_id", maintain_order=True))
    found = []
    for row in traces.iter_rows(named=True):
        rank, origin = row["rank"], row["rank_origin"]
        if rank is None and row["process_id"] in by_process:
            rank, origin = by_process[row["process_id"]], "process_id"
        elif rank is None and row["source_id"] in by_number:
            rank, origin = by_number[row["source_id"]], "file_number"
        elif rank is None and traces["source_id"].n_unique() == 1 and timelines.height <= 1:
            rank, origin = (timelines["rank"][0] if timelines.height else 0), "only_file"
        found.append({"rank": rank, "rank_origin": origin})
    ranks = pl.DataFrame(found, schema={"rank": pl.Int32, "rank_origin": pl.String})
    timeline_of = timelines.select("rank", timeline_source_id="source_id")
    named = traces.drop("rank", "rank_origin").hstack(ranks)
    joined = named.join(timeline_of, on="rank", how="left", maintain_order="left")
    return joined.drop("kind", "path", "process_id")


def _ranks_by_process(timelines: pl.DataFrame) -> dict[int, int]:
    """Rank by process id, of processes that stand in one timeline only."""
    pairs = [
        (process, rank)
        for rank, processes in timelines.select("rank", "processes").iter_rows()
        for process in processes
        if process
    ]
    often = Counter(process for process, _ in pairs)
    return {process: rank for process, rank in pairs if often[process] == 1}
