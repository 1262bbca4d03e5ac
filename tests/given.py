"""Small traces as a story tells them. In: what each rank did, drawn by hand. Out: a store in memory that holds it.

    trace = Trace(rank=1, clock_ns=500)
    trace.step(7, 0, 100).kernel(0, 60).collective(60, 90)
    store = built(store_of(trace, …), "graph")

All times are ns on the true clock of the story; `clock_ns` is added to everything a rank writes down, as a clock that
is off would. Launches take 1 ns, so that they hide below what they launch when it starts at once. Calls of one rank
are told apart by when the host issued them: give no two collectives of a rank the same `issue_ns`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import cache
from pathlib import Path
from typing import Self

import polars as pl

from traceforge.api import STAGES, sources
from traceforge.files import find_files
from traceforge.records import ReadOptions
from traceforge.store.database import Store
from traceforge.store.documents import Document
from traceforge.store.ingest import IngestResult, ingest_files
from traceforge.store.stage import build_stage, stage_documents

US = 1_000
MS = 1_000_000

TRAINING, WORKER, DEVICE = 1, 2, 3
"""Tracks of every trace: the thread that trains, another host thread, and a device stream."""

OF_MODEL = ("align.rank", "timeline.iteration", "timeline.role", "timeline.window", "graph.arrival", "graph.work")
"""The tables that `replay.model.load_model` asks."""

_ALL_REDUCE_KERNEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"

_EVENT = {
    "source_id": pl.Int32, "event_id": pl.Int64, "phase": pl.String, "category": pl.String, "name": pl.String,
    "track_id": pl.Int32, "raw_start_ns": pl.Int64, "duration_ns": pl.Int64, "correlation": pl.Int64,
    "stream": pl.Int32, "device": pl.Int32, "record_function_id": pl.Int64, "external_id": pl.Int64,
    "size_bytes": pl.Int64,
}  # fmt: skip
_COLLECTIVE = {
    "source_id": pl.Int32, "event_id": pl.Int64, "collective_name": pl.String, "process_group_name": pl.String,
    "process_group_ranks": pl.String, "group_size": pl.Int32, "in_elements": pl.Int64, "out_elements": pl.Int64,
    "dtype": pl.String, "sequence": pl.Int64, "group_rank": pl.Int32,
}  # fmt: skip
_INPUT = {
    "source_id": pl.Int32, "event_id": pl.Int64, "shapes": pl.String, "types": pl.String, "concrete": pl.String,
}  # fmt: skip
_GROUP = {
    "source_id": pl.Int32, "process_group_name": pl.String, "description": pl.String, "size": pl.Int32,
    "ranks": pl.String,
}  # fmt: skip


class Trace:
    """What one rank's file says. Every method adds events and returns the trace, so that stories chain.

    Args:
        rank: global rank; None where nothing states it.
        host: host name; None where nothing states it.
        clock_ns: how far this rank's clock is ahead of the true one.
        groups: process groups the file lists: (name, description, ranks).
        path: the file's path; by default named after the rank.
    """

    def __init__(
        self,
        rank: int | None = 0,
        *,
        host: str | None = "node0",
        clock_ns: int = 0,
        groups: Sequence[tuple[str, str, Sequence[int]]] = (),
        path: str | None = None,
    ) -> None:
        self.rank = rank
        self.host = host
        self.clock_ns = clock_ns
        self.groups = groups
        self.path = path or f"rank{rank}.json"
        self.events: list[dict[str, object]] = []
        self.collectives: list[dict[str, object]] = []
        self.arguments: list[dict[str, object]] = []
        self.inputs: list[dict[str, object]] = []
        self.device: str | None = None

    def __repr__(self) -> str:
        events = (f"{e['name']} {e['raw_start_ns']}+{e['duration_ns']}" for e in self.events)
        return f"Trace({self.rank}: {', '.join(events)})"

    def event(self, category: str | None, name: str, start_ns: int, end_ns: int, **columns: object) -> Self:
        """Any complete event; further columns of raw.event by name (track_id is the training thread)."""
        row = {"phase": "X", "track_id": TRAINING, **columns}
        row |= {"event_id": len(self.events), "category": category, "name": name}
        row |= {"raw_start_ns": start_ns + self.clock_ns, "duration_ns": end_ns - start_ns}
        self.events.append(row)
        return self

    def step(self, number: int, start_ns: int, end_ns: int) -> Self:
        """The profiler's step annotation."""
        return self.event("user_annotation", f"ProfilerStep#{number}", start_ns, end_ns)

    def host_work(self, name: str, start_ns: int, end_ns: int, category: str = "cpu_op") -> Self:
        """Something named on the training thread; other categories: user_annotation, cuda_runtime, python_function."""
        return self.event(category, name, start_ns, end_ns)

    def operation(
        self,
        name: str,
        start_ns: int,
        end_ns: int,
        shapes: Sequence[Sequence[int]],
        types: Sequence[str] | None = None,
        concrete: Sequence[str] | None = None,
    ) -> Self:
        """A host operation on the training thread with the inputs that were recorded."""
        row = {"event_id": len(self.events), "shapes": json.dumps(shapes)}
        row |= {"types": types and json.dumps(types), "concrete": concrete and json.dumps(concrete)}
        self.inputs.append(row)
        return self.host_work(name, start_ns, end_ns)

    def on_device(self, name: str) -> Self:
        """The name of the device that the file states."""
        self.device = name
        return self

    def kernel(self, start_ns: int, end_ns: int, name: str = "gemm", *, launch_ns: int | None = None) -> Self:
        """A device kernel, launched by the training thread at `launch_ns` (by default when it starts)."""
        return self._launched("kernel", name, start_ns, end_ns, start_ns if launch_ns is None else launch_ns)

    def copy(
        self,
        start_ns: int,
        end_ns: int,
        name: str = "Memcpy HtoD (Pinned -> Device)",
        *,
        launch_ns: int | None = None,
    ) -> Self:
        """A copy on the device, launched as a kernel is."""
        return self._launched("gpu_memcpy", name, start_ns, end_ns, start_ns if launch_ns is None else launch_ns)

    def unlaunched_kernel(self, start_ns: int, end_ns: int, name: str = _ALL_REDUCE_KERNEL) -> Self:
        """A kernel whose launch lies before the window, as at the head of many traces."""
        return self.event("kernel", name, start_ns, end_ns, track_id=DEVICE, stream=7, correlation=10_000_000)

    def collective(
        self,
        start_ns: int,
        end_ns: int,
        *,
        issue_ns: int | None = None,
        op: str = "allreduce",
        kernel: str = _ALL_REDUCE_KERNEL,
        group: str | None = None,
        ranks: Sequence[int] | None = None,
        elements: int | None = 1_000,
        dtype: str | None = "Float",
        sequence: int | None = None,
        group_rank: int | None = None,
    ) -> Self:
        """An NCCL collective: record_param_comms and the launch on the host at `issue_ns`, the kernel on the device.

        Args:
            group: process group name in the record's arguments; None says nothing of it.
            ranks: members in the record's arguments; None says nothing of them.
            elements: elements moved; the element type is `dtype`.
            sequence: sequence number in the record's arguments; None says nothing of it.
            group_rank: place in the group in the record's arguments (of a send or receive, the peer's).
        """
        at = start_ns if issue_ns is None else issue_ns
        self._describe(op, group, ranks, elements, dtype, sequence)
        self.collectives[-1]["group_rank"] = group_rank
        self.event("cpu_op", "record_param_comms", at, at + 1)
        return self._launched("kernel", kernel, start_ns, end_ns, at)

    def exchange(
        self,
        start_ns: int,
        end_ns: int,
        messages: Sequence[tuple[str, int]],
        *,
        ranks: Sequence[int],
        issue_ns: int | None = None,
        elements: int = 1_000,
        group: str = "pp",
    ) -> Self:
        """Sends and receives in one kernel (batch_isend_irecv): their calls, each with a record, then the launch.

        Args:
            messages: ("send" or "recv", place of the other rank in the group), in order of issue.
            ranks: members of the group.
        """
        at = start_ns if issue_ns is None else issue_ns
        for place, (op, peer) in enumerate(messages):
            call_ns = at - 3 * (len(messages) - place)
            args = {"Concrete Inputs": ["", "", str(peer), "0"], "Input Dims": [[[elements]], [], [], []]}
            self.arguments.append({"event_id": len(self.events), "args": json.dumps(args)})
            self.event("cpu_op", "c10d::send" if op == "send" else "c10d::recv_", call_ns, call_ns + 2)
            self._describe(op, group, ranks, elements, "Float", None)
            self.event("cpu_op", "record_param_comms", call_ns, call_ns + 1)
        name = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
        return self._launched("kernel", name, start_ns, end_ns, at)

    def gloo(
        self, start_ns: int, end_ns: int, *, issue_ns: int | None = None, op: str = "all_reduce", track_id: int = WORKER
    ) -> Self:
        """A gloo collective: the call on the training thread at `issue_ns`, the work on another host thread.

        The work's record function id is one above its call's, as PyTorch counts them.
        """
        at = start_ns if issue_ns is None else issue_ns
        number = 2 * len(self.events) + 1
        self.event("cpu_op", f"c10d::{op.replace('_', '')}_", at, at + 1, record_function_id=number)
        args = {"Input Dims": [[1_000]], "Input type": ["float"]}
        self.arguments.append({"event_id": len(self.events), "args": json.dumps(args)})
        return self.event(
            "user_annotation", f"gloo:{op}", start_ns, end_ns, track_id=track_id, record_function_id=number + 1
        )

    def _launched(self, category: str, name: str, start_ns: int, end_ns: int, launch_ns: int) -> Self:
        number = len(self.events)
        call = "cudaMemcpyAsync" if category == "gpu_memcpy" else "cudaLaunchKernel"
        self.event("cuda_runtime", call, launch_ns, launch_ns + 1, correlation=number)
        return self.event(category, name, start_ns, end_ns, track_id=DEVICE, stream=7, correlation=number)

    def _describe(
        self,
        op: str,
        group: str | None,
        ranks: Sequence[int] | None,
        elements: int | None,
        dtype: str | None,
        sequence: int | None,
    ) -> None:
        self.collectives.append(
            {
                "event_id": len(self.events),
                "collective_name": op,
                "process_group_name": group,
                "process_group_ranks": None if ranks is None else str(list(ranks)),
                "group_size": None if ranks is None else len(ranks),
                "in_elements": elements,
                "out_elements": elements,
                "dtype": dtype,
                "sequence": sequence,
            }
        )


def store_of(*traces: Trace, world_size: int | None = None) -> Store:
    """A store in memory that holds one run of these traces (source_id in the order given), no stage built."""
    store = Store(None, threads=1, is_kept=False)
    add_run(store, *traces, world_size=world_size)
    return store


def add_run(store: Store, *traces: Trace, run_name: str = "story", world_size: int | None = None) -> int:
    """Number of a new run of these traces in a store."""
    run_id, first_source = (store.query(f"SELECT COUNT(*) FROM meta.{table}").item() for table in ("run", "source"))
    store.execute("INSERT INTO meta.run VALUES (?, ?, ?)", [run_id, run_name, world_size])
    frames: dict[str, list[pl.DataFrame]] = {}
    for source_id, trace in enumerate(traces, first_source):
        for table, rows in {**_stated(run_id, trace), **by_kind(_frame(source_id, trace.events, _EVENT))}.items():
            frames.setdefault(table, []).append(rows.with_columns(source_id=pl.lit(source_id, dtype=pl.Int32)))
    for table, parts in frames.items():
        store.append(table, pl.concat([part for part in parts if len(part)] or parts[:1], how="diagonal_relaxed"))
    return int(run_id)


def _stated(run_id: int, trace: Trace) -> dict[str, pl.DataFrame]:
    """What a trace says beside its events, by table."""
    source = {
        "run_id": run_id, "kind": "kineto", "path": trace.path, "rank": trace.rank, "host": trace.host,
        "rank_origin": "unknown" if trace.rank is None else "metadata", "status": "used", "size_bytes": 1,
        "event_count": len(trace.events), "stored_count": len(trace.events), "content_hash": trace.path,
    }  # fmt: skip
    devices = [] if trace.device is None else [{"id": 0, "name": trace.device}]
    profile = {"base_time_ns": 0, "metadata": json.dumps({"deviceProperties": devices}), "device_name": trace.device}
    groups = [
        {"process_group_name": name, "description": text, "size": len(ranks), "ranks": str(list(ranks))}
        for name, text, ranks in trace.groups
    ]
    return {
        "meta.source": pl.DataFrame([source]),
        "raw.collective": _frame(0, trace.collectives, _COLLECTIVE),
        "raw.argument": _frame(0, trace.arguments, None),
        "raw.operation_input": _frame(0, trace.inputs, _INPUT),
        "raw.profile": pl.DataFrame([profile]),
        "raw.process_group": _frame(0, groups, _GROUP),
    }


def store_of_runs(*runs: Sequence[Trace]) -> Store:
    """A store in memory that holds several runs, numbered from 0: their stages are built at the price of one."""
    store = store_of(*(trace for run in runs for trace in run))
    first = 0
    for run_id, run in enumerate(runs):
        if run_id:
            store.execute("INSERT INTO meta.run VALUES (?, ?, NULL)", [run_id, f"story {run_id}"])
        sources = [run_id, first, first + len(run)]
        store.execute("UPDATE meta.source SET run_id = ? WHERE source_id >= ? AND source_id < ?", sources)
        first += len(run)
    return store


def add_facts(store: Store, *paths: Path, run_name: str = "job", executor: Executor | None = None) -> IngestResult:
    """Files, or those of folders, added to a run of a store, whatever they are; no stage is built."""
    files, options = find_files(paths), ReadOptions()
    return ingest_files(store, files, sources(), run_name=run_name, executor=executor, options=options)


def by_kind(events: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Rows of raw.event as they are stored: one kind an event, which is plain and as good as any other."""
    events = events.with_columns(kind_id=pl.col("event_id").cast(pl.Int32))
    said = ["phase", "category", "name", "track_id"]
    return {
        "raw.event_kind": events.select(pl.col("^source_id$"), "kind_id", *said),
        "raw.occurrence": events.drop(said),
    }


def built(store: Store, *wanted: str) -> Store:
    """The same store with tables made: those of stages or single ones, and what they read.

    Args:
        wanted: stages such as `graph` (which is the default), or tables such as `timeline.phase`.
    """
    documents = _documents()
    needed: set[str] = set()
    todo = [name for name in documents if name in wanted or name.partition(".")[0] in (wanted or ("graph",))]
    while todo:
        if (name := todo.pop()) in documents.keys() - needed:
            needed.add(name)
            todo += documents[name].reads
    for stage in STAGES:
        if own := [one for name, one in documents.items() if name in needed and name.startswith(f"{stage}.")]:
            build_stage(store, f"traceforge.{stage}", documents=own)
    return store


def tables_of(*stages: str) -> list[str]:
    """Names of the tables, views and macros of stages, and of those before the last of them."""
    last = max(map(STAGES.index, stages))
    return [name for name in _documents() if name.partition(".")[0] in STAGES[: last + 1]]


@cache
def _documents() -> Mapping[str, Document]:
    """All tables of stages by name, each after those that it reads."""
    return {one.name: one for stage in STAGES for one in stage_documents(f"traceforge.{stage}")}


def rows_of(store: Store, sql: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
    """A query's rows as plain tuples, to be compared with a table written by hand."""
    return store.query(sql, parameters).rows()


def data_parallel_job(
    compute_ns: Sequence[Sequence[int]],
    *,
    transfer_ns: int = 10,
    clock_ns: Sequence[int] = (),
    hosts: Sequence[str] = (),
    first_step: int = 0,
) -> list[Trace]:
    """A plain job: in each iteration every rank computes, then all reduce together and start the next one at once.

        rank 0   |compute··|wait····|transfer|compute…
        rank 1   |compute···········|transfer|compute…

    Args:
        compute_ns: compute time by iteration and rank; each above 0.
        transfer_ns: time of the all-reduce after its last arrival.
        clock_ns: how far each rank's clock is ahead; none are by default.
        hosts: host of each rank; all share one by default.
        first_step: number of the first iteration.
    """
    ranks = range(len(compute_ns[0]))
    clocks = list(clock_ns) or [0] * len(ranks)
    names = list(hosts) or ["node0"] * len(ranks)
    traces = [Trace(rank, host=names[rank], clock_ns=clocks[rank]) for rank in ranks]
    now = 0
    for number, durations in enumerate(compute_ns, start=first_step):
        end = now + max(durations) + transfer_ns
        for trace, duration in zip(traces, durations, strict=True):
            trace.step(number, now, end).kernel(now, now + duration).collective(now + duration, end)
        now = end
    return traces


def _frame(
    source_id: int, rows: Iterable[dict[str, object]], schema: dict[str, type[pl.DataType]] | None
) -> pl.DataFrame:
    frame = pl.DataFrame(list(rows), schema=schema, infer_schema_length=None)
    return frame.with_columns(source_id=pl.lit(source_id, dtype=pl.Int32))
