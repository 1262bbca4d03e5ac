"""What stands out of one run and not of the other. In: findings of both. Out: new, gone, grown and shrunk ones.

A test of means over all iterations misses what comes and goes; each run's own findings do not. Two findings are the
same if they name the same subject by the same cause. Not handled: a rank whose number or host changed between the runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from traceforge.compare.sides import Row, Side

Turn = Literal["new", "gone", "grown", "shrunk", "same"]
_ORDER: tuple[Turn, ...] = ("new", "grown", "gone", "shrunk", "same")


@dataclass(frozen=True, slots=True)
class FindingChange:
    """A finding of either run.

    Attributes:
        turn: what became of it. Grown and shrunk: the 95 % intervals of both costs do not meet.
        cause, subject_kind, subject, pattern: as in attribute.finding.
        summary: the sentence of the later run; of what is gone, the earlier one's.
        before_ns, after_ns: what it costs an iteration; None where that run does not show it.
    """

    turn: Turn
    cause: str
    subject_kind: str
    subject: str
    pattern: str
    summary: str
    before_ns: int | None
    after_ns: int | None


def finding_changes(before: Side, after: Side) -> list[FindingChange]:
    """Findings of both runs (high and medium confidence), new ones first, then by what they cost."""
    earlier, later = _by_subject(before.rows("finding")), _by_subject(after.rows("finding"))
    changes = [_change(earlier.get(key), later.get(key)) for key in dict.fromkeys([*later, *earlier])]
    return sorted(changes, key=lambda one: (_ORDER.index(one.turn), -(one.after_ns or one.before_ns or 0)))


def _by_subject(rows: Sequence[Row]) -> dict[tuple[str, str, str], Row]:
    return {(row["cause"], row["subject_kind"], row["subject"]): row for row in rows}


def _change(before: Row | None, after: Row | None) -> FindingChange:
    shown = after or before or {}
    return FindingChange(
        turn=_turn(before, after),
        cause=shown["cause"],
        subject_kind=shown["subject_kind"],
        subject=shown["subject"],
        pattern=shown["pattern"],
        summary=shown["summary"],
        before_ns=None if before is None else before["delay_ns"],
        after_ns=None if after is None else after["delay_ns"],
    )


def _turn(before: Row | None, after: Row | None) -> Turn:
    if before is None or after is None:
        return "new" if before is None else "gone"
    if None in (before["low_ns"], after["low_ns"]):
        return "same"
    if after["low_ns"] > before["high_ns"]:
        return "grown"
    return "shrunk" if after["high_ns"] < before["low_ns"] else "same"
