"""What moves data at the device's memory, and how fast. Reads operation.kernel and operation.device; gives text.

Idea: work that is bound by memory is as fast as it can be where its bytes move at the memory's peak; the operation with
most of its time is named with its own pace. Bytes that a cache holds move faster than the peak. Not handled: kernels
whose bytes are not known, and the kernels that help one whose bytes are.
"""

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class MemoryWork:
    """Operations that are bound by memory.

    Attributes:
        bytes_per_s: how fast they move their bytes.
        peak_share: of the pace of the device's memory.
        largest: the operation with most of their time.
        largest_share: of their time, 0..1.
        largest_peak_share: its pace as a share of the memory's.
    """

    bytes_per_s: float
    peak_share: float
    largest: str
    largest_share: float
    largest_peak_share: float

    @property
    def sentence(self) -> str:
        """How near they come to the memory's peak, and which takes longest."""
        text = f"Memory-bound operations move {format_bytes(self.bytes_per_s)}/s, {_of_peak(self.peak_share)}; "
        text += f"{format_share(self.largest_share)} of their time is {self.largest[:80]}"
        return f"{text}, {_of_peak(self.largest_peak_share)}." if self.largest_share < 1 else f"{text}."


def _of_peak(share: float) -> str:
    """A pace as a share of the memory's; beyond it the bytes came from a cache."""
    return f"{format_share(share)} of the memory's peak" if share <= 1 else "above the memory's peak (out of a cache)"


class MemoryBoundWork:
    """The memory-bound work of a run, by rank."""

    def __init__(self, store: Store, run_id: int) -> None:
        self._rows = store.query(_MOVED, [run_id])

    def of(self, rank: int | None) -> MemoryWork | None:
        """Of a rank or, without one, of all; None where there is none."""
        rows = self._rows if rank is None else self._rows.filter(pl.col("rank") == rank)
        if rows.is_empty():
            return None
        sums = rows.group_by("name", maintain_order=True).agg(pl.exclude("rank", "name").sum())
        largest = sums.sort("duration_ns", descending=True, maintain_order=True).row(0, named=True)
        total: dict[str, Any] = sums.select(pl.exclude("name").sum()).row(0, named=True)
        return MemoryWork(
            bytes_per_s=total["bytes"] * 1e9 / total["duration_ns"],
            peak_share=total["memory_duration_ns"] / total["duration_ns"],
            largest=largest["name"],
            largest_share=largest["duration_ns"] / total["duration_ns"],
            largest_peak_share=largest["memory_duration_ns"] / largest["duration_ns"],
        )
