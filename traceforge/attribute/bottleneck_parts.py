"""Time divided into parts that still sum. In: kernels of a rank, amounts. Out: whole ns by name of the part."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from traceforge.thresholds import attribute as thresholds


def divided(total_ns: int, parts: Mapping[str, int]) -> dict[str, int]:
    """Parts in proportion to these that sum to the total: what rounding leaves goes to the largest remainders."""
    whole = sum(parts.values())
    if whole <= 0:
        return {}
    exact = {name: total_ns * part_ns // whole for name, part_ns in parts.items()}
    # Of equal remainders the first.
    largest = sorted(parts, key=lambda name: -(total_ns * parts[name] % whole))
    for name in largest[: total_ns - sum(exact.values())]:
        exact[name] += 1
    return exact


def kernel_parts(kernels: Sequence[Mapping[str, Any]], total_ns: int) -> dict[str, int]:
    """The time in which kernels run, by what limits them.

    Args:
        kernels: rows of operation.kernel that compute.
        total_ns: time in which any of them runs; less than their sum where they overlap.
    """
    of_operation = {(row["operation"], row["shapes"]): row["bound"] for row in kernels if row["bound"] is not None}
    amounts = Counter[str]()
    for row in kernels:
        ideal = min(row["arithmetic_duration_ns"] or 0, row["duration_ns"])
        amounts.update({"ideal": ideal, _limit(row, of_operation): row["duration_ns"] - ideal})
    # Kernels that began before the first judged iteration are in no row.
    return divided(total_ns, {name: part for name, part in amounts.items() if part}) or {"unmodelled_kernels": total_ns}


def _limit(row: Mapping[str, Any], of_operation: Mapping[tuple[str | None, str | None], str]) -> str:
    """What limits a kernel; one that helps a modelled operation is limited as that is."""
    if row["p50_ns"] < thresholds.SMALL_KERNEL_NS:
        return "small_kernels"
    bound = of_operation.get((row["operation"], row["shapes"])) if row["shapes"] is not None else None
    return f"{bound}_bound" if bound else "unmodelled_kernels"
