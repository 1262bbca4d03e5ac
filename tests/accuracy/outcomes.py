"""What became of each case, by family. In: marks. Out: Markdown: right, a part, silent, wrong; and every miss in words.

A silent answer to a fault is excused only where the run itself said that it would not have seen so small a delay
(`attribute.sight`); where the run says nothing about its sight, that is told as not measured.
"""

from collections import defaultdict
from collections.abc import Sequence
from math import inf

from tests.accuracy.grid import FAMILIES
from tests.accuracy.judging import Mark

_COLUMNS = (
    "family", "why it matters", "runs", "asked", "right first", "a part", "silent", "of these below sight",
    "wrong accusation", "intervals hold",
)  # fmt: skip


def is_right(mark: Mark) -> bool:
    """Whether a single fault is named first, or two among the first three."""
    if len(mark.asked) == 1:
        return mark.found == [0]
    return all(place is not None and place < 3 for place in mark.found)


def is_silent(mark: Mark) -> bool:
    """Whether a faulty run got no finding that counts."""
    return bool(mark.asked) and mark.first is None


def is_below_sight(mark: Mark) -> bool | None:
    """Whether all that is asked is smaller than what the run says it would have found; None: not measured."""
    if None in mark.sight_ns:
        return None
    pairs = zip(mark.asked, mark.sight_ns, strict=True)
    return all(sight is not None and named.delay_ns < sight for named, sight in pairs)


def family_lines(marks: Sequence[Mark]) -> list[str]:
    """The table of families."""
    of_family: dict[str, list[Mark]] = defaultdict(list)
    for mark in marks:
        of_family[mark.case.group].append(mark)
    lines = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    for name in (name for name in FAMILIES if name in of_family):
        own = of_family[name]
        asked = [mark for mark in own if mark.asked]
        cells = [name, FAMILIES[name].why, str(len(own)), str(len(asked))]
        cells.append(percent(share_of([is_right(mark) for mark in asked])))
        cells.append(str(sum(bool(mark.parts) and not is_right(mark) for mark in asked)))
        silent = [mark for mark in asked if is_silent(mark)]
        cells += [str(len(silent)), _below(silent), str(sum(bool(mark.false_findings) for mark in own))]
        covered = [one for mark in asked for one in mark.covered if one is not None]
        lines.append(f"| {' | '.join([*cells, percent(share_of(covered))])} |")
    lines += [
        "",
        "Right first: mode and culprit of the first finding are right. A part: not right, but some of the ranks at",
        "fault are named. Silent: no finding of high or medium confidence. Wrong accusation: one of them names what is",
        "no fault. Below sight: the run's `attribute.sight` says that a delay of that size would not have been found.",
    ]
    return lines


def _below(silent: Sequence[Mark]) -> str:
    below = [is_below_sight(mark) for mark in silent]
    if not below:
        return "none"
    return "not measured" if None in below else str(sum(map(bool, below)))


def wrong_lines(marks: Sequence[Mark]) -> list[str]:
    """Every run that was answered wrongly, in words."""
    lines = ["## Every run that was answered wrongly", ""]
    for mark in marks:
        if (mark.asked and not is_right(mark)) or mark.false_findings:
            first = " ".join(mark.first) if mark.first else "nothing"
            told = "".join(
                f"; {what}: {'; '.join(findings)}"
                for what, findings in (("false", mark.false_findings), ("a part", mark.parts))
                if findings
            )
            lines.append(f"- {mark.case.scenario.name}: {_asked(mark)}; answered: {first}{told}")
    return lines if len(lines) > 2 else [*lines, "None."]


def _asked(mark: Mark) -> str:
    told = []
    for one, sight_ns in zip(mark.asked, mark.sight_ns, strict=True):
        size = f"{one.share:.1%}, {one.delay_ns / 1e6:.2f} ms"
        if is_silent(mark):
            size += f"; smallest seen {_sight(sight_ns)}"
        told.append(f"{'/'.join(sorted(one.modes))} of {one.kind} {one.subject} ({size})")
    return "; ".join(told) or "nothing"


def _sight(sight_ns: float | None) -> str:
    if sight_ns is None:
        return "not measured"
    return "none of any size" if sight_ns == inf else f"{sight_ns / 1e6:.2f} ms"


def share_of(truths: Sequence[bool]) -> float | None:
    """Share of what is true; None of nothing."""
    return sum(truths) / len(truths) if truths else None


def percent(value: float | None) -> str:
    """A share in words."""
    return "none" if value is None else f"{100 * value:.1f} %"
