"""One case, from traces to a mark. In: a case. Out: what was answered, what was true, and whether they agree.

A single fault is answered rightly if the first finding, of high or medium confidence, names its mode and its culprit.
Where all groups that use the network are slow together the culprit is the job; where some are, one of them. Where
each of them lacks a trace, a slow network cannot be told from a late rank that was not recorded: the right answer is
that something is lost which these traces do not explain. A culprit without a trace is not asked for.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.accuracy.by_hand import readings
from tests.accuracy.cases import Case
from traceforge import api
from traceforge.store.database import Store
from traceforge.synth.folder import write_scenario

# A fault that costs less than this share of the run is not asked for.
MATERIAL_SHARE = 0.04

_FINDINGS = """
SELECT mode, cause, subject_kind, subject, delay_ns_per_iteration, delay_low_ns, delay_high_ns, share, confidence,
  pattern, ledger_ns_per_iteration, gain_if_fixed, isolated_cost_ns
FROM attribute.finding ORDER BY finding_id
"""
_GROUPS = "SELECT CAST(communicator_id AS VARCHAR), ranks FROM timeline.communicator"


@dataclass(frozen=True, slots=True)
class Named:
    """A culprit: mode, kind of subject, which subjects are it; what removing it alone saves, what it alone costs."""

    mode: str
    kind: str
    subjects: frozenset[str]
    delay_ns: float
    removed_ns: float
    added_ns: float
    share: float


@dataclass(frozen=True, slots=True)
class Mark:
    """How one case was answered.

    Attributes:
        asked: faults that are material, as they should be named.
        found: place of each among the findings that count; None where it is not named.
        errors: relative error of the delay of each that was found.
        ledger_errors: the same of its share of the ledger.
        saved_errors: relative error of what removing it alone would save.
        isolated_errors: of what it alone would cost.
        covered: whether its interval holds the true delay.
        false_findings: findings that count and name what is no fault.
        first: mode and subject of the first finding that counts.
        by_hand: the rank that each simple reading names.
    """

    case: Case
    asked: list[Named]
    found: list[int | None]
    errors: list[float | None]
    ledger_errors: list[float]
    saved_errors: list[float]
    isolated_errors: list[float]
    covered: list[bool | None]
    false_findings: list[str]
    first: tuple[str, str, str] | None
    by_hand: dict[str, int | None]
    findings: list[dict[str, Any]]


def judge_case(case: Case) -> Mark:
    """Generate, ingest, attribute, compare."""
    with TemporaryDirectory(prefix="accuracy-") as folder, Store(None, threads=1) as store:
        path = Path(folder, "run")
        write_scenario(case.scenario, path, compressed=False, left_out=case.left_out)
        api.ingest([path], store, jobs=1)
        truth = json.loads((path / "truth.json").read_text())
        groups = {str(name): list(ranks) for name, ranks in store.query(_GROUPS).rows()}
        findings = store.query(_FINDINGS).to_dicts()
        return _mark(case, truth, findings, groups, readings(store))


def _mark(
    case: Case,
    truth: dict[str, Any],
    findings: list[dict[str, Any]],
    groups: dict[str, list[int]],
    by_hand: dict[str, int | None],
) -> Mark:
    every = [_named(fault, truth, groups, case.left_out) for fault in truth["faults"]]
    asked = [one for one in every if one.share >= MATERIAL_SHARE and not _is_lost(one, case.left_out)]
    counted = [one for one in findings if one["confidence"] in ("high", "medium")]
    found = [next((p for p, one in enumerate(counted) if _is(one, named)), None) for named in asked]
    duration_ns = sum(truth["duration_ns"]) / len(truth["duration_ns"])
    errors, covered = [], []
    ledger: list[float] = []
    saved: list[float] = []
    isolated: list[float] = []
    for place, named in zip(found, asked, strict=True):
        mine = [one for one in counted if _is(one, named)] if place is not None else []
        total = sum(one["delay_ns_per_iteration"] for one in mine)
        errors.append(total / named.delay_ns - 1 if mine else None)
        if mine:
            ledger.append(sum(one["ledger_ns_per_iteration"] for one in mine) / named.delay_ns - 1)
        if len(mine) == 1:
            gain, alone = mine[0]["gain_if_fixed"], mine[0]["isolated_cost_ns"]
            # Where another fault hides it, removing one saves next to nothing.
            saved += _relative(duration_ns * gain / (1 + gain), named.removed_ns, duration_ns)
            isolated += _relative(alone, named.added_ns, duration_ns)
        bounds = [(one["delay_low_ns"], one["delay_high_ns"]) for one in mine]
        # An interval speaks of one finding.
        is_told = len(bounds) == 1 and bounds[0][0] is not None
        covered.append(bounds[0][0] <= named.delay_ns <= bounds[0][1] if is_told else None)
    # Where traces are missing it is right to say that something is lost for a reason that is not known.
    judged = [one for one in counted if one["mode"] != "unexplained" or not case.left_out]
    false = [_said(one) for one in judged if not any(_is(one, named) for named in every)]
    first = (counted[0]["mode"], counted[0]["subject_kind"], counted[0]["subject"]) if counted else None
    return Mark(case, asked, found, errors, ledger, saved, isolated, covered, false, first, by_hand, findings)


def _relative(told_ns: float, true_ns: float, duration_ns: float) -> list[float]:
    """Relative error of what is a material share of the iteration; none of what is less."""
    return [told_ns / true_ns - 1] if true_ns >= MATERIAL_SHARE * duration_ns else []


def _named(fault: dict[str, Any], truth: dict[str, Any], groups: dict[str, list[int]], lost: frozenset[int]) -> Named:
    removed, added = (sum(fault[name]) / len(fault[name]) for name in ("removed_ns", "added_ns"))
    # Of two faults, each one's Shapley value is the mean of what it adds alone and what removing it saves.
    delay = (removed + added) / 2
    share = delay / (sum(truth["duration_ns"]) / len(truth["duration_ns"]))
    if fault["communicators"] and all(lost.intersection(ranks) for ranks in fault["communicators"]):
        return Named("unexplained", "job", frozenset({"all"}), delay, removed, added, share)
    if fault["mode"] == "gpu_locality":
        slow = {name for name, ranks in groups.items() if ranks in fault["communicators"]}
        return Named(fault["mode"], "communicator", frozenset(slow), delay, removed, added, share)
    if fault["befalls"] == "rank":
        return Named(fault["mode"], "rank", frozenset({str(fault["place"])}), delay, removed, added, share)
    return Named(fault["mode"], "job", frozenset({"all"}), delay, removed, added, share)


def _is_lost(named: Named, lost: frozenset[int]) -> bool:
    return named.kind == "rank" and named.subjects <= set(map(str, lost))


def _is(finding: dict[str, Any], named: Named) -> bool:
    return (
        finding["mode"] == named.mode and finding["subject_kind"] == named.kind and finding["subject"] in named.subjects
    )


def _said(finding: dict[str, Any]) -> str:
    kind, subject = finding["subject_kind"], finding["subject"]
    return f"{finding['mode']}/{finding['cause']} of {kind} {subject} ({finding['share']:.1%}, {finding['confidence']})"
