"""One case, from traces to a mark. In: a case. Out: what was answered, what was true, and whether they agree.

A single trouble is answered rightly if the first finding, of high or medium confidence, names its mode and its culprit
(`naming`). A culprit without a trace is not asked for; a finding of a cost that no run can have is an error. Where
nothing is found, the mark says what the run's own table of sight (`attribute.sight`) claims to have been able to see,
if there is such a table.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.accuracy.by_hand import readings
from tests.accuracy.case import Case
from tests.accuracy.naming import Findings, Named, culprits, during, is_lost
from tests.given import add_facts, built
from tests.stories import Run
from traceforge import api
from traceforge.attribute.cause import causes
from traceforge.store.database import Store
from traceforge.synth.folder import write_scenario

# A fault that costs less than this share of the run is not asked for.
MATERIAL_SHARE = 0.04

_FINDINGS = "SELECT * FROM attribute.finding ORDER BY finding_id"
_GROUPS = "SELECT CAST(communicator_id AS VARCHAR), ranks FROM timeline.communicator"
_USED = "SELECT DISTINCT iteration FROM attribute.excess"
_HAS_SIGHT = "SELECT 1 FROM information_schema.tables WHERE table_schema = 'attribute' AND table_name = 'sight'"
_SIGHT = "SELECT subject_kind, cause, smallest_delay_ns_per_iteration FROM attribute.sight"


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
        parts: findings that count and name only some of the ranks at fault.
        first: mode and subject of the first finding that counts.
        sight_ns: for each that is asked, the smallest delay that the run says it would have found; infinite where it
            would have found none, None where it does not say.
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
    parts: list[str]
    first: tuple[str, str, str] | None
    sight_ns: list[float | None]
    by_hand: dict[str, int | None]
    findings: Findings


def judge_case(case: Case) -> Mark:
    """Generate, ingest, attribute, compare."""
    with TemporaryDirectory(prefix="accuracy-") as folder:
        path = Path(folder, "run")
        _write(case, path)
        return judge_folder(case, path)


def judge_together(cases: Sequence[Case]) -> list[Mark]:
    """The same of several cases in one database, which takes less time than one each."""
    with TemporaryDirectory(prefix="accuracy-") as folder, Store(None, threads=1, is_kept=False) as store:
        paths = {f"run {number}": Path(folder, f"run {number}") for number in range(len(cases))}
        for case, (name, path) in zip(cases, paths.items(), strict=True):
            _write(case, path)
            add_facts(store, path, run_name=name)
        built(store, "attribute")
        runs = [Run(store, api.run_id(store, name)) for name in paths]
        return [_judged(case, run, path) for case, run, path in zip(cases, runs, paths.values(), strict=True)]


def _write(case: Case, path: Path) -> None:
    if case.edit:
        case.edit.write(path)
    else:
        write_scenario(case.scenario, path, compressed=False, left_out=case.left_out)
    for rank, share in case.cut:
        trace = path / f"rank{rank}.pt.trace.json"
        whole = trace.read_bytes()
        trace.write_bytes(whole[: int(share * len(whole))])


def judge_folder(case: Case, path: Path) -> Mark:
    """Ingest traces that have a truth.json beside them, attribute, compare."""
    with Store(None, threads=1, is_kept=False) as store:
        api.ingest([path], store, jobs=1)
        return _judged(case, store, path)


def _judged(case: Case, store: Store | Run, path: Path) -> Mark:
    truth = json.loads((path / "truth.json").read_text(encoding="utf-8"))
    judged = during(truth, {int(iteration) for (iteration,) in store.query(_USED).rows()})
    if case.cut:
        # What happened after a file ends is not asked for.
        truth = judged
    groups = {str(name): list(ranks) for name, ranks in store.query(_GROUPS).rows()}
    every = culprits(truth, groups, case.left_out)
    # Whom to name follows from the whole run; a finding's costs are means over the iterations that the run judges.
    costs = dict(zip(every, culprits(judged, groups, case.left_out), strict=True))
    sight = store.query(_SIGHT).to_dicts() if store.query(_HAS_SIGHT).height else []
    findings = store.query(_FINDINGS).to_dicts()
    if impossible := [one for one in findings if not is_possible(one)]:
        raise ValueError(f"no run can lose what these findings say: {'; '.join(map(_said, impossible))}")
    return _mark(case, sum(judged["duration_ns"]) / len(judged["duration_ns"]), costs, findings, sight, readings(store))


def _mark(
    case: Case,
    duration_ns: float,
    costs: Mapping[Named, Named],
    findings: Findings,
    sight: Findings,
    by_hand: dict[str, int | None],
) -> Mark:
    asked = [one for one in costs if one.share >= MATERIAL_SHARE and not is_lost(one)]
    counted = [one for one in findings if one["confidence"] in ("high", "medium")]
    errors, covered = [], []
    ledger: list[float] = []
    saved: list[float] = []
    isolated: list[float] = []
    for named in asked:
        mine, true = named.told(counted), costs[named]
        if true.delay_ns <= 0:
            # All of it lies in iterations that are not judged.
            errors.append(None)
            covered.append(None)
            continue
        total = sum(one["delay_ns_per_iteration"] for one in mine)
        errors.append(total / true.delay_ns - 1 if mine else None)
        if mine:
            ledger.append(sum(one["ledger_ns_per_iteration"] for one in mine) / true.delay_ns - 1)
        if len(mine) == 1:
            gain, alone = mine[0]["gain_if_fixed"], mine[0]["isolated_cost_ns"]
            # Where another fault hides it, removing one saves next to nothing.
            saved += _relative(duration_ns * gain / (1 + gain), true.removed_ns, duration_ns)
            isolated += _relative(alone, true.added_ns, duration_ns)
        bounds = [(one["delay_low_ns"], one["delay_high_ns"]) for one in mine]
        # An interval speaks of one finding.
        is_told = len(bounds) == 1 and bounds[0][0] is not None
        covered.append(bounds[0][0] <= true.delay_ns <= bounds[0][1] if is_told else None)
    # Where traces are missing it is right to say that something is lost for a reason that is not known.
    judged = [one for one in counted if one["mode"] != "unexplained" or not (case.left_out or case.cut)]
    parts = [one for one in judged if any(named.is_told_in_part_by(one) for named in costs)]
    false = [one for one in judged if one not in parts and not any(named.is_named_by(one) for named in costs)]
    first = (counted[0]["mode"], counted[0]["subject_kind"], counted[0]["subject"]) if counted else None
    found, seen = [named.place(counted) for named in asked], [_sight_ns(named, sight) for named in asked]
    return Mark(
        case, asked, found, errors, ledger, saved, isolated, covered, [*map(_said, false)], [*map(_said, parts)],
        first, seen, by_hand, findings,
    )  # fmt: skip


def is_possible(finding: Mapping[str, Any]) -> bool:
    """Whether a finding costs something, at most the iteration, and lies within its own interval, which may be two."""
    delay, low, high = (finding[f"delay_{name}"] for name in ("ns_per_iteration", "low_ns", "high_ns"))
    if not 0 < finding["share"] <= 1:
        return False
    return low is None or (delay - delay / finding["share"] <= low <= delay <= high <= delay + delay / finding["share"])


def _relative(told_ns: float, true_ns: float, duration_ns: float) -> list[float]:
    """Relative error of what is a material share of the iteration; none of what is less."""
    return [told_ns / true_ns - 1] if true_ns >= MATERIAL_SHARE * duration_ns else []


def _sight_ns(named: Named, sight: Findings) -> float | None:
    """The smallest delay that would have been found in a subject of this kind, by a cause of these modes."""
    known = causes()
    of_modes = [one for one in sight if one["cause"] not in known or known[one["cause"]].mode in named.modes]
    told = [one["smallest_delay_ns_per_iteration"] for one in of_modes if one["subject_kind"] == named.kind]
    # A row without a delay says that none would have been found, however large.
    return min((inf if delay is None else float(delay) for delay in told), default=None)


def _said(finding: Mapping[str, Any]) -> str:
    kind, subject = finding["subject_kind"], finding["subject"]
    return f"{finding['mode']}/{finding['cause']} of {kind} {subject} ({finding['share']:.1%}, {finding['confidence']})"
