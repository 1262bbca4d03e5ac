"""What the other runs of the same files say. In: a context. Out: `OtherRun`s, lines on them, and a summary.

A profiler whose schedule repeats writes a file a rank and window, and each window is a run (see `align.runs`). A report
is about one of them; the others are evidence of their own for its answer, or give another. They agree where they name
the same subject for the same cause, or nobody as well. What is slow in a whole window stands out of none: where the
usual iterations of two windows differ, that is said.
Not handled: runs of another folder (`compare`), and whether costs of two windows differ by more than chance.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from traceforge.report.blocks import Brief, Briefs
from traceforge.report.context import Context, Row
from traceforge.report.diagnosis import opening
from traceforge.report.formatting import capital, clean, duration, listed, plural
from traceforge.report.machine_readable import MOST_ENTRIES, whole
from traceforge.thresholds import attribute as thresholds

_MOST_BRIEFS = 6
_MOST_COSTS = 4


@dataclass(frozen=True, slots=True)
class OtherRun:
    """The answer on another run.

    Attributes:
        agrees: whether it is that of the run shown; None where one of the two has none.
        p50_ns: its median iteration; None where none was judged.
        own_p50_ns: that of the run shown.
        label: what tells it from the others, such as `window 2`.
        delay_ns: what its first finding costs an iteration; None without one.
    """

    name: str
    label: str
    kind: str
    headline: str
    confidence: str
    mode: str
    cause: str
    subject_kind: str
    subject: str
    delay_ns: float | None
    agrees: bool | None
    p50_ns: int | None
    own_p50_ns: int | None

    @property
    def cost(self) -> str:
        """The delay; empty without one."""
        return "" if self.delay_ns is None else duration(self.delay_ns)

    @property
    def is_silent(self) -> bool:
        """Whether nothing can be said of it."""
        return self.kind == "cannot_be_known"

    @property
    def is_window(self) -> bool:
        """Whether it is a later window of the profiler."""
        return self.label.startswith("window ")

    @property
    def changed_ns(self) -> int:
        """By how much its usual iteration is longer (or, below 0, shorter), where it is more than a little; else 0."""
        if not self.p50_ns or not self.own_p50_ns:
            return 0
        longer = self.p50_ns - self.own_p50_ns
        return longer if abs(longer) >= thresholds.DRIFT_SHARE * min(self.p50_ns, self.own_p50_ns) else 0


def read_other_runs(context: Context) -> list[OtherRun]:
    """The other runs of the same files; those with another answer first, by what it costs."""
    found = [_other_run(row, context) for row in context.rows("other_runs")]
    differing = [one for one in found if not one.agrees and not one.is_silent]
    return sorted(differing, key=lambda one: -(one.delay_ns or 0)) + [one for one in found if one not in differing]


def _other_run(row: Row, context: Context) -> OtherRun:
    name = str(row["run_name"])
    label = name.partition(" [")[2].removesuffix("]") or (name if context.redaction else "the first run")
    kind, subject = str(row["kind"]), clean(row["subject"] or "", 80)
    cause, subject_kind = str(row["cause"] or ""), str(row["subject_kind"] or "")
    return OtherRun(
        name=clean(name),
        label=clean(label, 80),
        kind=kind,
        headline=opening(str(row["headline"])),
        confidence="" if kind == "cannot_be_known" else str(row["confidence"]),
        mode=str(row["mode"] or ""),
        cause=cause,
        subject_kind=subject_kind,
        subject=subject,
        delay_ns=row["delay_ns_per_iteration"],
        agrees=_agrees(kind, (subject_kind, subject, cause), context),
        p50_ns=whole(row["p50_ns"]),
        own_p50_ns=whole(row["own_p50_ns"]),
    )


def _agrees(kind: str, named: tuple[str, str, str], context: Context) -> bool | None:
    verdict, leading = context.diagnosis.verdict, context.diagnosis.leading
    if verdict is None or "cannot_be_known" in (kind, verdict.kind):
        return None
    own = (leading.subject_kind, leading.subject, leading.cause) if leading else ("", "", "")
    return kind == verdict.kind and named == own


def agreement(others: Sequence[OtherRun]) -> str:
    """What they say in a few words; empty where there are none, or none has an answer."""
    same = [one for one in others if one.agrees]
    silent = [one for one in others if one.is_silent]
    differing = [one for one in others if not one.agrees and not one.is_silent]
    parts = []
    if same:
        costs = listed([one.cost for one in same if one.cost], _MOST_COSTS)
        parts.append(f"{_counted(same, others)} the same{f' ({costs})' if costs else ''}")
    if differing:
        first, *more = differing
        parts.append(f"{first.label} says: {first.headline} See it with --run {shlex.quote(first.name)}")
        parts += [f"{len(more)} more of another answer"] if more else []
    if silent and parts:
        parts.append(f"of {len(silent)} it cannot be known")
    return "; ".join([*parts, *(_changed(others) if parts else [])])


def _changed(others: Sequence[OtherRun]) -> list[str]:
    """That another run's iterations take longer or shorter, of the one that differs most; nothing where none does."""
    most = max(others, key=lambda one: abs(one.changed_ns), default=None)
    if most is None or not most.changed_ns:
        return []
    here, there = duration(most.own_p50_ns), duration(most.p50_ns)
    return [f"the median iteration takes {there} in {most.label}, {here} here: `compare` shows what changed"]


def _counted(some: Sequence[OtherRun], others: Sequence[OtherRun]) -> str:
    """How many of the others, and a verb, such as `2 of 3 other windows say`."""
    verb, number = "says" if len(some) == 1 else "say", len(others)
    if number == 1:
        return f"the other {_noun(others)} {verb}"
    all_of_them = plural(number, f"other {_noun(others)}")
    return f"the {all_of_them} {verb}" if len(some) == number else f"{len(some)} of {all_of_them} {verb}"


def _noun(others: Sequence[OtherRun]) -> str:
    return "window" if any(one.is_window for one in others) else "run"


def other_runs_briefs(context: Context) -> list[Briefs]:
    """What the other runs say, one line each; nothing where there are none."""
    others = read_other_runs(context)
    if not others:
        return []
    shown = [Brief(f"{capital(one.label)}: {_answer(one)}", one.cost, one.confidence, one.mode) for one in others]
    more = len(others) - _MOST_BRIEFS
    is_same = all(one.agrees and not one.changed_ns for one in others)
    title = f"{capital(_counted(others, others))} the same" if is_same else _title(others)
    return [Briefs(f"{title}, {more} not shown" if more > 0 else title, shown[:_MOST_BRIEFS], ["other_runs"])]


def _answer(one: OtherRun) -> str:
    """Its headline, and its usual iteration where that is another one."""
    if not one.changed_ns:
        return one.headline
    return f"{one.headline} The median iteration takes {duration(one.p50_ns)}, and {duration(one.own_p50_ns)} here."


def _title(others: Sequence[OtherRun]) -> str:
    return f"Other {_noun(others)}{'s' if len(others) > 1 else ''} of these files"


def summarised(context: Context) -> list[dict[str, object]]:
    """Entries of the summary for machines."""
    return [
        {
            "name": one.name,
            "kind": one.kind,
            "headline": one.headline,
            "confidence": one.confidence or None,
            "cause": one.cause or None,
            "subject_kind": one.subject_kind or None,
            "subject": one.subject or None,
            "delay_ns_per_iteration": whole(one.delay_ns),
            "agrees": one.agrees,
            "p50_ns": one.p50_ns,
        }
        for one in read_other_runs(context)[:MOST_ENTRIES]
    ]
