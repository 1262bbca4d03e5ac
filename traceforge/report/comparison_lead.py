"""What changed since a baseline in two sentences. In: `Comparison`. Out: text for the head of a report; cleaned.

What all ranks do alike in every iteration stands out of no run by itself: only the baseline shows it. So the verdict
on a run is not the whole answer where a baseline was given, and this stands beside it.
"""

from traceforge.compare import Change, Comparison
from traceforge.report.comparison_text import headline, subject, turned
from traceforge.report.formatting import capital, clean, duration, listed, plural, signed
from traceforge.report.replaced_work import is_replaced, kept, replaced
from traceforge.thresholds import report as thresholds

_MOST_NAMED = 3
_MOST_LETTERS = 50


def against_baseline(comparison: Comparison | None, verdict: str = "") -> str:
    """How the run compares with its baseline and what makes up the difference; empty without one.

    Args:
        verdict: what is said of the run by itself: a new finding that it tells is not told again.
    """
    if comparison is None:
        return ""
    name = clean(comparison.before.run_name, 40)
    how, _, by = headline(comparison).partition(": ")
    answer = f"Against the baseline {name}: {how[:1].lower()}{', '.join(filter(None, (how[1:], by)))}."
    return " ".join(filter(None, [answer, _findings(comparison, verdict), what_changed(comparison)]))


def _findings(comparison: Comparison, verdict: str) -> str:
    """The first finding that came, went or changed; empty where none did."""
    found = [one for one in comparison.findings if one.turn != "same"]
    if not found:
        return ""
    is_told = found[0].turn == "new" and bool(found[0].summary) and found[0].summary[1:] in verdict
    first = "This finding is new." if is_told else capital(turned(found[0]))
    return f"{first} {plural(len(found) - 1, 'further finding')} changed." if len(found) > 1 else first


def what_changed(comparison: Comparison) -> str:
    """The phases that changed with what is in them, or the work where no phase did; empty where none did either."""
    phases = [_phase(one, comparison) for one in comparison.of("phase", only_significant=True)]
    parts = phases or _worked(comparison)
    return f"What changed most: {listed(parts, _MOST_NAMED)}." if parts else ""


def _phase(change: Change, comparison: Comparison) -> str:
    """A phase and its change; with the work or the collectives that it consists of."""
    parts = _worked(comparison) if change.name == "compute" else []
    if change.name == "transfer" and (other := overlap(comparison)):
        return f"{subject(change)} {signed(change.difference_ns)} ({other})"
    if change.name in ("transfer", "communication"):
        parts = [subject(one) for one in comparison.of("collective_transfer", only_significant=True)]
    made_of = f" (in {listed(parts, _MOST_NAMED)})" if parts else ""
    return f"{subject(change)} {signed(change.difference_ns)}{made_of}"


def overlap(comparison: Comparison) -> str:
    """That more or less of the transfers is hidden, where they themselves changed by little; empty where not."""
    exposed = next((one for one in comparison.of("phase", only_significant=True) if one.name == "transfer"), None)
    whole = comparison.of("collective_transfer")
    if exposed is None or not whole:
        return ""
    before_ns, after_ns = sum(one.before_ns for one in whole), sum(one.after_ns for one in whole)
    if abs(after_ns - before_ns) > thresholds.HIDDEN_SHARE * abs(exposed.difference_ns):
        return ""
    less = "less" if exposed.difference_ns > 0 else "more"
    return f"transfers take {duration(before_ns)} → {duration(after_ns)}, {less} of it hidden behind other work"


def _worked(comparison: Comparison) -> list[str]:
    """The operations that changed, and what came in the place of others as one."""
    operations = comparison.operations
    first = [f"operations: {replaced(operations)}"] if is_replaced(operations) else []
    return [*first, *(f"{clean(one.name, _MOST_LETTERS)} {signed(one.difference_ns)}" for one in kept(operations))]
