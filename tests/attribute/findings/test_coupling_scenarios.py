"""With which couplings findings are costed, and how their uncertainty goes into that of the costs."""

import pytest

from traceforge.attribute.findings.coupling_scenarios import CouplingScenarios, coupling_scenarios
from traceforge.attribute.findings.finding_cost import CostEstimate, widened
from traceforge.replay.coupling import NO_COUPLING, Couplings
from traceforge.replay.evidence import CalibrationRow as Found


def known_from(**rows: tuple[str, float | None, float | None, float | None]) -> CouplingScenarios:
    """Couplings from rows of replay.calibration: verdict, coefficient, low, high."""
    return coupling_scenarios(
        {name: Found(0, name, value, low, high, 100, verdict, "") for name, (verdict, value, low, high) in rows.items()}
    )


def test_what_the_run_shows_is_taken_with_its_interval() -> None:
    known = known_from(
        arrival_spread=("identifiable", 0.25, 0.125, 0.375), waiting_overlap=("absent", 0.01, -0.01, 0.03)
    )

    assert known.likely == Couplings(spread=0.25)
    assert known.ends == ((Couplings(spread=0.125), Couplings(spread=0.375)),)
    assert known.assumption == ""


def test_nothing_known_is_taken_for_no_coupling() -> None:
    assert known_from() == CouplingScenarios(NO_COUPLING, (), "")
    assert known_from(arrival_spread=("not_identifiable", None, None, None)) == CouplingScenarios(NO_COUPLING, (), "")


def test_what_the_run_cannot_exclude_is_open_and_not_likely() -> None:
    # given an estimate whose interval holds both no growth and one of 0.7, and nothing else that is slowed
    known = known_from(arrival_spread=("not_identifiable", 0.3, -0.2, 0.7), waiting_overlap=("absent", 0.0, 0.0, 0.0))
    assert known == CouplingScenarios(NO_COUPLING, (), "", open_growth=0.7)
    assert known.grown == (Couplings(spread=0.25), Couplings(spread=0.7))

    # then what is measured, or ruled out, leaves nothing open
    assert known_from(arrival_spread=("absent", 0.01, -0.01, 0.03)).open_growth == 0
    assert known_from(arrival_spread=("identifiable", 0.5, 0.3, 0.7)).open_growth == 0


def test_where_kernels_are_slowed_transfers_may_be_too() -> None:
    # given kernels that are surely slower beside collectives, and no answer for transfers
    known = known_from(
        arrival_spread=("not_identifiable", None, None, None), transfer_overlap=("identifiable", 0.1, 0.1, 0.1)
    )

    # then the middle of what is plausible is taken, and all of it is in the interval
    assert known.likely == Couplings(spread=0.125, transferring=0.1)
    assert known.ends == ((Couplings(spread=0.0, transferring=0.1), Couplings(spread=0.25, transferring=0.1)),)
    assert "counts on 12 % of the mean wait, and its interval on 0.0 % to 25 %." in known.assumption


def test_what_the_run_rules_out_is_not_plausible() -> None:
    # given an interval that holds 0 at 99 %, but not at 95 %
    known = known_from(
        arrival_spread=("not_identifiable", 0.3, 0.15, 0.5), waiting_overlap=("identifiable", 0.1, 0.1, 0.1)
    )

    assert (known.likely.spread, known.ends[0][0].spread, known.ends[0][1].spread) == (0.2, 0.15, 0.25)


def test_one_open_end_of_an_interval_does_not_count() -> None:
    known = known_from(arrival_spread=("identifiable", 0.2, 0.19, 1.2))

    assert known.ends[0][1].spread == pytest.approx(0.23)


def test_ends_of_couplings_widen_an_interval_in_quadrature() -> None:
    # given 100 within 3 either way; between 96 and 104 by one coupling, 100 and 100 by another
    wider = widened(CostEstimate(100.0, 97.0, 103.0), [[96.0, 104.0], [100.0, 100.0]])

    assert wider == CostEstimate(100.0, 95.0, 105.0)


def test_where_no_interval_is_told_none_is_widened() -> None:
    assert widened(CostEstimate(100.0, None, None), [[96.0, 104.0]]) == CostEstimate(100.0, None, None)
