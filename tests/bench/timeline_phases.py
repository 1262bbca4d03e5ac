"""How fast phases and overlap are computed, and collectives matched. Run by hand, never timed by the test suite:

    python -m tests.bench.timeline_phases [millions of events, 10 by default]

Prints CPU seconds (user and system) beside a limit measured in the same run: numpy sorting as many interval ends as
the events have. A table of results is kept in timeline_phases.md.
"""

import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceforge.align.collective_matching import match
from traceforge.align.rank_batches import RankBatch, RankFile
from traceforge.align.sequence_alignment import CallSequence
from traceforge.store.database import Store
from traceforge.timeline.rank_events import RankEvents, read_events
from traceforge.timeline.segment import rank_layers, segments

RANKS = 8
ITERATIONS = 50


@dataclass(frozen=True)
class Measure:
    """What one part took."""

    what: str
    items: int
    unit: str
    cpu_s: float

    def line(self, limit_s: float) -> str:
        rate = self.items / self.cpu_s / 1e6
        return f"| {self.what} | {self.cpu_s:.2f} | {rate:.1f} M {self.unit}/CPU s | {self.cpu_s / limit_s:.2f} |"


def cpu_s(work: Callable[[], object]) -> float:
    """User and system time of a call."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rank_events(count: int, rng: np.random.Generator) -> pl.DataFrame:
    """Events of one rank: host operations with launches below them, kernels on two streams, copies, communication."""
    parts = {"operation": 0.25, "launch": 0.3, "compute": 0.36, "communication": 0.02, "copy": 0.05, "annotation": 0.02}
    frames = []
    for name, share in parts.items():
        number = int(count * share)
        start = np.arange(number) * round(20_000 / share) + rng.integers(0, 20_000, number)
        duration = rng.integers(1_000, round(18_000 / share), number)
        frames.append(
            pl.DataFrame({"name": [name], "start": [start], "duration": [duration]}).explode("start", "duration")
        )
    return pl.concat(frames)


CATEGORIES = {
    "operation": ("cpu_op", "aten::mm"),
    "launch": ("cuda_runtime", "cudaLaunchKernel"),
    "compute": ("kernel", "gemm"),
    "communication": ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
    "copy": ("gpu_memcpy", "Memcpy HtoD"),
    "annotation": ("user_annotation", "forward"),
}


def store_of(ranks: list[pl.DataFrame]) -> Store:
    """A store with the events and their classes."""
    store = Store(None, threads=1)
    store.execute("CREATE SCHEMA align")
    store.execute(
        "CREATE TABLE align.name_class (category VARCHAR, name VARCHAR, canonical_category VARCHAR, class VARCHAR)"
    )
    store.execute(
        "CREATE TABLE align.clock_piece AS SELECT 0 AS run_id, range AS rank, 0::BIGINT AS raw_anchor_ns, "
        f"500::BIGINT AS offset_ns, 1000::BIGINT AS drift_ppb FROM range({RANKS})"
    )
    for event_class, (category, name) in CATEGORIES.items():
        store.execute("INSERT INTO align.name_class VALUES (?, ?, ?, ?)", [category, name, category, event_class])
    names = list(CATEGORIES)
    for source_id, frame in enumerate(ranks):
        for kind_id, (category, name) in enumerate(CATEGORIES.values()):
            track_id = 7 if category in ("kernel", "gpu_memcpy") else 1
            row = [source_id, kind_id, "X", category, name, track_id]
            store.execute("INSERT INTO raw.event_kind VALUES (?, ?, ?, ?, ?, ?)", row)
        store.append(
            "raw.occurrence",
            frame.select(
                source_id=pl.lit(source_id, dtype=pl.Int32),
                event_id=pl.int_range(pl.len(), dtype=pl.Int64),
                kind_id=pl.col("name").replace_strict(names, range(len(names)), return_dtype=pl.Int32),
                raw_start_ns="start",
                duration_ns="duration",
            ),
        )
    return store


def phases(events: RankEvents) -> int:
    """Number of segments of one rank."""
    communication = events.wherever["communication"]
    matched = pl.DataFrame({"start_ns": communication.starts_ns, "end_ns": communication.ends_ns}).with_columns(
        last_arrival_ns=pl.col("start_ns") + 1_000, complete=pl.lit(value=True)
    )
    end = max(int(own.ends_ns.max()) for own in events.wherever.values())
    edges = np.linspace(0, end, ITERATIONS + 1).astype(np.int64)
    return len(segments(rank_layers(events, matched, has_device=True), edges[:-1], edges[1:]).window)


def matching(arrivals: int, rng: np.random.Generator) -> tuple[list[CallSequence], list[CallSequence]]:
    """Calls of 64 ranks, by order and with numbers."""
    calls = arrivals // 64
    kind = rng.integers(0, 5, calls)
    end = np.arange(calls) * 1_000_000
    nothing = np.full(calls, -1)
    skew = rng.integers(0, 20_000, 64)
    ordered = [CallSequence(kind, nothing, nothing, end - 500_000 + own, end + own) for own in skew.tolist()]
    stated = [CallSequence(kind, np.arange(calls), nothing, own.arrival_ns, own.end_ns) for own in ordered]
    return ordered, stated


def main(millions: float) -> None:
    """Print the table."""
    rng = np.random.default_rng(1)
    count = int(millions * 1e6)
    ranks = [rank_events(count // RANKS, rng) for _ in range(RANKS)]
    total = sum(frame.height for frame in ranks)
    ends = rng.integers(0, 1 << 40, 2 * total)
    limit_s = cpu_s(lambda: np.sort(ends))
    store = store_of(ranks)
    batches = [RankBatch(0, [RankFile(rank, rank, has_device=True)], count // RANKS) for rank in range(RANKS)]
    read: list[RankEvents] = []
    measures = [
        Measure("numpy sorts as many interval ends (the limit)", total, "events", limit_s),
        Measure(
            "events read from the database, on the aligned clock", total, "events",
            cpu_s(lambda: read.extend(events for batch in batches for _, events in read_events(store, batch))),
        ),
        Measure("phases, activities, overlap", total, "events", cpu_s(lambda: [phases(events) for events in read])),
    ]  # fmt: skip
    ordered, stated = matching(count, rng)
    arrivals = sum(map(len, ordered))
    measures += [
        Measure("matching by order, 64 ranks", arrivals, "arrivals", cpu_s(lambda: match(ordered))),
        Measure("matching by stated number, 64 ranks", arrivals, "arrivals", cpu_s(lambda: match(stated))),
    ]
    print("| what | CPU s | rate | to the limit |\n|---|---|---|---|")
    for measure in measures:
        print(measure.line(limit_s))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)
