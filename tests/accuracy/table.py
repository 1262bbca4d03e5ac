"""The marks as one table. In: marks. Out: scores by group of cases, and the table in words and numbers."""

import tomllib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.accuracy.by_hand import READINGS
from tests.accuracy.grid import FRESH
from tests.accuracy.judging import Mark
from tests.accuracy.naming import Named
from tests.accuracy.outcomes import family_lines, is_right, percent, share_of, wrong_lines

THRESHOLDS = Path(__file__).with_name("thresholds.toml")


@dataclass(frozen=True, slots=True)
class Score:
    """How one group of cases was answered; None where the group does not ask.

    Attributes:
        runs: number of runs.
        asked: runs with a material fault.
        right: share of these that were answered rightly.
        median_error: median of the relative errors of delays.
        within_five_percent: share of delays within 5 %.
        within_ten_percent: share of delays within 10 %.
        ledger_error: median of the errors of shares of the ledger.
        saved_error: median of the errors of what removing a fault alone saves.
        isolated_error: median of the errors of what a fault alone costs.
        covered: share of 95 % intervals that hold the true delay.
        silent: share of the runs without a finding that is no fault.
        by_hand: for each simple reading, share of the runs with a faulty rank in which it names that rank.
        right_of_ranks: the same for the first finding.
    """

    runs: int
    asked: int
    right: float | None
    median_error: float | None
    within_five_percent: float | None
    within_ten_percent: float | None
    ledger_error: float | None
    saved_error: float | None
    isolated_error: float | None
    covered: float | None
    silent: float
    by_hand: dict[str, float]
    right_of_ranks: float | None


def scores(marks: Sequence[Mark]) -> dict[str, Score]:
    """Scores by group."""
    groups: dict[str, list[Mark]] = defaultdict(list)
    for mark in marks:
        groups[mark.case.group].append(mark)
    return {group: _score(members) for group, members in groups.items()}


def _score(marks: Sequence[Mark]) -> Score:
    asked = [mark for mark in marks if mark.asked]
    errors = np.array([abs(error) for mark in asked for error in mark.errors if error is not None])
    covered = [one for mark in asked for one in mark.covered if one is not None]
    of_ranks = [mark for mark in asked if len(mark.asked) == 1 and mark.asked[0].kind == "rank"]
    return Score(
        len(marks),
        len(asked),
        share_of([is_right(mark) for mark in asked]),
        _median(errors.tolist()),
        share_of((errors <= 0.05).tolist()),
        share_of((errors <= 0.10).tolist()),
        _median([error for mark in asked for error in mark.ledger_errors]),
        _median([error for mark in asked for error in mark.saved_errors]),
        _median([error for mark in asked for error in mark.isolated_errors]),
        share_of(covered),
        share_of([not mark.false_findings for mark in marks]) or 0.0,
        {
            name: share_of([_is_rank(mark.by_hand[name], mark.asked[0]) for mark in of_ranks]) or 0.0
            for name in READINGS
            if of_ranks
        },
        share_of([is_right(mark) for mark in of_ranks]),
    )


def _median(errors: Sequence[float]) -> float | None:
    return float(np.median(np.abs(errors))) if len(errors) else None


def shortfalls(found: dict[str, Score]) -> list[str]:
    """What does not reach the thresholds."""
    missed = []
    for group, limits in tomllib.loads(THRESHOLDS.read_text(encoding="utf-8")).items():
        for name, limit in limits.items():
            value = getattr(found[group], name) if group in found else None
            is_error = name == "median_error"
            if value is not None and (value > limit if is_error else value < limit):
                missed.append(
                    f"{group}: {name} is {value:.3f}, must be {'at most' if is_error else 'at least'} {limit}"
                )
    return missed


def table(marks: Sequence[Mark], cases: int | None = None) -> str:
    """All results as Markdown, of so many cases that were to be judged (by default of all of them)."""
    found, count = scores(marks), f"{len(marks):,}"
    told = (
        f"Of {cases:,} cases {count} were judged"
        if cases not in (None, len(marks))
        else f"All {count} cases were judged"
    )
    lines = [
        "# Accuracy on generated jobs",
        "",
        f"Made by `python -m tests.accuracy`. {told}; seeds from {FRESH:,} on, never used in development.",
        "What each column means is told in `table.py`: delay is the finding's, ledger its share of the ledger; saved",
        "compares gain_if_fixed with the job simulated without the fault, isolated compares isolated_cost_ns with the",
        "job simulated with that fault alone.",
        "",
    ]
    lines += [*family_lines(marks), "", "## Delays", ""]
    columns = ("group", "runs", "asked", "right", "delay: median error", "within 5 %", "within 10 %", "ledger", "saved")
    columns += ("isolated", "intervals hold", "no false finding")
    lines += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for group, s in found.items():
        cells = (s.right, s.median_error, s.within_five_percent, s.within_ten_percent)
        cells += (s.ledger_error, s.saved_error, s.isolated_error, s.covered, s.silent)
        lines.append(f"| {group} | {s.runs} | {s.asked} | {' | '.join(map(percent, cells))} |")
    return (
        "\n".join(
            [
                *lines,
                "",
                *_by_hand(found, marks),
                "",
                *_by_fault(marks),
                "",
                *_confusion(marks),
                "",
                *wrong_lines(marks),
            ]
        )
        + "\n"
    )


def of_all_runs(marks: Sequence[Mark]) -> dict[str, float]:
    """Share of all runs answered rightly, by traceforge and by each reading.

    A reading is right where it names a faulty rank; where no rank is at fault it names one all the same.
    """
    found = {
        "traceforge": share_of([is_right(mark) if mark.asked else not mark.false_findings for mark in marks]) or 0.0
    }
    for name in READINGS:
        named = [(mark.by_hand[name], mark) for mark in marks]
        found[name] = share_of([any(_is_rank(rank, one) for one in mark.asked) for rank, mark in named]) or 0.0
    return found


def _is_rank(rank: int | None, one: Named) -> bool:
    return one.kind == "rank" and str(rank) == one.subject


def _by_hand(found: dict[str, Score], marks: Sequence[Mark]) -> list[str]:
    lines = ["## The faulty rank, named by traceforge and by simple readings", ""]
    lines += [f"| group | traceforge | {' | '.join(READINGS)} |", "|---" * (2 + len(READINGS)) + "|"]
    for group, s in found.items():
        if s.right_of_ranks is not None:
            lines.append(f"| {group} | {percent(s.right_of_ranks)} | {' | '.join(map(percent, s.by_hand.values()))} |")
    lines.append(f"| all runs | {' | '.join(map(percent, of_all_runs(marks).values()))} |")
    lines += [
        "",
        "The groups count runs in which one rank is at fault. A simple reading names a rank in every run, also in",
    ]
    return [*lines, "healthy ones and where the network is at fault: there it is wrong, as the last row counts."]


def _by_fault(marks: Sequence[Mark]) -> list[str]:
    by_fault: dict[str, list[Mark]] = defaultdict(list)
    for mark in marks:
        if mark.case.group == "single":
            by_fault[mark.case.scenario.faults[0].fault].append(mark)
    lines = ["## Single faults", "", "| fault | asked | right | median error |", "|---|---|---|---|"]
    for fault, members in sorted(by_fault.items()):
        s = _score(members)
        lines.append(f"| {fault} | {s.asked} | {percent(s.right)} | {percent(s.median_error)} |")
    return lines


def _confusion(marks: Sequence[Mark]) -> list[str]:
    pairs = Counter(
        (" or ".join(sorted(mark.asked[0].modes)), mark.first[0] if mark.first else "nothing")
        for mark in marks
        if len(mark.asked) == 1
    )
    answers = sorted({answer for _, answer in pairs})
    lines = ["## Mode that is true, and mode of the first finding (single faults of all groups)", ""]
    lines += [f"| true | {' | '.join(answers)} |", "|---" * (1 + len(answers)) + "|"]
    for mode in sorted({mode for mode, _ in pairs}):
        lines.append(f"| {mode} | {' | '.join(str(pairs[mode, answer]) for answer in answers)} |")
    return lines
