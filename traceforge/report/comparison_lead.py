"""What changed since a baseline in two sentences. In: `Comparison`. Out: text for the head of a report; cleaned.

What all ranks do alike in every iteration stands out of no run by itself: only the baseline shows it. So the verdict
on a run is not the whole answer where a baseline was given, and this stands beside it.
"""

from traceforge.compare import Change, Comparison
from traceforge.report.comparison_text import headline, subject, turned
from traceforge.report.formatting import capital, clean, listed, plural, signed
from traceforge.report.replaced_work import is_replaced, kept, replaced

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
    phases = [_phase(one, comparison) for one in comparison.of("phase", only_significant=True)]
    parts = phases or _worked(comparison)
    return f"What changed most: {listed(parts, _MOST_NAMED)}." if parts else ""


def _phase(change: Change, comparison: Comparison) -> str:
    """A phase and its change; with the work or the collectives that it consists of."""
    parts = _worked(comparison) if change.name == "compute" else []
    if change.name in ("transfer", "communication"):
        parts = [subject(one) for one in comparison.of("collective_transfer", only_significant=True)]
    made_of = f" (in {listed(parts, _MOST_NAMED)})" if parts else ""
    return f"{subject(change)} {signed(change.difference_ns)}{made_of}"


def _worked(comparison: Comparison) -> list[str]:
    """The operations that changed, and what came in the place of others as one."""
    operations = comparison.operations
    first = [f"operations: {replaced(operations)}"] if is_replaced(operations) else []
    return [*first, *(f"{clean(one.name, _MOST_LETTERS)} {signed(one.difference_ns)}" for one in kept(operations))]
