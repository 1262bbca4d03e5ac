"""A comparison in words. In: `Comparison`. Out: sentences and table cells; names are cleaned on the way.

The terminal and the page say the same. Where a change is not more than scatter the words are "not significant".
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from traceforge.compare import Change, Comparison, FindingChange, OperationChange
from traceforge.report.formatting import (
    capital,
    clean,
    duration,
    duration_range,
    listed,
    mode_name,
    percent,
    plural,
    signed,
    size,
    spaced,
    tflops,
)
from traceforge.report.formatting import (
    change as ratio_change,
)
from traceforge.report.machine_readable import MOST_ENTRIES, share, whole
from traceforge.thresholds import compare
from traceforge.thresholds import report as thresholds

FAMILY_TITLES = {
    "phase": "By phase (mean over ranks)",
    "cause": "By cause (adds up to the iteration)",
    "collective_transfer": "By collective: transfer, summed over a rank's calls in an iteration, hidden or not",
    "collective_skew": "By collective: first to last arrival, summed over a rank's calls in an iteration",
    "rank_work": "By rank: own work (all but waiting and transfer)",
    "rank_delay": "By rank: delay attributed to it",
}
"""Headings of the families of rows, in their order."""

NO_MORE_THAN_OTHERS = "no more than other ranks"
_MOST_CHARACTERS = 300

ONE_RUN_EACH = (
    "Scatter here is between iterations within each run. How much two runs of the same job differ "
    "is unknown from one run of each: repeat the baseline to find out."
)


def headline(comparison: Comparison) -> str:
    """The answer in one sentence."""
    return _answer(comparison) + _pace(comparison)


def _pace(comparison: Comparison) -> str:
    """How often an iteration begins, where they overlap, so that their durations overstate what a step takes."""
    paces = comparison.pace_ns
    if paces is None:
        return ""
    before_ns, after_ns = paces
    relative = ratio_change(after_ns / before_ns)
    return f"; they overlap, one begins every {duration(before_ns)} → {duration(after_ns)} ({relative})"


def _answer(comparison: Comparison) -> str:
    whole = comparison.iteration
    times = f"{duration(whole.before_ns)} → {duration(whole.after_ns)} an iteration"
    slow = _clearly_slow_iterations(comparison)
    is_episode = slow >= max(
        thresholds.LEAST_EPISODE_ITERATIONS, thresholds.LEAST_EPISODE_SHARE * len(comparison.durations_ns[1])
    )
    but = f"but {slow} iterations are clearly slower than any before: an episode, or a change that comes and goes"
    if not comparison.is_judged:
        why = f"Cannot be judged: {times} ({_ratio(whole)}), from {_counts(comparison)}; {_unseen(comparison)}"
        return f"{why}, {but}" if is_episode else why
    if not whole.is_significant and is_episode:
        return f"No significant change of the mean, {times} ({_ratio(whole)}), {but}"
    if not whole.is_significant:
        least = comparison.unseen_ns or 0.0
        seen = f"a change of {duration(least)} ({percent(least / whole.before_ns)}) or more would have shown"
        return f"No significant change: {times} ({_ratio(whole)}); {seen}"
    word = "slower" if whole.difference_ns > 0 else "faster"
    interval = _percent_range(whole)
    return f"{capital(word)}: {times} ({_ratio(whole)}{f', {interval}' if interval else ''})"


def _counts(comparison: Comparison) -> str:
    before, after = map(len, comparison.durations_ns)
    return plural(after, "iteration") if before == after else f"{before} against {plural(after, 'iteration')}"


def _unseen(comparison: Comparison) -> str:
    """Why no significant change means nothing here."""
    unseen = comparison.unseen_ns
    if unseen is None:
        return "too few to separate a change from scatter"
    return f"their scatter hides changes up to {duration(unseen)} ({percent(unseen / comparison.iteration.before_ns)})"


def _ratio(change: Change) -> str:
    if not change.before_ns:
        return "new"
    relative = change.difference_ns / change.before_ns
    return f"{'+' if relative > 0 else ''}{percent(relative)}"


def _percent_range(change: Change) -> str:
    if change.low_ns is None or change.high_ns is None:
        return ""
    low, high = (percent(end / change.before_ns) for end in (change.low_ns, change.high_ns))
    return f"95 % interval {low} to {high}"


def _slow_iterations(comparison: Comparison) -> int:
    before, after = comparison.durations_ns
    return int((after > before.max()).sum())


def _clearly_slow_iterations(comparison: Comparison) -> int:
    """Those that are slower than the baseline's slowest by more than the scatter of iterations explains."""
    before, after = comparison.durations_ns
    distance_ns = thresholds.EPISODE_DISTANCE * (before.max() - np.median(before))
    margin_ns = max(distance_ns, compare.LEAST_SHARE * before.mean())
    return int((after > before.max() + margin_ns).sum())


def tail(comparison: Comparison) -> str:
    """How many iterations were slower than any of the baseline, and how often one is slower than another."""
    before, after = comparison.durations_ns
    slowest = f"slower than the baseline's slowest ({duration(before.max())})"
    text = f"{_slow_iterations(comparison)} of {plural(len(after), 'iteration')} are {slowest}"
    pairs = f"in {percent(comparison.slower_share)} of all pairs of iterations the later run is slower"
    return f"{text}; {pairs}"


def subject(change: Change) -> str:
    """What a row is about, such as `wait`, `slow compute` or `all_reduce of 64.0 to 128 MB, 8 ranks`."""
    if change.family in ("rank_work", "rank_delay"):
        return f"rank {clean(change.name, 20)}"
    if change.family == "cause":
        if change.name == "reference":
            return "what all ranks do alike, at their usual pace"
        mode, _, cause = change.name.partition("/")
        return spaced(cause) if cause != "unexplained" else mode_name(mode).lower()
    if change.family in ("collective_transfer", "collective_skew"):
        return _collective(change.name)
    return spaced(change.name)


def _collective(name: str) -> str:
    op, least, ranks = name.rsplit("/", 2)
    known = size(int(least)) if least.isdigit() else ""
    amount = f" of {known} to {size(2 * int(least))}" if known else " of unknown size"
    return f"{clean(op, 40)}{amount}, {ranks} ranks"


def moved(change: Change, *, with_interval: bool = True) -> str:
    """Both means, the difference and its interval."""
    interval = duration_range(change.low_ns, change.high_ns) if with_interval else None
    ends = f" ({interval})" if interval else ""
    return f"{duration(change.before_ns)} → {duration(change.after_ns)}: {signed(change.difference_ns)}{ends}"


def judged(change: Change) -> str:
    """The judgement on a row, in a word or three."""
    if change.is_significant:
        return "slower" if change.difference_ns > 0 else "faster"
    if change.p_value is None:
        return "cannot be judged"
    if change.below_resolution:
        return "below the clocks' resolution"
    is_drift = change.family in ("rank_work", "rank_delay") and change.p_value < compare.FALSE_POSITIVE_RATE
    return NO_MORE_THAN_OTHERS if is_drift else "not significant"


def turned(finding: FindingChange) -> str:
    """What became of a finding, and its sentence; such as `new: Rank 4 …`."""
    if finding.before_ns is not None and finding.after_ns is not None:
        both = f"{duration(finding.before_ns)} → {duration(finding.after_ns)} an iteration"
        return f"{finding.turn}, {both}: {clean(finding.summary, _MOST_CHARACTERS)}"
    return f"{finding.turn}: {clean(finding.summary, _MOST_CHARACTERS)}"


def worked(change: OperationChange) -> str:
    """How an operation changed; such as `17 → 33 calls a rank, 5.10 ms → 9.90 ms: +4.80 ms`."""
    times = f"{duration(change.before_ns)} → {duration(change.after_ns)}: {signed(change.difference_ns)}"
    if change.kind in ("new", "gone"):
        return f"{change.kind}, {times}"
    if change.kind.endswith("_calls"):
        whose = "a rank" if change.rank is None else f"on rank {change.rank}"
        return f"{change.before_calls:.4g} → {change.after_calls:.4g} calls {whose}, {times}"
    return times if change.rank is None else f"on rank {change.rank}, {times}"


def paces(change: OperationChange) -> str:
    """Achieved arithmetic before and after, with a comma before it; nothing where it is not known."""
    if change.before_flops_per_s is None or change.after_flops_per_s is None:
        return ""
    return f", {tflops(change.before_flops_per_s)} → {tflops(change.after_flops_per_s)} TFLOP/s"


def judged_operation(change: OperationChange) -> str:
    """The judgement on an operation, in a word or three."""
    if change.is_significant:
        return spaced(change.kind)
    is_unknown = change.p_value is None and change.kind.endswith("_each")
    return "cannot be judged" if is_unknown else "not significant"


def summary(comparison: Comparison) -> str:
    """Which rows changed, in one sentence."""
    found = [one for one in comparison.findings if one.turn in ("new", "gone", "grown", "shrunk")]
    if found:
        return f"{capital(turned(found[0]))}"
    significant = [change for change in comparison.changes if change.is_significant]
    if not significant and not comparison.is_judged:
        return f"Whether a phase, cause, collective or rank changed cannot be judged from {_counts(comparison)}."
    if not significant:
        return "No phase, cause, collective or rank changed significantly."
    causes = comparison.of("cause", only_significant=True) or significant
    shown = [f"{subject(change)} ({signed(change.difference_ns)})" for change in causes]
    return f"What changed most: {listed(shown, 3)}."


def warnings(comparison: Comparison) -> list[str]:
    """Why the runs are not fully comparable, by the name of the field."""
    return [f"{o.field} ({clean(o.before, 60)} against {clean(o.after, 60)}): {o.why}" for o in comparison.objections]


def paced(comparison: Comparison) -> list[str]:
    """What pacing brought in the later run, a sentence a policy."""
    return [
        f"{clean(row['policy'], 80)} was {'decided on only' if row['is_dry_run'] else 'tried'}: measured "
        f"{_gain(row, 'throughput_ratio')} by {plural(row['pairs'], 'pair')} of blocks, "
        f"predicted {_gain(row, 'foretold_ratio')}"
        for row in comparison.paced
    ]


def _gain(row: Mapping[str, Any], name: str) -> str:
    if row[name] is None:
        return "nothing"
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    ends = "" if low is None or high is None else f" [{ratio_change(low)}, {ratio_change(high)}]"
    return f"{ratio_change(row[name])}{ends}"


def comparison_document(comparison: Comparison) -> dict[str, object]:
    """A comparison; the significant rows and the largest others of each family, times in whole ns."""
    return {
        "baseline": {"run": clean(comparison.before.run_name), "iterations": comparison.before.iterations},
        "run": {"run": clean(comparison.after.run_name), "iterations": comparison.after.iterations},
        "iteration": _change_document(comparison.iteration),
        "judged": comparison.is_judged,
        "pace": _pace_document(comparison),
        "slower_share": share(comparison.slower_share),
        "findings": [_finding_document(one) for one in comparison.findings],
        "operations": [_operation_document(one) for one in comparison.operations[:MOST_ENTRIES]],
        "details": [_operation_document(one) for one in comparison.details[:MOST_ENTRIES]],
        "changes": [
            _change_document(change) for family in FAMILY_TITLES for change in comparison.of(family)[:MOST_ENTRIES]
        ],
        "not_comparable_by": [
            {"field": o.field, "baseline": clean(o.before), "run": clean(o.after), "why": o.why}
            for o in comparison.objections
        ],
        **({"paced": list(comparison.paced)} if comparison.paced else {}),
    }


def _pace_document(comparison: Comparison) -> dict[str, object] | None:
    paces = comparison.pace_ns
    return None if paces is None else {"baseline_ns": whole(paces[0]), "run_ns": whole(paces[1])}


def _finding_document(finding: FindingChange) -> dict[str, object]:
    return {
        "turn": finding.turn,
        "cause": finding.cause,
        "subject_kind": finding.subject_kind,
        "subject": clean(finding.subject),
        "pattern": finding.pattern,
        "summary": clean(finding.summary),
        "baseline_ns": finding.before_ns,
        "run_ns": finding.after_ns,
    }


def _operation_document(change: OperationChange) -> dict[str, object]:
    return {
        "level": change.level,
        "name": clean(change.name),
        "rank": change.rank,
        "kind": change.kind,
        "baseline_ns": whole(change.before_ns),
        "run_ns": whole(change.after_ns),
        "difference_ns": whole(change.difference_ns),
        "baseline_calls": share(change.before_calls),
        "run_calls": share(change.after_calls),
        "baseline_flops_per_s": whole(change.before_flops_per_s),
        "run_flops_per_s": whole(change.after_flops_per_s),
        "p_value": change.p_value,
        "significant": change.is_significant,
    }


def _change_document(change: Change) -> dict[str, object]:
    return {
        "family": change.family,
        "name": clean(change.name),
        "baseline_ns": whole(change.before_ns),
        "run_ns": whole(change.after_ns),
        "difference_ns": whole(change.difference_ns),
        "difference_low_ns": whole(change.low_ns),
        "difference_high_ns": whole(change.high_ns),
        "p_value": change.p_value,
        "chance": change.p_value,  # Former name of p_value; goes with the next version.
        "significant": change.is_significant,
        "below_resolution": change.below_resolution,
    }
