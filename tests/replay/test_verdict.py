"""Verdicts at their borders: what must be known before a gain is promised."""

from dataclasses import replace

import pytest

from tests.replay.models import coupled_by
from traceforge.replay.evidence import NOTHING_KNOWN
from traceforge.replay.verdict import PolicyPrediction, judge
from traceforge.stats import Interval

MEASURED = coupled_by(1.0)
GAIN = PolicyPrediction(
    ratio=1.05,
    interval=Interval(1.02, 1.08),
    without_coupling=0.99,
    placebo=0.98,
    ceiling=0.2,
    steps=40,
    is_paced=True,
)


def unknown(ratio: float, ceiling: float, *, is_paced: bool = True) -> PolicyPrediction:
    """A prediction where the coupling was not measured: it reaches up to the ceiling."""
    interval = Interval(ratio, max(ratio, ratio * (1 + ceiling)))
    return replace(GAIN, ratio=ratio, interval=interval, ceiling=ceiling, is_paced=is_paced)


@pytest.mark.parametrize(
    ("ratio", "ceiling", "is_paced", "verdict"),
    [
        (1.0, 0.5, False, "no_effect"),  # nobody is ever delayed
        (1.0, 0.0, True, "no_effect"),  # nothing to gain
        (1.0, 0.0099, True, "no_effect"),  # less than one per cent to gain
        (1.0, 0.01, True, "not_identifiable"),  # one per cent to gain, if there is a coupling
        (0.99, 0.0, True, "no_effect"),  # costs one per cent, not more
        (0.9899, 0.0, True, "harm"),  # costs more than one per cent, and nothing to gain
        (0.95, 0.03, True, "harm"),  # 1.03 x 0.95 = 0.979: even the ceiling does not make up for it
        (0.95, 0.05, True, "not_identifiable"),  # 1.05 x 0.95 = 0.998: it might
        (0.995, 0.0145, True, "no_effect"),  # 0.5 % lost, or 0.9 % gained
        (0.985, 0.0245, True, "not_identifiable"),  # 1.5 % lost, or 0.9 % gained
    ],
)
def test_without_a_measured_coupling(ratio: float, ceiling: float, is_paced: bool, verdict: str) -> None:
    assert judge(unknown(ratio, ceiling, is_paced=is_paced), NOTHING_KNOWN)[0] == verdict


def test_no_policy_is_supported_while_no_coupling_is_measured() -> None:
    found = {judge(unknown(ratio, ceiling), NOTHING_KNOWN)[0] for ratio in (0.5, 1.0, 1.5) for ceiling in (0, 0.02, 2)}

    assert "supported" not in found


def test_a_gain_with_everything_known_is_supported_and_its_controls_are_told() -> None:
    verdict, reason = judge(GAIN, MEASURED)

    assert verdict == "supported"
    assert reason == (
        "The policy changes throughput by +5.0 % (+2.0 % to +8.0 %); without the coupling by \N{MINUS SIGN}1.0 %, with "
        "the same delays at random by \N{MINUS SIGN}2.0 %; no pacing gains more than 20 %."
    )


@pytest.mark.parametrize(
    ("change", "verdict", "words"),
    [
        ({"interval": Interval(1.0, 1.08)}, "not_identifiable", "holds both a gain and a loss"),
        ({"interval": Interval(0.995, 1.005), "ratio": 1.0}, "no_effect", "less than 1 %"),
        ({"interval": Interval(0.97, 0.98), "ratio": 0.975}, "harm", "more than they gain"),
        ({"interval": Interval(0.97, 0.995), "ratio": 0.985}, "harm", "a loss"),
        ({"interval": Interval(0.985, 0.998), "ratio": 0.992}, "no_effect", "a loss of less than 1 %"),
        ({"ceiling": 0.0099}, "no_effect", "at most"),
        ({"placebo": 1.05}, "no_effect", "at random do as much"),
        ({"steps": 9}, "not_identifiable", "9 steps are too few"),
        (
            {"to_come": Interval(0.99, 1.1)},
            "not_identifiable",
            "but by \N{MINUS SIGN}1.0 % to +10 % in as many steps to come",
        ),
        ({"sees_future": True}, "not_identifiable", "A bound"),
    ],
)
def test_what_takes_support_away(change: dict[str, object], verdict: str, words: str) -> None:
    found, reason = judge(replace(GAIN, **change), MEASURED)  # type: ignore[arg-type]

    assert found == verdict
    assert words in reason


def test_a_coupling_whose_interval_reaches_nothing_supports_nothing() -> None:
    assert judge(GAIN, coupled_by(1.0, low=0.0))[0] == "not_identifiable"


@pytest.mark.parametrize(("lag", "verdict"), [(0.3, "not_identifiable"), (0.31, "supported")])
def test_lateness_must_be_told_from_the_past(lag: float, verdict: str) -> None:
    assert judge(GAIN, coupled_by(1.0, lag=lag))[0] == verdict


@pytest.mark.parametrize(
    ("host", "overshoot", "verdict"),
    [(1.0, 0.16, "not_identifiable"), (1.0, 0.15, "supported"), (0.0, 0.9, "supported")],
)
def test_where_waiting_hosts_slow_others_a_policy_that_often_holds_ranks_back_too_long_is_not_supported(
    host: float, overshoot: float, verdict: str
) -> None:
    # in recorded jobs such a policy lost although its replay gained
    known = replace(MEASURED, point=replace(MEASURED.point, host=host))

    assert judge(replace(GAIN, overshoot=overshoot), known)[0] == verdict
