"""With which couplings findings are costed, and how their uncertainty goes into that of the costs."""

import pytest

from tests.replay.models import lockstep_model
from traceforge.attribute.findings.coupling_scenarios import (
    CouplingScenarios,
    coupling_scenarios,
)
from traceforge.attribute.findings.finding_cost import CostEstimate, reaching, widened
from traceforge.replay.coupling import NO_COUPLING, Couplings
from traceforge.replay.evidence import CalibrationRow as Found
from traceforge.replay.evidence import stretches_waits


def known_from(is_far: bool = False, **rows: tuple[str, float | None, float | None, float | None]) -> CouplingScenarios:
    """Couplings from rows of replay.calibration: verdict, coefficient, low, high."""
    return coupling_scenarios(
        {
            name: Found(0, name, value, low, high, 100, verdict, "")
            for name, (verdict, value, low, high) in rows.items()
        },
        lambda: is_far,
    )


def test_what_the_run_shows_is_taken_with_its_interval() -> None:
    known = known_from(
        arrival_spread=("identifiable", 0.25, 0.125, 0.375), waiting_overlap=("absent", 0.01, -0.01, 0.03)
    )

    assert known.likely == Couplings(spread=0.25)
    assert known.ends == ((Couplings(spread=0.125), Couplings(spread=0.375)),)
    assert known.assumption == ""


def test_nothing_known_is_taken_for_no_coupling() -> None:
    nothing = CouplingScenarios(may_transfers_grow=True)
    assert known_from() == nothing
    assert known_from(arrival_spread=("not_identifiable", None, None, None)) == nothing


def test_what_the_run_cannot_exclude_is_possible_and_not_likely() -> None:
    # given an estimate whose interval holds both no growth and one of 0.7, and nothing else that is slowed
    known = known_from(arrival_spread=("not_identifiable", 0.3, -0.2, 0.7), waiting_overlap=("absent", 0.0, 0.0, 0.0))
    assert known.likely == NO_COUPLING
    assert known.possible == (Couplings(spread=0.25), Couplings(spread=0.7))

    # then an estimate that was refused excludes as little as its interval does
    assert known_from(arrival_spread=("not_identifiable", None, None, 0.7)).possible == known.possible

    # then what is ruled out, or measured on waits that vary, leaves nothing open
    assert known_from(arrival_spread=("absent", 0.01, -0.01, 0.03)).possible == ()
    assert known_from(arrival_spread=("identifiable", 0.5, 0.3, 0.7)).possible == ()


def test_a_growth_that_hardly_varying_waits_show_may_be_none() -> None:
    # given waits that last nine, and eleven times what they vary by
    varied, steady = (
        lockstep_model([[[100 - by + 2 * by * (i % 2), 0]] for i in range(8)], transfer_ns=500) for by in (11, 9)
    )
    assert [stretches_waits(one) for one in (varied, steady)] == [False, True]
    measured = ("identifiable", 0.4, 0.2, 0.6)

    # then beyond that nothing shows that the growth goes on as far as no wait at all
    known = known_from(True, arrival_spread=measured)
    assert (known.likely.spread, known.possible, known.is_stretched) == (0.4, (NO_COUPLING,), True)
    known = known_from(False, arrival_spread=measured)
    assert (known.likely.spread, known.possible, known.is_stretched) == (0.4, (), False)


def test_where_kernels_are_slowed_transfers_may_be_too() -> None:
    # given kernels that are surely slower beside collectives, and no answer for transfers
    known = known_from(
        arrival_spread=("not_identifiable", None, None, None), transfer_overlap=("identifiable", 0.1, 0.1, 0.1)
    )

    # then the middle of what is plausible is taken, and all of it is possible
    assert known.likely == Couplings(spread=0.125, transferring=0.1)
    assert known.possible == (Couplings(spread=0.0, transferring=0.1), Couplings(spread=0.25, transferring=0.1))
    assert "counts on 12 % of the mean wait, and its interval on 0.0 % to 25 %." in known.assumption


def test_what_the_run_rules_out_is_not_plausible() -> None:
    # given an interval that holds 0 at 99 %, but not at 95 %
    known = known_from(
        arrival_spread=("not_identifiable", 0.3, 0.15, 0.5), waiting_overlap=("identifiable", 0.1, 0.1, 0.1)
    )

    assert (known.likely.spread, *(one.spread for one in known.possible)) == (0.2, 0.15, 0.25)


def test_one_open_end_of_an_interval_does_not_count() -> None:
    known = known_from(arrival_spread=("identifiable", 0.2, 0.19, 1.2))

    assert known.ends[0][1].spread == pytest.approx(0.23)


def test_ends_of_couplings_widen_an_interval_in_quadrature() -> None:
    # given 100 within 3 either way; between 96 and 104 by one coupling, 100 and 100 by another
    wider = widened(CostEstimate(100.0, 97.0, 103.0), [[96.0, 104.0], [100.0, 100.0]])

    assert wider == CostEstimate(100.0, 95.0, 105.0)


def test_where_no_interval_is_told_none_is_widened() -> None:
    assert widened(CostEstimate(100.0, None, None), [[96.0, 104.0]]) == CostEstimate(100.0, None, None)


def test_what_is_merely_possible_widens_an_interval_by_all_of_it() -> None:
    # given 100 within 3 either way, which may as well be 4 less, or 20 more
    assert reaching(CostEstimate(100.0, 97.0, 103.0), -4.0, 20.0) == CostEstimate(100.0, 93.0, 123.0)
    assert reaching(CostEstimate(100.0, None, None), -4.0, 20.0) == CostEstimate(100.0, None, None)
