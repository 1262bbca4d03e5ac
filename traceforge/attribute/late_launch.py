"""What a host does while its device waits for the next launch. Reads timeline.gap, raw.event and align.*; gives text.

Idea: a host that is busy with operations launches too slowly; one of which nothing is recorded meanwhile may sleep,
wait for a lock or run Python; one inside of a single long call to the runtime is held by that call. These need
different cures. It looks at the longest gaps of the rank that has most of them. Not handled: which lock, which Python:
only stacks tell.
"""

from dataclasses import dataclass

import polars as pl

from traceforge.align.clock_course import ClockCourse, read_course
from traceforge.attribute.bound_words import words_of
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.timeline.layers import length_ns, union
from traceforge.units import format_ns, format_share

_GAPS = """
WITH late AS (
  SELECT g.rank, g.start_ns, g.duration_ns, g.call, g.call_ns
  FROM timeline.gap AS g
  JOIN operation.judged_iteration USING (run_id, iteration)
  WHERE g.run_id = $1 AND g.cause = 'late_launch'
),
most AS (
  SELECT rank FROM late GROUP BY rank ORDER BY SUM(duration_ns) DESC, rank LIMIT 1
)
SELECT l.rank, r.source_id, l.start_ns, l.duration_ns, l.call, COALESCE(l.call_ns, 0) AS call_ns
FROM late AS l
JOIN most USING (rank)
JOIN align.rank AS r ON r.run_id = $1 AND r.rank = l.rank
ORDER BY l.duration_ns DESC, l.start_ns
LIMIT $2
"""

# What the host is recorded to do within them, on any thread; what merely encloses a stretch says nothing of it.
_HOST = """
WITH gap AS (
  SELECT UNNEST($2) AS raw_start_ns, UNNEST($3) AS raw_end_ns
)
SELECT GREATEST(e.raw_start_ns, g.raw_start_ns) AS start_ns,
  LEAST(e.raw_start_ns + e.duration_ns, g.raw_end_ns) AS end_ns
FROM raw.event AS e
JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
JOIN gap AS g ON e.raw_start_ns < g.raw_end_ns AND e.raw_start_ns + e.duration_ns > g.raw_start_ns
WHERE e.source_id = $1 AND e.phase = 'X' AND e.duration_ns > 0
  AND c.canonical_category IN ('cpu_op', 'cuda_runtime', 'cuda_driver', 'python_function')
"""

_SLOW = (
    "Launch-bound",
    "the device is idle because the host launches too slowly",
    (
        "Capture the step in a CUDA or HIP graph, compile it (torch.compile, jax.jit), fuse small kernels, or use "
        "larger batches."
    ),
)
_UNSEEN = ("Launch-bound", "the device is idle until the host launches more", _SLOW[2])
_HELD = (
    "Launch-bound",
    "the device is idle because calls to its runtime take long",
    (
        "Record after a warm-up: the first launches load code. Calls that stay slow wait for something: a full queue, "
        "a lock of the driver, a busy CPU."
    ),
)
_QUIET = (
    "Host-bound",
    "the device is idle and the host launches nothing",
    (
        "Record stacks (with_stack=True in torch.profiler, py-spy): Python between operations, sleeps and locks show "
        "no other way. If it is Python, CUDA or HIP graphs or a compiled step help."
    ),
)


@dataclass(frozen=True, slots=True)
class LateLaunches:
    """The host during the longest gaps that end with a late launch.

    Attributes:
        rank: whose host.
        host_share: 0..1 of them in which an operation or a call to the runtime is recorded on any thread.
        call: call to the runtime that fills most of them, None where there is none.
        call_share: 0..1 of them that it fills.
        call_ns: how long it fills a gap in which it is, on average, ns.
    """

    rank: int
    host_share: float
    call: str | None
    call_share: float
    call_ns: int

    @property
    def is_held(self) -> bool:
        """Is the host inside of one long call for most of the time?"""
        return self.call_share >= thresholds.LONG_CALL_SHARE and self.call_ns >= thresholds.LONG_CALL_NS

    @property
    def is_quiet(self) -> bool:
        """Is nothing of the host recorded for most of the time?"""
        return self.host_share < thresholds.QUIET_HOST_SHARE

    @property
    def phrases(self) -> tuple[str, str, str]:
        """Title, what happens, and the next step."""
        if self.is_held:
            return _HELD
        return _QUIET if self.is_quiet else _SLOW

    @property
    def sentence(self) -> str:
        """What the host does meanwhile; empty where it just launches."""
        if self.is_held:
            share, each = format_share(self.call_share), format_ns(self.call_ns)
            return f"Calls to {str(self.call)[:80]} fill {share} of the longest gaps, {each} in each."
        if self.is_quiet:
            share = format_share(1 - self.host_share)
            return f"In {share} of the longest gaps no operation and no call to the runtime is recorded on the host."
        return ""


def phrases(late: LateLaunches | None) -> tuple[str, str, str]:
    """Title, what happens, and the next step, also where nobody looked at the host."""
    return late.phrases if late else _UNSEEN


def phrase_of(bound: str, late: LateLaunches | None) -> str:
    """What happens during a part of the step, such as `the device is idle while the host loads data`."""
    return phrases(late)[1] if bound == "launch_bound" else words_of(bound)[1]


def late_launches(store: Store, run_id: int) -> LateLaunches | None:
    """What the host does of the run's rank that has most such gaps; None where there are none."""
    gaps = store.query(_GAPS, [run_id, thresholds.GAPS_LOOKED_AT])
    if gaps.is_empty():
        return None
    rank, total = int(gaps["rank"][0]), int(gaps["duration_ns"].sum())
    called = gaps.drop_nulls("call").group_by("call").agg(pl.col("call_ns").sum(), gaps=pl.len())
    call, call_ns, count = max(called.iter_rows(), key=lambda row: (row[1], row[0]), default=(None, 0, 1))
    recorded = _recorded_ns(store, gaps, read_course(store, run_id, rank))
    return LateLaunches(rank, recorded / total, call, call_ns / total, call_ns // count)


def _recorded_ns(store: Store, gaps: pl.DataFrame, course: ClockCourse) -> int:
    """How long anything of the host is recorded within these gaps, ns."""
    start_ns, end_ns = (
        course.raw(edge.to_numpy()) for edge in (gaps["start_ns"], gaps["start_ns"] + gaps["duration_ns"])
    )
    found = store.query(_HOST, [int(gaps["source_id"][0]), start_ns.tolist(), end_ns.tolist()])
    return length_ns(union(found["start_ns"].to_numpy(), found["end_ns"].to_numpy()))
