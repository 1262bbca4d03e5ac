"""Limits: how they are written, what a value with its interval makes of them, and what a baseline allows."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.given import built, data_parallel_job
from tests.given import store_of as given_store
from tests.report.tables import MS, Job, store_of
from traceforge import api
from traceforge.api import STAGES
from traceforge.check import (
    METRICS,
    LimitOutcome,
    LimitResult,
    MetricLimit,
    against_baseline,
    check_limits,
    parse_limit,
)
from traceforge.check.documents import junit, markdown, sentence
from traceforge.check.measured import Measured, MeasuredValue, measure
from traceforge.errors import InputUnusableError, UsageError
from traceforge.store.database import Store


@pytest.fixture(scope="module")
def late() -> Store:
    """Eight iterations, one of them warm-up; rank 2 late by 8 ms from the fourth on."""
    return store_of(Job())


def only(store: Store, text: str) -> LimitResult:
    (result,) = api.check(store, [parse_limit(text)])
    return result


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("iteration_ms=130", 130),
        ("iteration_ms = 0.13s", 130),
        ("p95_ms=500us", 0.5),
        ("wait_share=20%", 0.2),
        ("wait_share=0.2", 0.2),
        ("finding_confidence=low", 1),
        ("lost_events=0", 0),
    ],
)
def test_a_limit_is_read_in_the_unit_of_its_metric(text: str, limit: float) -> None:
    assert parse_limit(text).value == pytest.approx(limit)


@pytest.mark.parametrize(
    "text", ["speed=1", "iteration_ms", "iteration_ms=fast", "iteration_ms=nan", "cv=-1", "finding_confidence=2", "="]
)
def test_what_is_no_limit_is_a_usage_error_with_a_hint(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_limit(text)
    assert error.value.hint


def test_an_unknown_metric_is_told_with_all_that_are_known() -> None:
    with pytest.raises(UsageError, match="no metric `speed`") as error:
        parse_limit("speed=1")
    assert "iteration_ms" in str(error.value.hint)
    assert "exposed_communication_share" in str(error.value.hint)


def test_the_mean_is_kept_or_exceeded_or_within_its_noise(late: Store) -> None:
    # given iterations of about 106 to 114 ms, mean 110 or so
    durations = measure(late, 1).durations_ns / MS
    mean = durations.mean()

    # then a limit above the mean is kept, one below its interval exceeded, and one inside of it neither
    assert only(late, f"iteration_ms={mean + 0.1}").outcome is LimitOutcome.ok
    assert only(late, "iteration_ms=80").outcome is LimitOutcome.exceeded
    near = only(late, f"iteration_ms={mean - 0.1}")
    assert near.outcome is LimitOutcome.within_noise
    assert near.measured is not None
    assert near.measured.low is not None
    assert near.measured.low < mean - 0.1 < near.measured.value


def test_shares_count_all_ranks_time(late: Store) -> None:
    # given phases whose sum is known from the tables themselves
    waited, whole = late.query(
        "SELECT SUM(duration_ns) FILTER (phase = 'wait'), SUM(duration_ns) FROM timeline.phase WHERE iteration > 0"
    ).row(0)
    measured = only(late, "wait_share=1").measured
    assert measured is not None
    assert measured.value == pytest.approx(float(waited) / float(whole))
    assert measured.low is not None
    assert 0 <= measured.low < measured.value


def test_confidence_is_a_limit_too(late: Store) -> None:
    assert only(late, "finding_confidence=medium").outcome is LimitOutcome.exceeded
    assert only(late, "finding_confidence=high").outcome is LimitOutcome.ok
    assert only(late, "findings=2").outcome is LimitOutcome.ok
    assert only(late, "findings=1").outcome is LimitOutcome.exceeded


def test_what_a_run_does_not_tell_never_passes() -> None:
    # given a run of which nothing could be judged
    with Store(None, is_kept=False) as store:
        api.analyze(store)
        store.execute("INSERT INTO meta.run VALUES (1, 'empty', 4)")
        for limit in ("iteration_ms=1e9", "findings=9", "wait_share=1", "cv=9", "clock_residual_ms=1e9"):
            assert only(store, limit).outcome is LimitOutcome.not_measured


def test_a_run_keeps_the_limits_of_its_own_summary_whatever_the_tolerance(late: Store) -> None:
    summary = json.loads(json.dumps(api.summary(late)))
    names = ["p50_ms", "p99_ms", "cv", "wait_share", "compute_share", "finding_ms", "findings", "clock_residual_ms"]
    limits = against_baseline(summary, ["1%", *(f"{name}=1%" for name in names)], where="kept.json")
    assert {limit.metric.name for limit in limits} == {
        "iteration_ms", "p95_ms", "exposed_communication_share", "finding_confidence", *names,
    }  # fmt: skip
    assert {result.outcome for result in api.check(late, limits)} == {LimitOutcome.ok}


def test_a_baseline_allows_times_per_cent_and_shares_points(late: Store) -> None:
    summary = json.loads(json.dumps(api.summary(late)))
    limits = {limit.metric.name: limit for limit in against_baseline(summary, ["10%", "p95_ms=20%"], where="kept.json")}
    assert limits["iteration_ms"].value == pytest.approx(1.1 * summary["iterations"]["mean_ns"] / 1e6)
    assert limits["p95_ms"].value == pytest.approx(1.2 * summary["iterations"]["p95_ns"] / 1e6)
    shares = summary["phase_shares"]
    assert limits["exposed_communication_share"].value == pytest.approx(shares["wait"] + shares["transfer"] + 0.1)
    assert limits["finding_confidence"].value == 3


@pytest.mark.parametrize("document", [{}, {"schema_version": 2, "iterations": {}}, {"schema_version": 1}])
def test_what_is_no_summary_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(InputUnusableError, match="no summary of a report"):
        against_baseline(document, [], where="kept.json")


@pytest.mark.parametrize(
    ("key", "value"),
    [("iterations", {"mean_ns": "x"}), ("iterations", {"mean_ns": float("inf")}), ("phase_shares", 3), ("verdict", 1)],
)
def test_a_damaged_summary_is_refused_by_the_metric(late: Store, key: str, value: object) -> None:
    summary = json.loads(json.dumps(api.summary(late)))
    with pytest.raises(InputUnusableError, match="damaged at"):
        against_baseline({**summary, key: value}, [], where="kept.json")


def test_quantiles_lie_inside_their_intervals(late: Store) -> None:
    run: Measured = measure(late, 1)
    for share in (0.5, 0.95, 0.99):
        quantity = run.quantile(share)
        assert quantity is not None
        assert quantity.low is not None
        assert quantity.high is not None
        assert quantity.low <= quantity.value <= quantity.high


def test_two_iterations_vary_and_one_does_not() -> None:
    # 90 and 110: standard deviation 14.14 over a mean of 100
    none = np.array([], dtype=np.float64)
    measured = [Measured(np.array(ns), {}, none, none, None, 0, None, None) for ns in ([90.0, 110.0], [100.0])]

    varied = measured[0].variation()
    assert varied is not None
    assert varied.value == pytest.approx(0.1414, abs=1e-4)
    assert measured[1].variation() is None


@pytest.mark.parametrize(
    ("low_ms", "value_ms", "outcome"),
    [(90.0, 100.0, "ok"), (100.0, 101.0, "within_noise"), (100.5, 101.0, "exceeded"), (None, 101.0, "exceeded")],
)
def test_a_limit_that_is_just_reached_is_kept(late: Store, low_ms: float | None, value_ms: float, outcome: str) -> None:
    metric = replace(METRICS["iteration_ms"], measured=lambda _: MeasuredValue(value_ms, low_ms, 102.0))

    (result,) = check_limits(measure(late, 1), [MetricLimit(metric, 100.0)])

    assert result.outcome is LimitOutcome[outcome]


@pytest.fixture(scope="module")
def part() -> Store:
    """Rank 0 of four: 60 % computing, 40 % in an all-reduce of which nobody knows whether it waits or transfers."""
    (trace, *_) = data_parallel_job([[60 * MS] * 4] * 8, transfer_ns=40 * MS)
    return built(given_store(trace, world_size=4), *STAGES)


class TestPartialData:
    """What only a part of the ranks shows is never measured by omission."""

    @pytest.mark.parametrize(
        ("text", "outcome"),
        [
            # It may be anything from 0 to 40 %.
            ("wait_share=1%", LimitOutcome.not_measured),
            ("transfer_share=39%", LimitOutcome.not_measured),
            ("wait_share=41%", LimitOutcome.ok),
            # What does not depend on the others is measured.
            ("exposed_communication_share=1%", LimitOutcome.exceeded),
            ("compute_share=61%", LimitOutcome.ok),
            ("iteration_ms=101", LimitOutcome.ok),
            # One clock compares to none, and one rank's calls are matched with nobody's.
            ("clock_residual_ms=100", LimitOutcome.not_measured),
            ("unmatched_share=100%", LimitOutcome.not_measured),
        ],
    )
    def test_a_limit_is_kept_only_if_it_would_be_with_what_was_not_measured(
        self, part: Store, text: str, outcome: LimitOutcome
    ) -> None:
        assert only(part, text).outcome is outcome

    def test_a_breach_within_noise_does_not_pass_where_the_value_may_be_larger(self, part: Store) -> None:
        metric = replace(METRICS["wait_share"], measured=lambda _: MeasuredValue(0.05, 0.0, 0.1, unknown=0.3))

        (result,) = check_limits(measure(part, 0), [MetricLimit(metric, 0.02)])

        assert result.outcome is LimitOutcome.not_measured

    def test_it_is_said_between_what_the_value_lies(self, part: Store) -> None:
        result = only(part, "wait_share=1%")

        assert sentence(result) == (
            "wait_share cannot be measured in this run: between 0 % and 40 %, as members of collectives have no trace,"
            " or calls no partner; limit 1 %"
        )
        assert result.margin is None
        assert "| **not measured** | `wait_share` | between 0 % and 40 %" in markdown([result], "job")
        assert '<error message="wait_share cannot be measured' in junit([result], "job")

    def test_a_summary_of_it_has_no_waiting_and_still_all_exposed_communication(self, part: Store) -> None:
        summary = json.loads(json.dumps(api.summary(part)))

        assert summary["phase_shares"]["wait"] is None
        assert summary["phase_shares"]["transfer"] is None
        assert summary["phase_shares"]["communication"] == 0.4
        assert sum(share for share in summary["phase_shares"].values() if share is not None) == pytest.approx(1)
        assert summary["trust"]["ranks"] == 1
        assert summary["trust"]["ranks_of_job"] == 4
        assert summary["trust"]["largest_residual_ns"] is None
        assert summary["trust"]["calls_matched"] is None
        limits = {limit.metric.name: limit.value for limit in against_baseline(summary, ["0%"], where="summary")}
        assert limits["exposed_communication_share"] == pytest.approx(0.4)
        with pytest.raises(UsageError, match="does not hold wait_share"):
            against_baseline(summary, ["wait_share=5%"], where="summary")
