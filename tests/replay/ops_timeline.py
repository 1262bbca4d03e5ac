"""An operation-level timeline of a pipeline-parallel job as a graph. In: one row an operation. Out: replays.

The format is that of StragglerAnalysis (OSDI '25): `dp_rank`, `stage`, `step`, `optype`, `seq_id`, `start_ts` and
`duration`, s. Its dependencies: computation of a stage is one chain; a receive is issued after the computation before
the one that needs it, a send after the computation that made it, each on a stream of its own; gradients are reduced
after the last backward; one clip of gradients joins all ranks, and the optimizer ends the step. A transfer lasts from
the last start of its group to the end. Launch delays are left out.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.graph.schedule import Edges, schedule, topological_order

Amounts = NDArray[np.float64]
Operation = tuple[int, str, int]  # stage, optype, seq_id
Node = tuple[str, tuple[object, ...], int]

_TYPES = ("forward", "backward")
_MEETS_STAGE = {"params-all-gather", "grads-reduce-scatter"}
_LATE = -1e-2  # s; transfers that end this long before they can have begun are taken for nothing


@dataclass(frozen=True)
class Step:
    """What one stage does, in order: work, arrivals at collectives, and waits for them; by operation."""

    doings: list[tuple[str, Operation]]


@dataclass(frozen=True)
class Timeline:
    """A job's operations; durations by operation, s, shape (steps, dp): of work, or of transfers."""

    durations: Mapping[Operation, Amounts]
    begin: Mapping[Operation, Amounts]
    end: Mapping[Operation, Amounts]
    stages: list[Step]
    recorded_s: Amounts
    dp_size: int

    def step_times(
        self, durations: Mapping[Operation, Amounts] | None = None, *, with_launch_delays: bool = False
    ) -> Amounts:
        """Replayed time of each step, s, shape (steps,), with these durations or those recorded."""
        durations = self.durations if durations is None else durations
        names, before = self._dependencies()
        place = {name: number for number, name in enumerate(names)}
        pairs = [(place[one], place[name]) for name in names for one in before[name]]
        begin, end = np.array(pairs, dtype=np.int64).T
        order, left = topological_order(len(names), begin, end)
        assert len(order) == len(names), left
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        edges = Edges(rank[begin], rank[end], np.zeros(len(begin), dtype=np.int64))
        lasting = np.zeros((len(self.recorded_s), len(names)), dtype=np.int64)
        for name, number in place.items():
            if name[0] in {"work", "end"}:
                _, op, dp = name
                lasting[:, rank[number]] = np.rint(durations[op][:, dp] * 1e9)
            if with_launch_delays and name[0] in {"work", "arrival"}:
                lasting[:, rank[number]] += np.rint(self._launch_delay(name, before[name]) * 1e9).astype(np.int64)
        release = np.zeros(len(names), dtype=np.int64)
        return np.array([schedule(step, release, edges).end_ns.max() for step in lasting]) / 1e9

    def _launch_delay(self, name: Node, before: list[Node]) -> Amounts:
        """Time from when an operation could have begun until it did, s, shape (steps,)."""
        _, op, dp = name
        could = [self.end[one][:, own] for _, one, own in before]
        if not could:
            could = [np.min([begin.min(axis=1) for begin in self.begin.values()], axis=0)]
        delay = self.begin[op][:, dp] - np.max(could, axis=0)
        return np.where(delay <= _LATE, 0.0, delay)

    def _dependencies(self) -> tuple[list[Node], dict[Node, list[Node]]]:
        """Nodes, and what each depends on. A collective is a node where its ranks have met, and an end on each."""
        before: dict[Node, list[Node]] = defaultdict(list)
        for stage, dp in ((stage, dp) for stage in range(len(self.stages)) for dp in range(self.dp_size)):
            head: list[Node] = []
            streams: dict[str, list[Node]] = defaultdict(list)
            for doing, op in self.stages[stage].doings:
                arrival, met, end = ("arrival", op, dp), ("met", _meeting(op, dp), 0), ("end", op, dp)
                if doing == "await":
                    head = [*head, end]
                elif doing == "work":
                    before["work", op, dp] = head
                    head = [("work", op, dp)]
                else:
                    before[arrival] = [*head, *streams[op[1]]]
                    before[met].append(arrival)
                    before[end] = [met]
                    streams[op[1]] = [end]
        return list(before), before


def _meeting(op: Operation, dp: int) -> tuple[object, ...]:
    """Name of the collective that an operation of a data-parallel rank takes part in."""
    stage, kind, number = op
    if kind in _MEETS_STAGE:
        return (kind, number, stage)
    if kind == "optimizer-clip-main-grad":
        return (kind,)
    if kind == "embedding-grads-all-reduce":
        return (kind, dp)
    way, _, end = kind.partition("-")
    receiver = stage if end == "recv" else stage + (1 if way == "forward" else -1)
    return (way, receiver, number, dp)


def load(path: Path) -> Timeline:
    """The timeline of a parquet file."""
    frame = pl.read_parquet(path).with_columns(
        pl.col("optype").cast(pl.String),
        start=pl.col("start_ts").cast(pl.Float64),
        end=(pl.col("start_ts") + pl.col("duration")).cast(pl.Float64),
    )
    steps = frame["step"].unique().sort().to_list()
    dp_size = frame["dp_rank"].max() + 1
    begin, end = {}, {}
    for key, own in frame.sort("step", "dp_rank").group_by("stage", "optype", "seq_id", maintain_order=True):
        begin[key], end[key] = (own[name].to_numpy().reshape(len(steps), dp_size) for name in ("start", "end"))
    stages = [_step(begin, stage) for stage in range(frame["stage"].max() + 1)]
    spans = frame.group_by("step").agg(pl.col("end").max() - pl.col("start").min()).sort("step")
    return Timeline(_durations(begin, end, stages), begin, end, stages, spans["end"].to_numpy(), dp_size)


def _durations(
    begin: Mapping[Operation, Amounts], end: Mapping[Operation, Amounts], stages: list[Step]
) -> dict[Operation, Amounts]:
    """Work from start to end; transfers from the last start of the group to the own end."""
    found = {op: end[op] - begin[op] for op in begin}
    groups = defaultdict(list)
    for step in stages:
        for doing, op in step.doings:
            if doing == "arrive":
                groups[_meeting(op, 0)].append(op)
    for ops in groups.values():
        last = np.maximum.reduce([begin[op] for op in ops])
        if ops[0][1] in _MEETS_STAGE or ops[0][1] == "optimizer-clip-main-grad":
            last = last.max(axis=1, keepdims=True)
        for op in ops:
            transfer = end[op] - last
            found[op] = np.where(transfer <= _LATE, 0.0, transfer)
    return found


def _step(begin: Mapping[Operation, Amounts], stage: int) -> Step:
    """The doings of a stage, by the order of its computation in the first step."""
    own = {(kind, number) for of_stage, kind, number in begin if of_stage == stage}
    works = sorted(
        ((begin[stage, kind, n][0, 0], kind, n) for kind, n in own if kind.endswith("-compute")), key=lambda one: one[0]
    )
    order = [(kind.removesuffix("-compute"), number) for _, kind, number in works]
    first_backward = next(place for place, (way, _) in enumerate(order) if way == "backward")
    doings = [("arrive", (stage, "forward-recv", 0))] * (("forward-recv", 0) in own)
    doings += [("arrive", (stage, "params-all-gather", 0)), ("await", (stage, "params-all-gather", 0))]
    for place, (way, number) in enumerate(order):
        doings += [("await", (stage, f"{way}-recv", number))] * ((f"{way}-recv", number) in own)
        doings.append(("work", (stage, f"{way}-compute", number)))
        doings += [("arrive", (stage, f"{way}-send", number))] * ((f"{way}-send", number) in own)
        doings += [("arrive", (stage, f"{way}-recv", number + 1))] * ((f"{way}-recv", number + 1) in own)
        if place == first_backward - 2 and ("backward-recv", 0) in own:
            doings.append(("arrive", (stage, "backward-recv", 0)))
    doings += [("work", (stage, "gc", 0)), ("work", (stage, "layernorm-grads-all-reduce", 0))]
    for kind in ("embedding-grads-all-reduce", "grads-reduce-scatter", "optimizer-clip-main-grad"):
        for number in sorted(n for one, n in own if one == kind):
            doings += [("arrive", (stage, kind, number)), ("await", (stage, kind, number))]
    return Step([*doings, ("work", (stage, "optimizer", 0))])


def idealised(timeline: Timeline) -> dict[Operation, Amounts]:
    """Durations at which nothing straggles: means of computation, medians of communication, by type of operation."""
    by_kind: dict[str, list[Amounts]] = defaultdict(list)
    for (_, kind, _), value in timeline.durations.items():
        by_kind[kind].append(value)
    computes = {"forward-compute", "backward-compute", "gc", "optimizer"}
    level = {
        kind: float((np.mean if kind in computes else np.median)(np.concatenate(values, axis=None)))
        for kind, values in by_kind.items()
    }
    return {op: np.full_like(value, level[op[1]]) for op, value in timeline.durations.items()}
