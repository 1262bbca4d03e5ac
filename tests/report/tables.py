"""Small jobs as the stages would leave them. In: a `Job`. Out: a store in memory with every table the report reads.

The tables are those of the stages' own `.sql`. Every job is a plain
data-parallel step: compute, one all-reduce, a little host time. A late rank computes longer; the others wait.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache

import polars as pl

from traceforge.api import STAGES
from traceforge.store.database import Store
from traceforge.store.stage import build_stage

MS = 1_000_000


@cache
def _statements() -> tuple[str, ...]:
    """Statements that make the stages' tables, as the stages themselves make them from an empty database."""
    with Store(None, is_kept=False) as store:
        for stage in STAGES:
            build_stage(store, f"traceforge.{stage}")
        tables = store.query(
            "SELECT schema_name, sql FROM duckdb_tables()"
            " WHERE database_name = current_database() AND schema_name NOT IN ('main', 'meta', 'raw')"
        )
        views = store.query(
            "SELECT sql FROM duckdb_views() WHERE database_name = current_database() AND NOT internal"
            " AND schema_name NOT IN ('main', 'meta', 'raw') ORDER BY view_oid"
        )
    schemas = [f"CREATE SCHEMA {name}" for name in sorted(set(tables["schema_name"]))]
    nullable = [sql.replace(" NOT NULL", "") for sql in tables["sql"]]  # rows of tests state only what matters
    return (*schemas, *nullable, *views["sql"])


def create_tables(store: Store) -> None:
    """Every derived table, empty."""
    for statement in _statements():
        store.execute(statement)


@dataclass(frozen=True)
class Job:
    """A job to be laid out; times in ns.

    Attributes:
        late_rank: computes `late_ns` longer from iteration `late_from` on; None for a healthy job.
        warmup: leading iterations marked as warm-up.
        pieces: compute and host pieces an iteration is cut into.
    """

    ranks: int = 4
    iterations: int = 8
    late_rank: int | None = 2
    late_ns: int = 8 * MS
    late_from: int = 3
    warmup: int = 1
    ranks_per_host: int = 2
    pieces: int = 1
    run_name: str = "job42"
    host: str = "node"
    cause: str = "slow_compute"
    path: str = "traces/rank"
    communicator: str = "mesh_dp"
    residual_ns: int = 20_000


@dataclass
class Rows:
    """Rows by table, collected before they are stored in one go."""

    by_table: dict[str, list[dict[str, object]]] = field(default_factory=dict)

    def add(self, table: str, **row: object) -> None:
        self.by_table.setdefault(table, []).append({"run_id": 1, **row})

    def store(self, store: Store) -> None:
        for table, rows in self.by_table.items():
            store.append(table, pl.DataFrame(rows, infer_schema_length=None))


def empty_store(run_name: str = "job42", world_size: int | None = 4) -> Store:
    """A run of which nothing is known but its name."""
    store = Store(None, is_kept=False)
    create_tables(store)
    store.execute("INSERT INTO meta.run VALUES (1, ?, ?)", [run_name, world_size])
    return store


def store_of(job: Job) -> Store:
    """A run with every stage's tables filled."""
    store = empty_store(job.run_name, job.ranks)
    rows = Rows()
    _sources(rows, job)
    for iteration in range(job.iterations):
        _iteration(rows, job, iteration)
    _communicator(rows, job)
    _pace(rows, job)
    _diagnosis(rows, job)
    _outlook(rows, job)
    rows.store(store)
    return store


@lru_cache(maxsize=4)
def _kept(job: Job) -> Store:
    return store_of(job)


@contextmanager
def borrowed(job: Job) -> Iterator[Store]:
    """A run with every stage's tables filled, for one test: what it changes is undone afterwards."""
    store = _kept(job)
    store.execute("BEGIN TRANSACTION")
    try:
        yield store
    finally:
        store.execute("ROLLBACK")


def jitter_ns(rank: int, iteration: int) -> int:
    """Scatter of compute time without a random generator: below 1 ms, the same for the same place."""
    return (rank * 7919 + iteration * 104_729 + (rank * 31 ^ iteration * 17) ** 2) % 97 * MS // 100


def _host(job: Job, rank: int) -> str:
    return f"{job.host}{rank // job.ranks_per_host}"


def _sources(rows: Rows, job: Job) -> None:
    rows.add(
        "timeline.coverage", ranks=job.ranks, truncated_ranks=0, job_ranks=job.ranks, collectives=job.iterations,
        complete_collectives=job.iterations, unsplit_share=0.0, is_split=True,
    )  # fmt: skip
    for rank in range(job.ranks):
        rows.add(
            "meta.source", source_id=rank, kind="kineto", path=f"{job.path}{rank}.json.gz", rank=rank,
            rank_origin="metadata", host=_host(job, rank), status="used", event_count=1000, stored_count=999,
            size_bytes=123_456, content_hash=f"{rank:064x}",
        )  # fmt: skip
        rows.add("align.rank", rank=rank, source_id=rank, host=_host(job, rank), has_device=True)
        rows.add(
            "align.clock", rank=rank, host=_host(job, rank), offset_ns=rank * 1_700_000, drift_ppb=0,
            residual_ns=0 if rank == 0 else job.residual_ns, anchors=job.iterations,
            status="reference" if rank == 0 else "fitted",
        )  # fmt: skip
    rows.add(
        "meta.issue", source_id=0, stage="ingest", code="kineto_event_without_timestamp", severity="warning",
        count=1, lost_events=1, first_at="event 17", detail="Events without a time cannot be placed.",
    )  # fmt: skip


def _compute_ns(job: Job, rank: int, iteration: int) -> int:
    late = rank == job.late_rank and iteration >= job.late_from
    first = 40 * MS if iteration < job.warmup else 0
    return 80 * MS + jitter_ns(rank, iteration) + first + (job.late_ns if late else 0)


def _iteration(rows: Rows, job: Job, iteration: int) -> None:
    start = iteration * 200 * MS
    computes = {rank: _compute_ns(job, rank, iteration) for rank in range(job.ranks)}
    input_ns, transfer_ns, runtime_ns = 2 * MS, 20 * MS, 3 * MS
    arrivals = {rank: start + input_ns + compute for rank, compute in computes.items()}
    first, last = min(arrivals.values()), max(arrivals.values())
    end = last + transfer_ns
    duration = end + runtime_ns - start
    rows.add(
        "timeline.iteration", iteration=iteration, start_ns=start, duration_ns=duration, ranks=job.ranks,
        is_warmup=iteration < job.warmup, is_partial=False,
    )  # fmt: skip
    for rank, compute in computes.items():
        wait = last - arrivals[rank]
        rows.add(
            "timeline.rank_iteration", iteration=iteration, rank=rank, start_ns=start, duration_ns=duration,
            hidden_communication_ns=5 * MS,
        )  # fmt: skip
        phases = [("input", input_ns), *_pieces(job, compute), ("wait", wait), ("transfer", transfer_ns)]
        _phases(rows, iteration, rank, start, [*phases, ("runtime", runtime_ns)])
        rows.add(
            "timeline.arrival", collective_id=iteration, match_id=iteration, iteration=iteration, rank=rank,
            arrival_ns=arrivals[rank], end_ns=end, late_ns=arrivals[rank] - first, wait_ns=wait,
            below_resolution=arrivals[rank] - first < 3 * job.residual_ns,
        )  # fmt: skip
    last_rank = min(rank for rank, arrival in arrivals.items() if arrival == last)
    rows.add(
        "timeline.collective", collective_id=iteration, match_id=iteration, iteration=iteration, communicator_id=0,
        sequence=iteration, op="all_reduce", size_bytes=100_000_000, dtype="BFloat16", first_arrival_ns=first,
        last_arrival_ns=last, end_ns=end, last_rank=last_rank, skew_ns=last - first, transfer_ns=transfer_ns,
        bus_bandwidth_bytes_per_s=7.5e9, complete=True,
    )  # fmt: skip
    if iteration >= job.warmup:
        _ledger(rows, job, iteration, computes, duration)


def _pieces(job: Job, compute_ns: int) -> list[tuple[str, int]]:
    if job.pieces == 1:
        return [("compute", compute_ns)]
    gap = compute_ns // (10 * job.pieces)
    whole = compute_ns // job.pieces
    pieces = [piece for _ in range(job.pieces) for piece in (("compute", whole - gap), ("idle", gap))]
    return [*pieces, ("compute", compute_ns - whole * job.pieces)]


def _phases(rows: Rows, iteration: int, rank: int, start: int, phases: list[tuple[str, int]]) -> None:
    totals: dict[str, int] = {}
    for phase, length in phases:
        if length:
            rows.add(
                "timeline.segment", iteration=iteration, rank=rank, phase=phase, start_ns=start, duration_ns=length
            )
        totals[phase] = totals.get(phase, 0) + length
        start += length
    for phase, length in totals.items():
        rows.add("timeline.phase", iteration=iteration, rank=rank, phase=phase, duration_ns=length)


def _ledger(rows: Rows, job: Job, iteration: int, computes: dict[int, int], duration: int) -> None:
    ordered = sorted(computes.values())
    latest = max(computes, key=lambda rank: (computes[rank], -rank))
    excess = ordered[-1] - ordered[len(ordered) // 2]
    unexplained = excess // 10
    rows.add("attribute.excess", iteration=iteration, reference_ns=duration - excess, excess_ns=excess)
    mode = "synchronization_amplification"
    rows.add(
        "attribute.delay", iteration=iteration, rank=latest, mode=mode, cause=job.cause,
        delay_ns=excess - unexplained,
    )  # fmt: skip
    rows.add(
        "attribute.delay", iteration=iteration, rank=None, mode="unexplained", cause="unexplained",
        delay_ns=unexplained,
    )  # fmt: skip


def _communicator(rows: Rows, job: Job) -> None:
    rows.add(
        "timeline.communicator", communicator_id=0, ranks=list(range(job.ranks)), size=job.ranks, name="0",
        description=job.communicator,
    )  # fmt: skip


def _pace(rows: Rows, job: Job) -> None:
    judged = [row for row in rows.by_table.get("timeline.iteration", []) if not row["is_warmup"]]
    mean_ns = round(sum(int(str(row["duration_ns"])) for row in judged) / len(judged)) if judged else None
    if judged:
        rows.add("attribute.pace", iterations=len(judged), duration_ns=mean_ns, every_ns=200 * MS, pace_ns=mean_ns)


def _diagnosis(rows: Rows, job: Job) -> None:
    if job.late_rank is None:
        rows.add(
            "attribute.verdict", is_unbalanced=False, is_common=False, kind="nothing_significant", confidence="medium",
            headline="Nothing significant: no rank and no transfer stands out of this run's own noise.",
            explanation="7 iterations were judged; they take 106.0 ms on average.",
            next_step="If it still scales badly, compare with a run at another scale.",
        )  # fmt: skip
        return
    owned = _owned_by_the_late_rank(rows, job)
    summary = (
        f"Rank {job.late_rank} computes longer than its peers before they communicate, "
        f"in {job.iterations - job.late_from} of {job.iterations - job.warmup} iterations."
    )
    next_step = f"Compare clocks and thermals of rank {job.late_rank} with another rank's."
    rows.add(
        "attribute.verdict", is_unbalanced=False, is_common=False, kind="finding", headline=summary, confidence="high",
        next_step=next_step,
        explanation=f"{job.iterations - job.warmup} iterations were judged, against the reference of the run itself.",
    )  # fmt: skip
    findings = [
        ("synchronization_amplification", job.cause, str(job.late_rank), owned, "high", summary, "persistent"),
        ("runtime_control_plane", "garbage_collection", "1", MS, "medium", "Rank 1 collects garbage.", "transient"),
        ("runtime_control_plane", "input_stall", "3", MS // 2, "low", "Rank 3 waits for its input.", "transient"),
    ]
    for number, (mode, cause, subject, delay, confidence, text, pattern) in enumerate(findings):
        rows.add(
            "attribute.finding", finding_id=number, mode=mode, cause=cause, subject_kind="rank", subject=subject,
            delay_ns_per_iteration=delay, delay_low_ns=delay * 9 // 10, delay_high_ns=delay * 11 // 10,
            share=delay / (111 * MS), confidence=confidence, gain_if_fixed=0.8 * delay / (111 * MS),
            first_iteration=job.late_from, last_iteration=job.iterations - 1, pattern=pattern, summary=text,
            next_step=next_step, moment_iteration=job.late_from + number, moment_rank=int(subject),
        )  # fmt: skip
        for direction, statement in (
            ("for", f"The delay of finding {number} stands out of the noise."),
            ("against", f"So far only one run shows finding {number}."),
        ):
            rows.add("attribute.evidence", finding_id=number, direction=direction, statement=statement)


def _owned_by_the_late_rank(rows: Rows, job: Job) -> int:
    """Mean delay over the judged iterations, as the ledger has it."""
    own = [int(str(row["delay_ns"])) for row in rows.by_table["attribute.delay"] if row["rank"] == job.late_rank]
    return sum(own) // (job.iterations - job.warmup)


def _outlook(rows: Rows, job: Job) -> None:
    policies = [
        ("none", "", 1.0, None, None, 0.0, "no_effect", "The run as it was."),
        ("bounded_delay", "window=3,threshold=0.02,gain=0.5,max_delay=0.1", 0.998, 0.99, 1.004, 0.004, "no_effect",
         "No coupling between arrival and transfer was found; the ceiling is below 1 %."),
        ("random", "max_delay=0.1", 0.96, 0.95, 0.97, 0.004, "harm", "Delays that know nothing only cost time."),
        ("adaptive", "", 1.001, 0.98, 1.02, 0.004, "not_identifiable", "Too few iterations."),
    ]  # fmt: skip
    for policy, parameters, ratio, low, high, ceiling, verdict, reason in policies:
        rows.add(
            "replay.outcome", policy=policy, parameters=parameters, throughput_ratio=ratio,
            throughput_ratio_low=low, throughput_ratio_high=high, cv=0.03, p50_ns=110 * MS, p95_ns=114 * MS,
            p99_ns=115 * MS, gain_ceiling=ceiling, verdict=verdict, reason=reason,
        )  # fmt: skip
    rows.add("forecast.missing_measurement", item="a run at another number of ranks", why="One size gives no curve.")
    rows.add(
        "forecast.missing_measurement",
        item="the batch size of each run",
        why="Sizes compare only at equal work a rank.",
    )
    rows.add(
        "forecast.point", run_name=job.run_name, ranks=job.ranks, compute_ns=80 * MS, exposed_transfer_ns=20 * MS,
        waiting_ns=6 * MS, copy_ns=0, input_ns=0, runtime_ns=0, idle_ns=0,
    )  # fmt: skip
