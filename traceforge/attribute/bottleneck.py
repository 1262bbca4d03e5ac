"""Where a mean iteration goes. Reads phases, gaps and kernels; fills attribute.bottleneck.

Idea: the phases of a rank fill its iterations without overlap; the time of its device without work is divided by the
cause of each gap, the time of its kernels by what limits them. Kernels that run at once share the time in proportion
to their durations. Rounding to whole ns is done once, so that parts still sum.
What a pipeline's rank waits for other stages is its bubble, not waiting or transfer. Exposed communication is divided
at the line rate of its links, where that is known. Not handled: bubbles of pipelines whose turns are unknown.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import polars as pl

from traceforge.attribute.bottleneck_parts import divided, kernel_parts
from traceforge.attribute.exposed import line_rate_shares
from traceforge.store.database import Store

# Time of the judged iterations of each rank by phase, by what the host did meanwhile, and by gap.
_SPENT = """
WITH gap AS (
  SELECT run_id, rank, cause, CAST(SUM(duration_ns) AS BIGINT) AS duration_ns
  FROM timeline.gap
  JOIN operation.judged_iteration USING (run_id, iteration)
  GROUP BY ALL
),
-- Summed before ranks are joined: DuckDB would keep all segments, millions of them, as the smaller side of that.
spent AS (
  SELECT run_id, rank, phase,
    -- While a rank communicates its host explains nothing.
    CASE WHEN phase NOT IN ('wait', 'transfer', 'communication') THEN activity END AS activity,
    CAST(SUM(duration_ns) AS BIGINT) AS duration_ns
  FROM timeline.segment
  JOIN operation.judged_iteration USING (run_id, iteration)
  GROUP BY ALL
),
bubble AS (
  SELECT run_id, rank, phase, CAST(SUM(duration_ns) AS BIGINT) AS duration_ns
  FROM timeline.bubble_phase
  JOIN operation.judged_iteration USING (run_id, iteration)
  GROUP BY ALL
)
SELECT s.run_id, s.rank, r.has_device, s.phase, s.activity, NULL AS cause,
  s.duration_ns - COALESCE(b.duration_ns, 0) AS duration_ns
FROM spent AS s
JOIN align.rank AS r USING (run_id, rank)
LEFT JOIN bubble AS b USING (run_id, rank, phase)
WHERE NOT r.has_device OR s.phase NOT IN ('input', 'runtime', 'idle')
UNION ALL
SELECT run_id, rank, r.has_device, 'bubble', NULL, NULL, b.duration_ns
FROM bubble AS b
JOIN align.rank AS r USING (run_id, rank)
UNION ALL
SELECT run_id, rank, true, NULL, NULL, cause, duration_ns FROM gap
ORDER BY run_id, rank, phase, activity, cause
"""

_KERNELS = """
SELECT k.run_id, k.rank, k.operation, k.shapes, k.duration_ns, k.p50_ns, k.arithmetic_duration_ns, k.bound,
  k.work_basis
FROM operation.kernel AS k
WHERE k.joined <> 'host' AND k.class = 'compute'
ORDER BY k.run_id, k.rank
"""

# Judged iterations of each rank, its own time in them and the job's.
_ITERATIONS = """
SELECT r.run_id, r.rank, COUNT(*) AS iterations, CAST(SUM(r.duration_ns) AS BIGINT) AS own_ns,
  CAST(SUM(i.duration_ns) AS BIGINT) AS job_ns,
  (SELECT BOOL_OR(c.status = 'unaligned') FROM align.clock AS c WHERE c.run_id = r.run_id) AS is_unaligned,
  ANY_VALUE(d.device) AS device, ANY_VALUE(d.source) AS source
FROM timeline.rank_iteration AS r
JOIN timeline.iteration AS i USING (run_id, iteration)
JOIN operation.judged_iteration AS j USING (run_id, iteration)
LEFT JOIN operation.device AS d USING (run_id, rank)
GROUP BY r.run_id, r.rank
ORDER BY r.run_id, r.rank
"""

_OF_PHASE = MappingProxyType(
    {
        "transfer": "communication_bound",
        "communication": "communication_bound",
        "wait": "imbalance_bound",
        "bubble": "pipeline_bubble",
        "copy": "copy_bound",
        "input": "input_bound",
        "idle": "idle",
    }
)
_OF_GAP = MappingProxyType(
    {
        "data_loading": "input_bound",
        "copy_wait": "copy_bound",
        "late_launch": "launch_bound",
        "synchronisation": "synchronisation_bound",
        "unknown": "unexplained",
    }
)
# What a host without a device does under a name of its own.
_OF_ACTIVITY = MappingProxyType(
    {
        **{name: name for name in ("checkpoint", "garbage_collection", "allocator", "system_call", "mpi_call")},
        "synchronisation": "synchronisation_bound",
        "launch": "launch_bound",
    }
)
_UNAVOIDABLE = frozenset({"ideal", "unmodelled_kernels", "host_compute", "stagger", "unexplained"})
_BASIS = MappingProxyType(
    {
        "ideal": "arithmetic of modelled kernels at the peak of the device",
        "compute_bound": "kernels limited by arithmetic, above the ideal",
        "memory_bound": "kernels limited by the device's memory, above the ideal of their arithmetic",
        "small_kernels": "kernels too short to fill the device",
        "unmodelled_kernels": "kernels whose work or whose device's peak is not known",
        "host_compute": "host operations; no device was recorded",
        "communication_bound": "only communication runs, and all recorded ranks have arrived",
        "communication_at_line_rate": "what the same communication takes at the line rate of its links "
        "(attribute.line_rate)",
        "imbalance_bound": "only communication runs, and another rank has not arrived",
        "pipeline_bubble": "only messages between stages run, or collectives in which stages meet",
        "copy_bound": "only copies and memory sets run, or the host is inside of a copy call while nothing runs",
        "input_bound": "nothing runs, and the host loads data",
        "launch_bound": "nothing runs, and what runs next was launched later than that",
        "synchronisation_bound": "nothing runs, and the host is inside of a call that waits for the device",
        "device_queue": "nothing runs although work was launched: streams, events or the device hold it up",
        "system_call": "nothing runs, and the host is inside of a call to the operating system",
        "mpi_call": "nothing runs, and the host is inside of a call to MPI, where it may wait for other ranks",
        "idle": "nothing runs, and the host does nothing under a name",
        "stagger": "the rank's own step begins later or ends earlier than the job's",
        "unexplained": "the trace does not say why nothing runs",
    }
)
_AT_MOST = "; of products of groups all rows are counted, free ones among them"
_FROM_ONE_RANK = "only communication runs; from one rank transfer and waiting for others cannot be told apart"
_ABOVE_LINE_RATE = "only communication runs, for longer than it would at the line rate of its links"

Rows = list[tuple[object, ...]]


def rows(store: Store) -> Rows:
    """Parts of each rank, and of the job."""
    spent, kernels = (store.query(query).rows_by_key(("run_id", "rank"), named=True) for query in (_SPENT, _KERNELS))
    at_line_rate = line_rate_shares(store)
    result: Rows = []
    for (run_key,), ranks in store.query(_ITERATIONS).group_by("run_id", maintain_order=True):
        run_id, of_job = int(str(run_key)), Counter[str]()
        alone, is_at_most = ranks.height == 1, False
        for rank in ranks.iter_rows(named=True):
            place = (run_id, rank["rank"])
            parts = _parts(spent.get(place, []), kernels.get(place, []))
            parts = _divided_at_line_rate(parts, at_line_rate.get(place))
            has_free_rows = any(row["work_basis"] == "stacked_rows" for row in kernels.get(place, []))
            is_at_most |= has_free_rows
            result += _rows_of(place, parts, rank["own_ns"], rank["iterations"], _notes(rank, alone, has_free_rows))
            of_job.update(parts)
        result += _of_job(run_id, of_job, ranks, is_at_most)
    return result


def _parts(spent: Sequence[Mapping[str, Any]], kernels: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Time by part over all judged iterations, ns; sums to the rank's."""
    found = Counter[str]()
    for row in spent:
        is_kernels = row["phase"] == "compute" and row["has_device"]
        found.update(kernel_parts(kernels, row["duration_ns"]) if is_kernels else {_name(row): row["duration_ns"]})
    return dict(found)


def _divided_at_line_rate(parts: dict[str, int], share: float | None) -> dict[str, int]:
    """Exposed communication in two: what it takes at line rate, and what it takes above that."""
    exposed_ns = parts.get("communication_bound", 0)
    if share is None or not exposed_ns:
        return parts
    at_line_rate_ns = round(exposed_ns * share)
    return parts | {
        "communication_at_line_rate": at_line_rate_ns,
        "communication_bound": exposed_ns - at_line_rate_ns,
    }


def _name(row: Mapping[str, Any]) -> str:
    if row["cause"] is not None:
        return _OF_GAP.get(row["cause"], row["cause"])
    if row["phase"] == "compute":
        return "host_compute"
    return _OF_PHASE.get(row["phase"]) or _OF_ACTIVITY.get(row["activity"], "unexplained")


def _notes(rank: Mapping[str, Any], alone: bool, is_at_most: bool) -> dict[str, str]:
    """What is special about the parts of this rank; `is_at_most` where rows of groups may be free."""
    notes = {"communication_bound": _FROM_ONE_RANK} if alone else {}
    if rank["source"] is not None:
        notes["ideal"] = f"{_BASIS['ideal']} ({rank['source']}){_AT_MOST if is_at_most else ''}"
    elif rank["device"] is not None:
        notes["ideal"] = "not measured: the peaks of this device are not known"
    else:
        notes["ideal"] = "not measured: the trace does not name the device"
    return notes


def _of_job(run_id: int, parts: dict[str, int], ranks: pl.DataFrame, is_at_most: bool) -> Rows:
    own, job, iterations = (int(ranks[name].sum()) for name in ("own_ns", "job_ns", "iterations"))
    first = ranks.row(0, named=True)
    notes = _notes(first, ranks.height == 1, is_at_most)
    if ranks.height == 1 or first["is_unaligned"] or job < own:
        # Without a common clock only the ranks' own steps have a length.
        return _rows_of((run_id, None), parts, own, iterations, notes)
    return _rows_of((run_id, None), {**parts, "stagger": job - own}, job, iterations, notes)


def _rows_of(
    place: tuple[int, int | None], parts: Mapping[str, int], total_ns: int, iterations: int, notes: Mapping[str, str]
) -> Rows:
    """Rows of one rank or the job: parts of an iteration, the largest avoidable one first."""
    mean = round(total_ns / iterations)
    means = divided(mean, {name: part_ns for name, part_ns in parts.items() if part_ns})
    if "communication_at_line_rate" in parts:
        notes = {"communication_bound": _ABOVE_LINE_RATE, **notes}
    known = sorted(means.items(), key=lambda part: (part[0] in _UNAVOIDABLE, -part[1], part[0]))
    shown: Rows = []
    for number, (name, part_ns) in enumerate(known, start=1):
        basis = notes.get(name) or _BASIS.get(name, "nothing runs, and the host does this")
        share = part_ns / mean if mean else 0.0
        shown.append((*place, number, name, name not in _UNAVOIDABLE, part_ns, share, basis))
    if "ideal" not in parts and any(name.endswith("kernels") for name in parts):
        why = notes["ideal"] if notes["ideal"].startswith("not") else "not measured: no kernel's arithmetic is known"
        shown.append((*place, len(shown) + 1, "ideal", False, None, None, why))
    return shown
