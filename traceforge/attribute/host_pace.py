"""How fast hosts alone would go. Reads raw events, align.* and the ledger's excess; fills attribute.host_pace.

Idea: what a host does in its step, less what may be a wait, is time that no device and no network can save. It is read
only where a run loses time at all, and of at most 64 ranks, since it takes another look at their events.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from traceforge.align.clock_course import read_courses
from traceforge.align.rank_batches import RankBatch, rank_batches
from traceforge.attribute.ledger.blame_of_run import blame_of_run
from traceforge.attribute.ledger.ledger_input import ON_DEVICE, load_ledger_input
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.timeline.host_work import explained, host_work
from traceforge.timeline.layers import Intervals, Times, covered_before, intersect, join
from traceforge.timeline.rank_events import NO_EVENTS, read_events

_STEPS = """
SELECT rank, iteration, raw_start_ns, raw_end_ns
FROM align.step
WHERE run_id = $1 AND rank BETWEEN $2 AND $3 AND is_marked
ORDER BY rank, raw_start_ns
"""

_MOST_RANKS = 64

_SCHEMA = {
    "run_id": pl.Int32,
    "rank": pl.Int32,
    "iteration": pl.Int32,
    "step_ns": pl.Int64,
    "host_ns": pl.Int64,
    "input_ns": pl.Int64,
    "unnamed_ns": pl.Int64,
}


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """One row a step of each rank that is looked at."""
    asked = {run_id: _ranks(store, run_id) for run_id in store.run_ids()}
    for batch in rank_batches(store):
        chosen = [one for one in batch.ranks if one.has_device and one.rank in asked[batch.run_id]]
        if chosen:
            yield _of_batch(store, RankBatch(batch.run_id, chosen, batch.most_events))


def _ranks(store: Store, run_id: int) -> frozenset[int]:
    """Ranks to look at: none of a run that loses no time, nor one whose device waits for no other's."""
    run = store.once(load_ledger_input, run_id)
    if run is None or len(run.model.ranks) < 2 or not store.value(ON_DEVICE, [run_id]):
        return frozenset()
    lost_ns = float(store.once(blame_of_run, run_id).sum())
    lasted_ns = float((run.model.end_ns.max(axis=1) - run.model.start_ns.max(axis=1)).sum())
    ranks = run.model.ranks if lost_ns >= thresholds.REPORTED_SHARE * lasted_ns else run.model.ranks[:0]
    step = max(1, -(-len(ranks) // _MOST_RANKS))
    return frozenset(ranks[::step].tolist())


def _of_batch(store: Store, batch: RankBatch) -> pl.DataFrame:
    steps, courses = batch.by_rank(store, _STEPS), read_courses(store, batch.run_id)
    found = []
    for one, events in read_events(store, batch):
        own = steps.of(one.rank)
        if own.is_empty():
            continue
        edges = [courses[one.rank].aligned(own[name].to_numpy()) for name in ("raw_start_ns", "raw_end_ns")]
        working = host_work(events, float(np.median(edges[1] - edges[0])))
        fetching = intersect(working, events.training.get("input", NO_EVENTS).union())
        known = join(working, explained(events))
        found.append(
            own.select("rank", "iteration").with_columns(
                run_id=pl.lit(batch.run_id),
                step_ns=pl.Series(edges[1] - edges[0]),
                host_ns=pl.Series(_inside(working, edges)),
                input_ns=pl.Series(_inside(fetching, edges)),
                unnamed_ns=pl.Series(edges[1] - edges[0] - _inside(known, edges)),
            )
        )
    if not found:
        return pl.DataFrame(schema=_SCHEMA)
    return pl.concat(found).select(pl.col(name).cast(kind) for name, kind in _SCHEMA.items())


def _inside(intervals: Intervals, edges: Sequence[Times]) -> Times:
    """Time of intervals in each step, ns."""
    lasting = intervals.ends_ns - intervals.starts_ns
    since, until = (covered_before(intervals.starts_ns, lasting, instants) for instants in edges)
    result: Times = until - since
    return result
