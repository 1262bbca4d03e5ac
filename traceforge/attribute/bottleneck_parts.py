"""Time divided into parts that still sum. In: kernels of a rank, amounts. Out: `StepPart`s in whole ns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traceforge.thresholds import attribute as thresholds


@dataclass(frozen=True, slots=True)
class StepPart:
    """A part of an iteration, or of many, ns."""

    name: str
    duration_ns: int


def divided(total_ns: int, parts: Sequence[StepPart]) -> list[StepPart]:
    """Parts in proportion to these that sum to the total: what rounding leaves goes to the largest remainders."""
    whole = sum(part.duration_ns for part in parts)
    if whole <= 0:
        return []
    exact = [(total_ns * part.duration_ns) // whole for part in parts]
    remainders = [(total_ns * part.duration_ns) % whole for part in parts]
    for place in sorted(range(len(parts)), key=lambda n: (-remainders[n], n))[: total_ns - sum(exact)]:
        exact[place] += 1
    return [StepPart(part.name, duration_ns) for part, duration_ns in zip(parts, exact, strict=True)]


def kernel_parts(kernels: Sequence[Mapping[str, Any]], total_ns: int) -> list[StepPart]:
    """The time in which kernels run, by what limits them.

    Args:
        kernels: rows of operation.kernel that compute.
        total_ns: time in which any of them runs; less than their sum where they overlap.
    """
    of_operation = {(row["operation"], row["shapes"]): row["bound"] for row in kernels if row["bound"] is not None}
    amounts: dict[str, int] = {}
    for row in kernels:
        ideal = min(row["arithmetic_duration_ns"] or 0, row["duration_ns"])
        name = _limit(row, of_operation)
        for part, duration_ns in (("ideal", ideal), (name, row["duration_ns"] - ideal)):
            amounts[part] = amounts.get(part, 0) + duration_ns
    found = divided(total_ns, [StepPart(name, duration_ns) for name, duration_ns in amounts.items() if duration_ns])
    # Kernels that began before the first judged iteration are in no row.
    return found or [StepPart("unmodelled_kernels", total_ns)]


def _limit(row: Mapping[str, Any], of_operation: Mapping[tuple[str | None, str | None], str]) -> str:
    """What limits a kernel; one that helps a modelled operation is limited as that is."""
    if row["p50_ns"] < thresholds.SMALL_KERNEL_NS:
        return "small_kernels"
    bound = of_operation.get((row["operation"], row["shapes"])) if row["shapes"] is not None else None
    return f"{bound}_bound" if bound else "unmodelled_kernels"
