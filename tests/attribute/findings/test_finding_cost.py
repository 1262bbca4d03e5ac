"""What findings cost with couplings that a run does not exclude. Iterations take 100."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from tests.attribute.jobs import one_always_late_and_one_now_and_then
from tests.given import US
from tests.stories import told
from traceforge.attribute.findings import finding_cost
from traceforge.attribute.findings.cost_interval import PeerSpread
from traceforge.attribute.findings.counterfactual import BlamedTime, Counterfactual
from traceforge.attribute.findings.finding_cost import costs_if
from traceforge.replay.coupling import Couplings


def replays(saved: float, others: dict[float, float]) -> Counterfactual:
    """Replays in which removing what is blamed saves so much, and with other couplings other amounts."""
    return cast(
        "Counterfactual",
        SimpleNamespace(
            couplings=Couplings(),
            without_ns=lambda blamed: np.full(4, 100.0 - (saved if blamed else 0.0)),
            isolated_cost_ns=lambda _source: np.full(4, saved),
            coupled_by=lambda couplings: replays(others.get(couplings.spread, saved), {}),
        ),
    )


@pytest.mark.parametrize(("at_coupling", "counted"), [(35.0, 35.0), (-90.0, -90.0), (-700_000.0, 60.0), (130.0, 60.0)])
def test_a_coupling_with_which_nothing_would_have_ended_is_not_of_this_run(at_coupling: float, counted: float) -> None:
    # given a delay of 20 that, if transfers grow by as much as they wait, would cost another amount; half as much, 60
    model = replays(20.0, {1.0: at_coupling, 0.5: 60.0})
    blamed = [cast("BlamedTime", object())]
    likely = {(0, "saved"): np.full(4, 20.0)}

    costs = costs_if(model, blamed, [], range(4), likely, Couplings(spread=1.0))
    assert float(costs[0, "saved"].mean()) == counted


def test_ranks_of_other_findings_are_not_asked_what_a_rank_would_have_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {}

    def peers(
        _run: object, _causes: object, source: BlamedTime, _struck: object, late_themselves: Sequence[int]
    ) -> PeerSpread:
        asked[source.rank_places] = list(late_themselves)
        return PeerSpread(0.0, 10)

    monkeypatch.setattr(finding_cost, "peer_spread_of", peers)
    told(*one_always_late_and_one_now_and_then(40 * US))

    assert asked == {(2,): [0], (0,): [2]}
