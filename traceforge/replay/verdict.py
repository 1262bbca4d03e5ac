"""Would it help? In: a predicted ratio with its interval, ceiling, controls and what is known. Out: verdict and reason.

A policy is `supported` only if a coupling was measured whose interval lies above 0, lateness can be predicted from the
past (beyond 0.3), the interval of the gain lies above 0 in the recording and in as many steps to come, the same delays
dealt out at random gain less, and, where the coupling is that of waiting hosts, the ranks that are held back seldom
come last: measured against real paced runs, the replay then promises too much (`MOST_OVERSHOOT`). It has `no_effect`
where even the ceiling, or its interval, is below 1 %; it is a `harm` where even its best case loses, and the best guess
more than 1 %; all else is `not_identifiable`.
"""

from dataclasses import dataclass

from traceforge.replay.evidence import Evidence
from traceforge.stats import Interval
from traceforge.thresholds import replay as thresholds
from traceforge.units import format_share


@dataclass(frozen=True, slots=True)
class PolicyPrediction:
    """What a replay predicts of a policy; ratios are of throughput, with it over without.

    Attributes:
        ratio: at the best values of the couplings.
        interval: its 95 % interval; up to the largest likely coupling where it is unknown.
        without_coupling: ratio if nothing were slower where ranks are early.
        placebo: ratio with the same delays dealt out to ranks at random.
        ceiling: largest likely gain of any pacing, as a share.
        steps: steps that were replayed.
        is_paced: whether anybody is ever delayed.
        sees_future: whether the policy is a bound that nobody could run.
        to_come: the interval of the ratio over as many steps to come; None below three steps.
        overshoot: share of steps in which a rank that is held back comes last, and would not have without.
    """

    ratio: float
    interval: Interval
    without_coupling: float
    placebo: float
    ceiling: float
    steps: int
    is_paced: bool
    sees_future: bool = False
    to_come: Interval | None = None
    overshoot: float = 0.0


def judge(given: PolicyPrediction, known: Evidence) -> tuple[str, str]:
    """Verdict and reason."""
    if not given.is_paced:
        return "no_effect", "No rank is ever delayed."
    is_hopeless = given.ceiling < thresholds.NOTICEABLE_SHARE
    # What steps leave open is no gain where none is possible.
    best = given.ratio if is_hopeless and not known.is_measured else given.interval.high
    if best < 1 - thresholds.NOTICEABLE_SHARE:
        gained = f"({_range(given)})" if known.is_measured else f"even if transfers grow by {_growth(known)}"
        return "harm", f"The delays cost {format_share(1 - given.ratio)}, more than they gain {gained}."
    if is_hopeless:
        return "no_effect", f"{_bound(known)} would gain {format_share(given.ceiling)} at most."
    if not known.is_measured and not known.is_positive:
        return _without_coupling(given, known)
    return _with_coupling(given, known)


def _bound(known: Evidence) -> str:
    if known.is_measured:
        return "If no transfer grew with the spread of arrivals, the job"
    return f"Even if transfers grow by {_growth(known)} and no rank waited any more, the job"


def _without_coupling(given: PolicyPrediction, known: Evidence) -> tuple[str, str]:
    change = f"the policy changes throughput by {_change(given.ratio)}"
    grown, most = f"if they grow by {_growth(known)}", _change(given.interval.high)
    at_most = f"{grown}, by {most}"
    if given.ratio > 1 - thresholds.NOTICEABLE_SHARE and given.interval.high < 1 + thresholds.NOTICEABLE_SHARE:
        return "no_effect", (
            f"Throughput stays within 1 %: {_change(given.ratio)} if transfers do not slow down when arrivals spread, "
            f"{most} {grown}."
        )
    return "not_identifiable", (
        f"A gain needs transfers that slow down when arrivals spread. {known.reason} Without it {change}; {at_most}, "
        f"and no pacing gains more than {format_share(given.ceiling)}."
    )


def _growth(known: Evidence) -> str:
    return f"{known.largest_spread:.2g} times the mean wait before them"


def _with_coupling(given: PolicyPrediction, known: Evidence) -> tuple[str, str]:
    change = f"The policy changes throughput by {_change(given.ratio)} ({_range(given)})"
    controls = (
        f"without the coupling by {_change(given.without_coupling)}, with the same delays at random by "
        f"{_change(given.placebo)}; no pacing gains more than {format_share(given.ceiling)}"
    )
    low, high = given.interval.low, given.interval.high
    is_known_to_be_small = low <= 1 and low > 1 - thresholds.NOTICEABLE_SHARE and high < 1 + thresholds.NOTICEABLE_SHARE
    is_predictable = known.predictability is not None and known.predictability > thresholds.LEAST_PREDICTABILITY
    bound = "A bound, not a policy: no job knows in advance who will wait"
    overshoots = known.point.host > 0 and given.overshoot > thresholds.MOST_OVERSHOOT
    comes_last = f"in {format_share(given.overshoot)} of the steps a rank is held back until it comes last"
    doubts = (
        (given.sees_future, "not_identifiable", f"{bound}. {change}."),
        (is_known_to_be_small, "no_effect", f"{change}: less than 1 %; {controls}."),
        (high < 1 and given.ratio < 1 - thresholds.NOTICEABLE_SHARE, "harm", f"{change}: a loss; {controls}."),
        (high < 1, "no_effect", f"{change}: a loss of less than 1 %; {controls}."),
        (low <= 1, "not_identifiable", f"{change}: the interval holds both a gain and a loss; {controls}."),
        (
            given.steps < thresholds.LEAST_STEPS,
            "not_identifiable",
            f"{change}, but {given.steps} steps are too few to say so; {controls}.",
        ),
        (given.placebo >= given.ratio, "no_effect", f"{change}, and delays at random do as much; {controls}."),
        (not known.is_positive, "not_identifiable", f"{change}, but the coupling's interval reaches 0; {controls}."),
        (
            not is_predictable,
            "not_identifiable",
            f"{change}, but lateness cannot be predicted from the past; {controls}.",
        ),
        (
            given.to_come is not None and given.to_come.low <= 1,
            "not_identifiable",
            f"{change} in this recording, but by {_span(given.to_come)} in as many steps to come; {controls}.",
        ),
        (overshoots, "not_identifiable", f"{change}, but {comes_last}, at a cost that no replay knows; {controls}."),
    )
    supported = ("supported", f"{change}; {controls}.")
    return next(((verdict, reason) for holds, verdict, reason in doubts if holds), supported)


def _range(given: PolicyPrediction) -> str:
    return _span(given.interval)


def _span(interval: Interval | None) -> str:
    return "an unknown amount" if interval is None else f"{_change(interval.low)} to {_change(interval.high)}"


def _change(ratio: float) -> str:
    size = format_share(abs(ratio - 1))
    sign = "±" if size == format_share(0) else "+" if ratio > 1 else "\N{MINUS SIGN}"
    return sign + size
