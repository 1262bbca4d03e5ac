"""What changed since a baseline in two sentences. In: `Comparison`. Out: text for the head of a report; cleaned.

What all ranks do alike in every iteration stands out of no run by itself: only the baseline shows it. So the verdict
on a run is not the whole answer where a baseline was given, and this stands beside it.
"""

from traceforge.compare import Change, Comparison
from traceforge.report.comparison_text import headline, subject, turned
from traceforge.report.formatting import capital, clean, listed, plural, signed

_MOST_NAMED = 3
_MOST_LETTERS = 50


def against_baseline(comparison: Comparison | None) -> str:
    """How the run compares with its baseline and what makes up the difference; empty without one."""
    if comparison is None:
        return ""
    name = clean(comparison.before.run_name, 40)
    return " ".join(filter(None, [f"Against the baseline {name}: {headline(comparison)}.", what_changed(comparison)]))


def what_changed(comparison: Comparison) -> str:
    """The findings that came or went, or else the phases that changed with what is in them; empty where none did."""
    found = [one for one in comparison.findings if one.turn != "same"]
    if found:
        more = f" {plural(len(found) - 1, 'further finding')} changed." if len(found) > 1 else ""
        return f"{capital(turned(found[0]))}{more}"
    phases = comparison.of("phase", only_significant=True)
    if not phases:
        return ""
    return f"What changed most: {listed([_phase(one, comparison) for one in phases], _MOST_NAMED)}."


def _phase(change: Change, comparison: Comparison) -> str:
    """A phase and its change; with the work or the collectives that it consists of."""
    parts = []
    if change.name == "compute":
        worked = (one for one in comparison.operations if one.is_significant)
        parts = [f"{clean(one.name, _MOST_LETTERS)} {signed(one.difference_ns)}" for one in worked]
    if change.name in ("transfer", "communication"):
        parts = [subject(one) for one in comparison.of("collective_transfer", only_significant=True)]
    made_of = f" (in {listed(parts, _MOST_NAMED)})" if parts else ""
    return f"{subject(change)} {signed(change.difference_ns)}{made_of}"
