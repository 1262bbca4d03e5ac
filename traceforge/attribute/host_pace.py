"""How fast hosts alone would go. Reads raw events, align.* and the ledger's excess; fills attribute.host_pace, and
for attribute.host_time what else a look at them gives.

Idea: what a host does in its step, less what may be a wait, is time that no device and no network can save. It is read
only where a run loses time at all, and of at most 64 ranks, since it takes another look at their events.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceforge.align.clock_course import read_courses
from traceforge.align.rank_batches import RankBatch, rank_batches
from traceforge.attribute.ledger.blame_of_run import owned_ns
from traceforge.attribute.ledger.ledger_input import ON_DEVICE, load_ledger_input
from traceforge.replay.reference import references
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.timeline.host_work import by_cause, explained, host_work
from traceforge.timeline.layers import Intervals, Times, covered_before, intersect, join, subtract
from traceforge.timeline.rank_events import NO_EVENTS, RankEvents, read_events

_STEPS = """
SELECT rank, iteration, raw_start_ns, raw_end_ns
FROM align.step
WHERE run_id = $1 AND rank BETWEEN $2 AND $3 AND is_marked
ORDER BY rank, raw_start_ns
"""

_MOST_RANKS = 64

_KEY = {"run_id": pl.Int32, "rank": pl.Int32, "iteration": pl.Int32}

_PACE = _KEY | {
    "step_ns": pl.Int64,
    "host_ns": pl.Int64,
    "input_ns": pl.Int64,
    "fetching_wait_ns": pl.Int64,
    "unnamed_ns": pl.Int64,
    "awaited_ns": pl.Int64,
}

_TIME = _KEY | {"cause": pl.String, "host_ns": pl.Int64}


@dataclass(frozen=True, slots=True)
class HostLook:
    """What a look at the events of a rank's host gives.

    Attributes:
        pace: rows of attribute.host_pace.
        by_cause: rows of attribute.host_time.
    """

    pace: pl.DataFrame
    by_cause: pl.DataFrame


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """One row a step of each rank that is looked at."""
    for look in store.once(looked_at):
        yield look.pace


def looked_at(store: Store) -> list[HostLook]:
    """A look at each rank whose host may matter."""
    asked = {run_id: _ranks(store, run_id) for run_id in store.run_ids()}
    found: list[HostLook] = []
    for batch in rank_batches(store):
        chosen = [one for one in batch.ranks if one.has_device and one.rank in asked[batch.run_id]]
        if chosen:
            found += _of_batch(store, RankBatch(batch.run_id, chosen, batch.most_events))
    return found


def _ranks(store: Store, run_id: int) -> frozenset[int]:
    """Ranks to look at: none of a run that loses no time, nor one whose device waits for no other's."""
    run = store.once(load_ledger_input, run_id)
    if run is None or len(run.model.ranks) < 2 or not store.value(ON_DEVICE, [run_id]):
        return frozenset()
    lost_ns = float(owned_ns(run, references(run.model)).sum())
    lasted_ns = float((run.model.end_ns.max(axis=1) - run.model.start_ns.max(axis=1)).sum())
    ranks = run.model.ranks if lost_ns >= thresholds.REPORTED_SHARE * lasted_ns else run.model.ranks[:0]
    step = max(1, -(-len(ranks) // _MOST_RANKS))
    return frozenset(ranks[::step].tolist())


def _of_batch(store: Store, batch: RankBatch) -> Iterator[HostLook]:
    steps, courses = batch.by_rank(store, _STEPS), store.once(read_courses, batch.run_id)
    for one, events in read_events(store, batch):
        own = steps.of(one.rank)
        if not own.is_empty():
            key = own.select("rank", "iteration").with_columns(run_id=pl.lit(batch.run_id))
            edges = [courses[one.rank].aligned(own[name].to_numpy()) for name in ("raw_start_ns", "raw_end_ns")]
            yield _look(events, key, edges)


def _look(events: RankEvents, key: pl.DataFrame, edges: Sequence[Times]) -> HostLook:
    step_ns = edges[1] - edges[0]
    working = host_work(events, float(np.median(step_ns)))
    spans = events.training.get("input", NO_EVENTS).union()
    fetching, waiting = intersect(working, spans), subtract(spans, working)
    known = join(working, explained(events))
    pace = key.with_columns(
        step_ns=pl.Series(step_ns),
        host_ns=pl.Series(_inside(working, edges)),
        input_ns=pl.Series(_inside(fetching, edges)),
        fetching_wait_ns=pl.Series(_inside(waiting, edges)),
        unnamed_ns=pl.Series(step_ns - _inside(known, edges)),
        awaited_ns=pl.Series(_inside(events.training.get("synchronisation", NO_EVENTS).union(), edges)),
    )
    spent = [
        key.with_columns(cause=pl.lit(cause), host_ns=pl.Series(_inside(when, edges)))
        for cause, when in by_cause(events, working).items()
    ]
    return HostLook(_as(_PACE, [pace]), _as(_TIME, spent))


def _as(schema: Mapping[str, type[pl.DataType]], frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    if not frames:
        return pl.DataFrame(schema=dict(schema))
    return pl.concat(frames).select(pl.col(name).cast(kind) for name, kind in schema.items())


def _inside(intervals: Intervals, edges: Sequence[Times]) -> Times:
    """Time of intervals in each step, ns."""
    lasting = intervals.ends_ns - intervals.starts_ns
    since, until = (covered_before(intervals.starts_ns, lasting, instants) for instants in edges)
    result: Times = until - since
    return result
