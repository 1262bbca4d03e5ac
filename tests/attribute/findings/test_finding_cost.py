"""What findings cost with couplings that a run does not exclude. Iterations take 100."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from tests.given import US, Trace
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
    # given rank 2, 30 us late at the first of two all-reduces, and rank 0, 40 us at each fifth of the second
    traces = [Trace(rank) for rank in range(4)]
    for i, now in enumerate(range(0, 20 * 200 * US, 200 * US)):
        for rank, trace in enumerate(traces):
            done, again = now + 50 * US + 30 * US * (rank == 2), now + 130 * US + 40 * US * (rank == 0 and i % 5 == 4)
            trace.step(i, now, now + 200 * US).kernel(now, done).collective(done, now + 90 * US)
            trace.kernel(now + 90 * US, again).collective(again, now + (180 if i % 5 == 4 else 140) * US)
    asked = {}

    def peers(
        _run: object, _causes: object, source: BlamedTime, _struck: object, late_themselves: Sequence[int]
    ) -> PeerSpread:
        asked[source.rank_places] = list(late_themselves)
        return PeerSpread(0.0, 10)

    monkeypatch.setattr(finding_cost, "peer_spread_of", peers)
    told(*traces)

    assert asked == {(2,): [0], (0,): [2]}
