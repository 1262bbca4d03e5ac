"""Whether runs lie on one curve. In: scale points with their facts. Out: the fields in which two of them differ.

A curve is of one job at several scales. Runs whose batch per rank, element type, algorithm, NCCL version or mix of
message sizes differ are other jobs, and a curve through them would show the change, not the scale. What no trace
states is not taken for equal in silence: it is listed as unknown.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from traceforge.forecast.scale_point import ScalePoint
from traceforge.thresholds import forecast as thresholds
from traceforge.units import format_bytes, format_ns

FIELDS = {
    "batch": "batch per rank",
    "compute_ns": "batch per rank",
    "dtype": "element type",
    "algorithm": "algorithm",
    "nccl_version": "NCCL version",
    "size_bytes": "message sizes",
    "operations": "message sizes",
}
"""Facts that must agree, and the field that each belongs to."""

# Measured numbers agree within these factors: compute time stands for the batch, and noise is no other batch.
_TOLERANCE = {
    "compute_ns": thresholds.COMPUTE_TOLERANCE,
    "size_bytes": thresholds.MESSAGE_TOLERANCE,
    "batch": thresholds.BATCH_TOLERANCE,
}

_REASON = {
    "compute_ns": "compute takes {theirs} a rank and iteration against {ours}; the same batch would take as long",
    "size_bytes": "an iteration reduces {theirs} against {ours}",
}


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field in which a run is not comparable to another.

    Attributes:
        field: as in `FIELDS`, in words.
        name: the run that differs.
        detail: one sentence without a full stop.
    """

    field: str
    name: str
    detail: str


def differences(reference: ScalePoint, other: ScalePoint) -> list[FieldDifference]:
    """Fields that both points know and that differ."""
    found = []
    for key, field in FIELDS.items():
        ours, theirs = reference.facts.get(key), other.facts.get(key)
        if ours is None or theirs is None or _agree(key, ours, theirs):
            continue
        detail = _REASON.get(key, "{theirs} against {ours}").format(theirs=_text(key, theirs), ours=_text(key, ours))
        found.append(FieldDifference(field, other.name, detail))
    return found


def unknown_fields(points: Sequence[ScalePoint]) -> list[str]:
    """Fields, in words, that could not be compared because a point does not know them."""
    by_field: dict[str, bool] = {}
    for key, field in FIELDS.items():
        known = all(key in point.facts for point in points)
        by_field[field] = by_field.get(field, False) or known
    return [field for field, known in by_field.items() if not known]


def _agree(key: str, ours: str | float, theirs: str | float) -> bool:
    if isinstance(ours, str) or isinstance(theirs, str):
        return str(ours) == str(theirs)
    low, high = sorted((ours, theirs))
    return high <= _TOLERANCE.get(key, 1.0) * low


def _text(key: str, value: str | float) -> str:
    if isinstance(value, str):
        return value
    if key == "compute_ns":
        return format_ns(value)
    return format_bytes(value) if key == "size_bytes" else f"{value:g}"
