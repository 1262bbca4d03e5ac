"""The dependency graph replayed. Reads graph.node, graph.derived_edge, timeline.arrival; fills graph.baseline.

Idea: one schedule holds all ranks. A collective is two places on each rank, arrival and end, and one event between
them for all: it begins when the last rank has arrived and lasts as long as the measured transfer. A host call that
waits for the device is two places as well: what the call itself takes, and its end, which the device work may delay.
Not handled: collectives on host threads (gloo), which have no device work; several linked traces of one rank (the
first one counts).
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from traceforge.graph.operation_matching import Int64s
from traceforge.graph.schedule import Bools, Edges, calibrated, schedule, topological_order
from traceforge.store.database import Store

_LINKED = """
SELECT run_id, MIN(source_id) AS source_id, rank
FROM graph.quality
WHERE label = 'timed' AND format = 'pytorch_et' AND part = 0 AND device_node_count > 0
GROUP BY run_id, rank
ORDER BY run_id, rank
"""
_GENERATED = """
SELECT run_id, source_id, part FROM graph.quality WHERE label = 'modelled' ORDER BY run_id, source_id, part
"""
_NODES = """
SELECT n.source_id, n.node, n.kind, n.on_device, a.collective_id,
  n.raw_start_ns - COALESCE(align.ahead_ns(n.raw_start_ns, k), 0) AS start_ns,
  COALESCE(n.duration_ns, 0) AS duration_ns
FROM graph.node AS n
ASOF LEFT JOIN align.clock_piece AS k ON k.run_id = n.run_id AND k.rank = n.rank AND n.raw_start_ns >= k.raw_from_ns
LEFT JOIN align.call AS c ON c.run_id = n.run_id AND c.rank = n.rank AND c.source_id = n.timeline_source_id
  AND c.event_id = n.event_id AND n.kind = 'communication'
LEFT JOIN (
  -- Of several meetings of a call one stands for all.
  SELECT run_id, rank, call_id, MIN(collective_id) AS collective_id FROM timeline.arrival GROUP BY ALL
) AS a ON a.run_id = c.run_id AND a.rank = c.rank AND a.call_id = c.call_id
WHERE n.run_id = ? AND n.origin = 'timeline' AND n.source_id IN (SELECT UNNEST(?))
ORDER BY n.source_id, n.node
"""
_EDGES = """
SELECT source_id, from_node, to_node, kind FROM graph.derived_edge
WHERE run_id = ? AND kind <> 'call' AND source_id IN (SELECT UNNEST(?))
"""
_STEPS = """
WITH stretch AS (
  SELECT run_id, source_id, rank, MIN(raw_start_ns) AS raw_start_ns, MAX(raw_start_ns) AS raw_end_ns
  FROM graph.node
  WHERE run_id = ? AND origin = 'timeline' AND NOT on_device AND source_id IN (SELECT UNNEST(?))
  GROUP BY ALL
)
SELECT t.source_id,
  MIN(s.raw_start_ns - COALESCE(align.ahead_ns(s.raw_start_ns, f), 0)) AS start_ns,
  MAX(s.raw_end_ns - COALESCE(align.ahead_ns(s.raw_end_ns, u), 0)) AS end_ns
FROM stretch AS t
JOIN align.step AS s ON s.run_id = t.run_id AND s.rank = t.rank
  AND s.raw_start_ns < t.raw_end_ns AND s.raw_end_ns > t.raw_start_ns
ASOF LEFT JOIN align.clock_piece AS f ON f.run_id = s.run_id AND f.rank = s.rank AND s.raw_start_ns >= f.raw_from_ns
ASOF LEFT JOIN align.clock_piece AS u ON u.run_id = s.run_id AND u.rank = s.rank AND s.raw_end_ns >= u.raw_from_ns
WHERE s.is_marked
GROUP BY t.source_id
ORDER BY t.source_id
"""
_WRITTEN_NODES = "SELECT node, COALESCE(duration_ns, 0) AS duration_ns FROM graph.node WHERE source_id = ? AND part = ?"
_WRITTEN_EDGES = """
SELECT from_node, to_node FROM graph.edge
WHERE source_id = ? AND part = ? AND kind IN ('data', 'control') AND from_node <> to_node
"""
_KINDS = ("thread", "handover", "launch", "stream", "order", "sync", "own", "join", "leave")
_ALL = -1
_ENDS, _ARRIVES, _JOINS, _ENDS_AT_ONCE = 0, 1, 2, 3
"""What comes first at one instant: what ends lets others start, but not what has only now begun."""
Row = dict[str, object]


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, scenario)."""
    found: list[Row] = []
    for (run_id,), own in store.query(_LINKED).group_by("run_id", maintain_order=True):
        found += _linked(store, int(str(run_id)), dict(own.select("source_id", "rank").rows()))
    for (run_id,), own in store.query(_GENERATED).group_by("run_id", maintain_order=True):
        found.append({"run_id": run_id, **_generated(store, own)})
    return pl.DataFrame(found, infer_schema_length=None)


def _generated(store: Store, traces: pl.DataFrame) -> Row:
    """The longest of some traces, each on its own."""
    spans, circular = [], 0
    for _, source_id, part in traces.iter_rows():
        span, left_out = longest_path(
            store.query(_WRITTEN_NODES, [source_id, part]), store.query(_WRITTEN_EDGES, [source_id, part])
        )
        spans.append(span)
        circular += left_out
    return {
        "scenario": "as_recorded",
        "label": "modelled",
        "rank": None,
        "rank_count": traces.height,
        "collective_count": 0,
        "measured_ns": None,
        "replayed_ns": max(spans),
        "difference": None,
        "contradicted_count": circular,
    }


def longest_path(nodes: pl.DataFrame, edges: pl.DataFrame) -> tuple[int, int]:
    """Largest sum of durations along dependencies, ns, and the number of nodes left out because they form cycles.

    Args:
        nodes: node, duration_ns.
        edges: from_node, to_node.
    """
    place = pl.DataFrame({"node": nodes["node"], "place": np.arange(nodes.height)})
    begin, end = (
        edges.select(node=name).join(place, on="node", how="left", maintain_order="left")["place"].to_numpy()
        for name in ("from_node", "to_node")
    )
    order, circular = topological_order(nodes.height, begin, end)
    rank = np.full(nodes.height, -1)
    rank[order] = np.arange(len(order))
    usable = (rank[begin] >= 0) & (rank[end] >= 0)
    begin, end = rank[begin[usable]], rank[end[usable]]
    none = np.zeros(len(order), np.int64)
    span = schedule(nodes["duration_ns"].to_numpy()[order], none, Edges(begin, end, np.zeros(len(begin), np.int64)))
    return span.span_ns, circular


class _LinkedRun:
    """All ranks of a run as places of one schedule, in order of measured time."""

    def __init__(self, nodes: pl.DataFrame, edges: pl.DataFrame, steps: pl.DataFrame) -> None:
        places = pl.concat([*_places(nodes), *_collective_events(nodes), *_bounds(steps)]).sort(
            "at_ns", "step", "source_id", "node", maintain_order=True
        )
        self.places = places.with_row_index("place").with_columns(pl.col("place").cast(pl.Int64))
        self.start_ns, self.duration_ns = (self.places[name].to_numpy() for name in ("start_ns", "duration_ns"))
        begin, end, kind = self._dependencies(nodes, edges, steps)
        forward = begin < end
        self.contradicted_count = int((~forward).sum())
        self._begin, self._end, self._kind = begin[forward], end[forward], kind[forward]
        self.edges = calibrated(self.start_ns, self.start_ns + self.duration_ns, self._begin, self._end, self._kind)
        self.collective_count = nodes["collective_id"].drop_nulls().n_unique()

    def _dependencies(
        self, nodes: pl.DataFrame, edges: pl.DataFrame, steps: pl.DataFrame
    ) -> tuple[Int64s, Int64s, Int64s]:
        keyed = self.places.select("source_id", "node", "step", "place")
        first = keyed.group_by("source_id", "node").agg(first=pl.col("place").min(), last=pl.col("place").max())
        own = first.filter(pl.col("first") < pl.col("last")).select(begin="first", end="last", kind=pl.lit("own"))
        stated = (
            edges.join(first, left_on=["source_id", "from_node"], right_on=["source_id", "node"])
            .join(first, left_on=["source_id", "to_node"], right_on=["source_id", "node"], suffix="_to")
            .select(
                begin=pl.when(pl.col("kind") == "launch").then("first").otherwise("last"),
                end=pl.when(pl.col("kind") == "sync").then("last_to").otherwise("first_to"),
                kind="kind",
            )
        )
        tied = nodes.filter(pl.col("collective_id").is_not_null()).join(first, on=["source_id", "node"])
        events = keyed.filter(pl.col("step") == _JOINS).select(collective_id="node", event="place")
        tied = tied.join(events, on="collective_id")
        arrivals = tied.select(begin="first", end="event", kind=pl.lit("join"))
        leavings = tied.select(begin="event", end="last", kind=pl.lit("leave"))
        outer = _bounding(nodes, steps).join(first, left_on=["source_id", "from_node"], right_on=["source_id", "node"])
        outer = outer.join(first, left_on=["source_id", "to_node"], right_on=["source_id", "node"], suffix="_to")
        bounding = outer.select(begin="last", end="first_to", kind=pl.lit("thread"))
        every = pl.concat([frame.cast({"kind": pl.String}) for frame in (own, stated, arrivals, leavings, bounding)])
        numbers = every["kind"].replace_strict(
            {kind: number for number, kind in enumerate(_KINDS)}, return_dtype=pl.Int64
        )
        return every["begin"].to_numpy(), every["end"].to_numpy(), numbers.to_numpy()

    def spans(self, start_ns: Int64s, end_ns: Int64s) -> dict[int, int]:
        """From first start to last end, ns, by source; of all together under `_ALL`."""
        times = pl.DataFrame({"source_id": self.places["source_id"], "start": start_ns, "end": end_ns})
        span = (pl.col("end").max() - pl.col("start").min()).alias("span")
        own = times.filter(pl.col("source_id") != _ALL).group_by("source_id", maintain_order=True).agg(span)
        return {_ALL: int(times.select(span).item()), **dict(own.rows())}

    def measured(self) -> dict[int, int]:
        """Spans as measured."""
        return self.spans(self.start_ns, self.start_ns + self.duration_ns)

    def replayed(self, scenario: str) -> dict[int, int]:
        """Spans as replayed."""
        duration, edges = self.duration_ns, self.edges
        if scenario != "as_recorded":
            to_communication = self._communicates()[self._end]
            duration = np.where(self._communicates(), 0, duration)
            leaves = self._kind == _KINDS.index("leave")
            inside = leaves | (self._kind == _KINDS.index("own")) & to_communication
            kept = ~leaves if scenario == "no_communication" else np.ones(len(leaves), np.bool_)
            edges = Edges(edges.begin[kept], edges.end[kept], np.where(inside, 0, edges.lag_ns)[kept])
        found = schedule(duration, self.start_ns, edges)
        return self.spans(found.start_ns, found.end_ns)

    def _communicates(self) -> Bools:
        return (self.places["kind"] == "communication").to_numpy()


_STEP_BEGIN, _STEP_END = 2**62, 2**62 + 1


def _places(nodes: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Places of nodes: one each, and two of those that may have to wait inside."""
    end = pl.col("start_ns") + pl.col("duration_ns")
    waits = pl.col("collective_id").is_not_null() | (pl.col("kind") == "blocking")
    columns = ("source_id", "node", "kind")
    yield nodes.filter(~waits).select(*columns, "start_ns", "duration_ns", at_ns="start_ns", step=pl.lit(_ARRIVES))
    ready = pl.col("start_ns").max().over("collective_id")
    begun = pl.when(pl.col("collective_id").is_null()).then("start_ns").otherwise(ready)
    ends = pl.when(end > begun).then(_ENDS).otherwise(_ENDS_AT_ONCE)
    for step, at in ((pl.lit(_ARRIVES), pl.col("start_ns")), (ends, end)):
        yield nodes.filter(waits).select(*columns, start_ns=at, duration_ns=pl.lit(0, pl.Int64), at_ns=at, step=step)


def _collective_events(nodes: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """A place for each collective: from its last arrival to its last end."""
    end = pl.col("start_ns") + pl.col("duration_ns")
    tied = nodes.filter(pl.col("collective_id").is_not_null()).group_by("collective_id")
    yield tied.agg(
        source_id=pl.lit(_ALL, pl.Int32),
        kind=pl.lit("communication"),
        start_ns=pl.col("start_ns").max(),
        duration_ns=(end.max() - pl.col("start_ns").max()).clip(0),
    ).select(
        *("source_id",),
        *(pl.col("collective_id").alias("node"), "kind", "start_ns", "duration_ns"),
        at_ns="start_ns",
        step=pl.lit(_JOINS),
    )


def _bounds(steps: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Places for the host's beginning of the first step and end of the last one."""
    for node, at, step in ((_STEP_BEGIN, "start_ns", _ARRIVES), (_STEP_END, "end_ns", _ENDS)):
        yield steps.select(
            "source_id",
            node=pl.lit(node, pl.Int64),
            kind=pl.lit("host"),
            start_ns=at,
            duration_ns=pl.lit(0, pl.Int64),
            at_ns=at,
            step=pl.lit(step),
        )


def _bounding(nodes: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """From a step's beginning to the first host call inside, and from the last one to its end: from_node, to_node."""
    calls = nodes.filter(~pl.col("on_device")).select("source_id", "node", "start_ns", "duration_ns")
    timed = calls.join(steps.rename({"start_ns": "step_ns"}), on="source_id").sort("start_ns")
    inside = timed.filter(
        (pl.col("start_ns") >= pl.col("step_ns")) & (pl.col("start_ns") + pl.col("duration_ns") <= pl.col("end_ns"))
    ).group_by("source_id", maintain_order=True)
    heads = inside.first().select("source_id", from_node=pl.lit(_STEP_BEGIN, pl.Int64), to_node="node")
    return pl.concat([heads, inside.last().select("source_id", from_node="node", to_node=pl.lit(_STEP_END, pl.Int64))])


def _linked(store: Store, run_id: int, ranks: dict[int, int]) -> Iterator[Row]:
    """Rows of one run, whose ranks are given by source."""
    found = [run_id, list(ranks)]
    job = _LinkedRun(store.query(_NODES, found), store.query(_EDGES, found), store.query(_STEPS, found))
    measured = job.measured()
    for scenario in ("as_recorded", "instant_transfer", "no_communication"):
        for source_id, replayed in job.replayed(scenario).items():
            yield {
                "run_id": run_id,
                "scenario": scenario,
                "rank": ranks.get(source_id),
                "label": "timed",
                "rank_count": len(ranks) if source_id == _ALL else 1,
                "collective_count": job.collective_count,
                "measured_ns": measured[source_id],
                "replayed_ns": replayed,
                "difference": replayed / measured[source_id] - 1 if measured[source_id] else None,
                "contradicted_count": job.contradicted_count,
            }
