"""Operations added up by what they are called. In: rows of sections/operations, one a kernel. Out: one row a name."""

from collections.abc import Callable, Sequence

from traceforge.report.context import Row


def summed(rows: Sequence[Row], named: Callable[[Row], str]) -> list[Row]:
    """Name, time, share and rows of each, the largest first; what several kernels of one took is added up."""
    sums: dict[str, Row] = {}
    for row in rows:
        own = sums.setdefault(named(row), {"name": named(row), "duration_ns": 0.0, "share": 0.0, "rows": 0})
        own |= {part: own[part] + row[part] for part in ("duration_ns", "share")}
        own["rows"] += 1
    return sorted(sums.values(), key=lambda row: float(row["duration_ns"]), reverse=True)
