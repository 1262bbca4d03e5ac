"""What calibration found, as a replay takes it in."""

import pytest

from tests.given import built, data_parallel_job, store_of
from traceforge.replay.coupling import NO_COUPLING, Couplings
from traceforge.replay.evidence import CalibrationRow, evidence, load_evidence, load_hosts


def found(
    mechanism: str, coefficient: float | None, low: float | None, high: float | None, verdict: str
) -> dict[str, CalibrationRow]:
    return {mechanism: CalibrationRow(0, mechanism, coefficient, low, high, 100, verdict, "As measured.")}


def test_a_coupling_that_is_there_comes_with_both_ends() -> None:
    known = evidence(found("arrival_spread", 0.5, 0.2, 0.8, "identifiable"))

    assert (known.point, known.low, known.high) == (Couplings(0.5), Couplings(0.2), Couplings(0.8))
    assert known.is_measured
    assert known.is_positive


def test_one_that_is_absent_may_still_be_as_large_as_its_upper_end() -> None:
    known = evidence(found("arrival_spread", 0.001, -0.002, 0.004, "absent"))

    assert (known.point, known.low, known.high) == (NO_COUPLING, NO_COUPLING, Couplings(0.004))
    assert known.is_measured
    assert not known.is_positive


def test_one_that_could_not_be_told_is_taken_for_none_and_said_to_be_unknown() -> None:
    known = evidence(found("arrival_spread", 0.5, -4.0, 5.0, "not_identifiable"))

    assert (known.point, known.low, known.high) == (NO_COUPLING, NO_COUPLING, NO_COUPLING)
    assert not known.is_measured
    assert known.reason == "As measured."


@pytest.mark.parametrize(("high", "largest"), [(0.1, 0.1), (-0.3, 0.0), (5.0, 2.0), (None, 2.0)])
def test_what_is_not_known_may_be_as_large_as_its_upper_end_or_as_is_likely(high: float | None, largest: float) -> None:
    known = evidence(found("arrival_spread", None, None, high, "not_identifiable"))

    assert known.possible == Couplings(largest)


def test_work_beside_a_waiting_collective_is_a_coupling_of_its_own() -> None:
    known = evidence(found("waiting_overlap", 0.3, 0.1, 0.5, "identifiable"))

    assert known.point == Couplings(waiting=0.3)
    assert known.is_positive
    assert not known.is_measured


def test_a_coupling_below_zero_supports_nothing_and_never_makes_work_take_less_than_no_time() -> None:
    known = evidence(found("waiting_overlap", -0.5, -3.0, -0.1, "identifiable"))

    assert known.low == Couplings(waiting=-0.9)
    assert not known.is_positive


def test_predictability_counts_only_where_it_was_told() -> None:
    assert evidence(found("predictability", 0.8, 0.6, 0.9, "identifiable")).predictability == 0.8
    assert evidence(found("predictability", 0.8, -0.6, 0.9, "not_identifiable")).predictability is None
    assert evidence({}).predictability is None


def test_a_database_tells_what_its_calibration_holds() -> None:
    with built(store_of(*data_parallel_job([[100, 60]] * 3)), "replay") as store:
        known = load_evidence(store, 0)
        hosts = load_hosts(store, 0, [0, 1])

    assert known.point == NO_COUPLING
    assert not known.is_measured
    assert hosts is None or len(hosts) == 2
