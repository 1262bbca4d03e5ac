"""What a measurement of a coupling found. In: numbers, or a reason. Out: the same, in one form for all mechanisms."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measurement:
    """A coefficient with its intervals, or why there is none.

    Attributes:
        coefficient: the coupling; None where nothing was measured.
        low: lower end of the 95 % interval.
        high: upper end.
        surely_low: lower end of the 99 % interval, by which it is judged whether the coupling is there at all.
        surely_high: upper end.
        n: what it was measured on.
        f_statistic: strength of the instrument; None where there is none.
        gain_bound: share of the iterations' time at stake at the upper end; None where unknown.
        scope: what it was measured on, in words.
        caveat: a sentence to add to the reason, with a space before it; empty for none.
        refusal: why the numbers say nothing; empty where they do.
    """

    coefficient: float | None
    low: float | None
    high: float | None
    surely_low: float | None
    surely_high: float | None
    n: int
    f_statistic: float | None = None
    gain_bound: float | None = None
    scope: str = ""
    caveat: str = ""
    refusal: str = ""


def refused(n: int, reason: str, *, f_statistic: float | None = None) -> Measurement:
    """No numbers, and why."""
    return Measurement(None, None, None, None, None, n, f_statistic, refusal=reason)
