"""What moves data at the device's memory, and how fast. Reads operation.kernel and operation.device; gives text.

Idea: work that is bound by memory is as fast as it can be where its bytes move at the memory's peak; the operation with
most of its time is named with its own pace. Bytes that a cache holds move faster than the peak. Not handled: kernels
whose bytes are not known, and the kernels that help one whose bytes are.
"""

from collections.abc import Mapping
from typing import Any

import polars as pl

from traceforge.store.database import Store
from traceforge.units import format_bytes, format_share

_MOVED = """
SELECT k.rank, COALESCE(k.operation, k.kernel) AS name, CAST(SUM(k.bytes) AS BIGINT) AS bytes,
  CAST(SUM(k.duration_ns) AS BIGINT) AS duration_ns, CAST(SUM(k.memory_duration_ns) AS BIGINT) AS memory_duration_ns
FROM operation.kernel AS k
WHERE k.run_id = ? AND k.bound = 'memory' AND k.class = 'compute' AND k.duration_ns > 0
GROUP BY k.rank, COALESCE(k.operation, k.kernel)
ORDER BY k.rank, duration_ns DESC, name
"""


class MemoryBoundWork:
    """The memory-bound work of a run, by rank."""

    def __init__(self, store: Store, run_id: int) -> None:
        self._rows = store.query(_MOVED, [run_id])

    def sentence(self, rank: int | None) -> str:
        """How near that of a rank or, without one, of all comes to the memory's peak; empty where there is none."""
        rows = self._rows if rank is None else self._rows.filter(pl.col("rank") == rank)
        if rows.is_empty():
            return ""
        sums = rows.group_by("name", maintain_order=True).agg(pl.exclude("rank", "name").sum())
        largest = sums.sort("duration_ns", descending=True, maintain_order=True).row(0, named=True)
        total = sums.select(pl.exclude("name").sum()).row(0, named=True)
        pace, share = total["bytes"] * 1e9 / total["duration_ns"], largest["duration_ns"] / total["duration_ns"]
        text = f"Memory-bound operations move {format_bytes(pace)}/s, {_of_peak(total)}; "
        text += f"{format_share(share)} of their time is {largest['name'][:80]}"
        return f"{text}, {_of_peak(largest)}." if share < 1 else f"{text}."


def _of_peak(work: Mapping[str, Any]) -> str:
    """Its pace as a share of the memory's; beyond it the bytes came from a cache."""
    share = work["memory_duration_ns"] / work["duration_ns"]
    return f"{format_share(share)} of the memory's peak" if share <= 1 else "above the memory's peak (out of a cache)"
