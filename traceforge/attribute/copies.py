"""What is copied while nothing else runs. Reads timeline.segment, timeline.gap, raw.event and align.*; gives text.

Idea: time that copies take alone is either a copy that runs, which has a direction, a size and a pace, or memory that
is set, or the host inside of a copy call while nothing runs. The largest of these is named. Not handled: who asked for
it.
"""

from dataclasses import dataclass, replace

import polars as pl

from traceforge.store.database import Store
from traceforge.timeline.layers import length_ns, union
from traceforge.units import format_bytes, format_share

# Stretches in which only copies run, each with the copies that do.
_ALONE = """
WITH copied AS (
  SELECT r.rank, e.name AS direction, c.canonical_category = 'gpu_memset' AS is_set, e.event_id, e.size_bytes,
    e.duration_ns,
    e.raw_start_ns - align.ahead_ns(e.raw_start_ns, p) AS start_ns
  FROM raw.event AS e
  JOIN align.rank AS r USING (source_id)
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
  ASOF JOIN align.clock_piece AS p ON p.run_id = r.run_id AND p.rank = r.rank AND e.raw_start_ns >= p.raw_from_ns
  WHERE r.run_id = $1 AND c.class = 'copy' AND e.stream IS NOT NULL AND e.duration_ns > 0
),
alone AS (
  SELECT rank, start_ns, start_ns + duration_ns AS end_ns
  FROM timeline.segment
  JOIN operation.judged_iteration USING (run_id, iteration)
  WHERE run_id = $1 AND phase = 'copy'
)
SELECT a.rank, c.direction, c.is_set, c.event_id, c.size_bytes, c.duration_ns,
  GREATEST(a.start_ns, c.start_ns) AS start_ns, LEAST(a.end_ns, c.start_ns + c.duration_ns) AS end_ns
FROM alone AS a
JOIN copied AS c ON c.rank = a.rank AND c.start_ns < a.end_ns AND c.start_ns + c.duration_ns > a.start_ns
ORDER BY a.rank, c.direction, start_ns
"""

# All time that copies take alone, and that of it in which the host is inside of a copy call.
_SPENT = """
SELECT rank, CAST(SUM(duration_ns) AS BIGINT) AS duration_ns,
  CAST(COALESCE(SUM(duration_ns) FILTER (WHERE NOT runs), 0) AS BIGINT) AS waiting_ns
FROM (
  SELECT run_id, iteration, rank, duration_ns, true AS runs FROM timeline.segment WHERE phase = 'copy'
  UNION ALL
  SELECT run_id, iteration, rank, duration_ns, false FROM timeline.gap WHERE cause = 'copy_wait'
)
JOIN operation.judged_iteration USING (run_id, iteration)
WHERE run_id = $1
GROUP BY rank
"""

_PAGEABLE = (
    "Copy from and to pinned memory (pin_memory=True in the data loader) with non_blocking=True, on a stream of its "
    "own, or keep data on the device."
)
_PINNED = "Copy on a stream of its own while kernels run, or keep data on the device."
_SET = "Set less memory: zero_grad(set_to_none=True), empty() for what is overwritten, buffers that are made once."
_WITHIN = "Avoid copies within the device: contiguous(), clone() and cat() in the step, layouts that do not match."


@dataclass(frozen=True, slots=True)
class Copies:
    """What takes most of the time of copies alone.

    Attributes:
        direction: kind of copy, or of setting memory, as the trace names it; None where it is the host inside of a copy
            call.
        share: 0..1 of the time of copies alone that it takes.
        copies: how many of the direction run alone at any time.
        size_bytes: bytes of those whose size was recorded.
        sized: how many these are.
        sized_ns: their duration, ns.
        is_set: whether memory is set and nothing copied.
    """

    direction: str | None
    share: float
    copies: int = 0
    size_bytes: int = 0
    sized: int = 0
    sized_ns: int = 0
    is_set: bool = False

    @property
    def sentence(self) -> str:
        """Direction, size and pace."""
        share = format_share(self.share)
        if self.direction is None:
            part = "All" if share == format_share(1) else share
            return f"{part} of this time the host is inside of a call that copies, and nothing else runs."
        whose = "this" if self.is_set else "the copies'"
        one, many = ("memory set", "memory sets") if self.is_set else ("copy", "copies")
        number = f"1 {one}" if self.copies == 1 else f"{self.copies:,} {many}"
        text = f"{share} of {whose} time is {self.direction[:80]}: {number}"
        if not self.sized:
            return f"{text}, sizes not recorded."
        mean, pace = "" if self.copies == 1 else " on average", format_bytes(self.size_bytes / self.sized_ns * 1e9)
        return f"{text} of {format_bytes(self.size_bytes / self.sized)}{mean} at {pace}/s."

    @property
    def next_step(self) -> str | None:
        """What helps with this direction; None where the direction does not tell."""
        if self.is_set:
            return _SET
        name = (self.direction or "").lower()
        if "pageable" in name:
            return _PAGEABLE
        if "pinned" in name:
            return _PINNED
        return _WITHIN if "dtod" in name else None


class CopiesAlone:
    """The copies of a run that run alone, by rank."""

    def __init__(self, store: Store, run_id: int) -> None:
        self._spent = store.query(_SPENT, [run_id])
        self._alone = store.query(_ALONE, [run_id])

    def of(self, rank: int | None) -> Copies | None:
        """What takes most of their time on a rank or, without one, on all of them; None where there is none."""
        spent, alone = (
            frame if rank is None else frame.filter(pl.col("rank") == rank) for frame in (self._spent, self._alone)
        )
        total = int(spent["duration_ns"].sum())
        if not total:
            return None
        found = [Copies(None, int(spent["waiting_ns"].sum()) / total)]
        for (direction, is_set), own in alone.group_by("direction", "is_set", maintain_order=True):
            found.append(replace(_of_direction(str(direction), own, total), is_set=bool(is_set)))
        return max(found, key=lambda one: (one.share, one.direction or ""))


def _of_direction(direction: str, alone: pl.DataFrame, total_ns: int) -> Copies:
    """Copies of one direction; those that run at once on a rank take their time once."""
    lasting = sum(
        length_ns(union(own["start_ns"].to_numpy(), own["end_ns"].to_numpy())) for _, own in alone.group_by("rank")
    )
    each = alone.unique(["rank", "event_id"])
    sized = each.drop_nulls("size_bytes")
    size_bytes, sized_ns = (int(sized[name].sum()) for name in ("size_bytes", "duration_ns"))
    return Copies(direction, lasting / total_ns, each.height, size_bytes, sized.height, sized_ns)
