"""What findings cost, together and alone. In: candidates and what each blames. Out: costs with intervals.

A finding that counts is costed by replays (see `counterfactual`); what stands out but does not count, and findings that
are too many to separate by replaying their sets, keep the ledger's share. Where a coupling is measured within an
interval, costs are replayed at both of its ends too, and their difference widens the cost's own interval, in
quadrature. Where nothing tells which of several couplings holds, the interval reaches from the least to the most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from traceforge.attribute.findings.cost_interval import PeerSpread, interval_of, peer_spread_of
from traceforge.attribute.findings.counterfactual import BlamedTime, Counterfactual
from traceforge.attribute.findings.coupling_scenarios import CouplingScenarios
from traceforge.attribute.findings.effects import Effect
from traceforge.attribute.findings.finding_candidate import FindingCandidate
from traceforge.attribute.findings.replay_residual import ReplayResidual, replay_residual
from traceforge.attribute.ledger.host_floor import HostFloor
from traceforge.attribute.ledger.ledger_input import LedgerInput
from traceforge.replay.coupling import Couplings
from traceforge.replay.reference import Amounts
from traceforge.stats import LEAST_COUNT
from traceforge.thresholds import attribute as thresholds

# Costs of a finding: its part in the iterations, what fixing it alone saves, what it alone would cost.
_KINDS = ("delay", "saved", "isolated")
_HALVINGS = 5


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """A mean over the judged iterations and the ends of its 95 % interval, ns; None below three iterations."""

    mean_ns: float
    low_ns: float | None
    high_ns: float | None


@dataclass(frozen=True, slots=True)
class FindingCost:
    """What one finding costs.

    Attributes:
        delay: its part of the iterations' time.
        ledger_ns: the same by the ledger.
        affected_ns: its part of an affected iteration.
        saved: what removing it alone saves.
        isolated: what it alone would cost, were all else at its reference.
        waited_ns: time ranks wait because of it, summed over ranks, an iteration.
        caused_ns: its own time above the reference, an iteration.
        coupled_ns: part of what removing it saves that is transfers, which slow down while ranks wait; None where no
            such coupling was measured.
        together_ns: what removing all that count at once saves.
        left_ns: what is in all three costs for what the replay leaves of it, in an affected iteration.
        open_ns: what its intervals allow for transfers that may grow with waits, which the run cannot exclude.
        host_limited_ns: what removing it alone saves if all that hosts do is work, and no wait for their devices; None
            where that is not known.
        is_at_most: whether ranks that were not recorded may come later still, so that it is the most it may be.
    """

    delay: CostEstimate
    ledger_ns: float
    affected_ns: float
    saved: CostEstimate
    isolated: CostEstimate
    waited_ns: float
    caused_ns: float
    left_ns: float
    coupled_ns: float | None = None
    together_ns: float = 0.0
    open_ns: float = 0.0
    host_limited_ns: float | None = None
    is_at_most: bool = False

    def columns(self, pace_ns: float) -> dict[str, object]:
        """The columns of attribute.finding that it fills.

        Args:
            pace_ns: what an iteration takes of the job's time, which gains are of as shares are.
        """
        gain = partial(_gain, pace_ns)
        return {
            "delay_ns_per_iteration": round(self.delay.mean_ns),
            "delay_low_ns": _whole(self.delay.low_ns),
            "delay_high_ns": _whole(self.delay.high_ns),
            "ledger_ns_per_iteration": round(self.ledger_ns),
            "affected_delay_ns": round(self.affected_ns),
            "gain_if_fixed": gain(self.saved.mean_ns),
            "gain_low": None if self.saved.low_ns is None else gain(self.saved.low_ns),
            "gain_high": None if self.saved.high_ns is None else gain(self.saved.high_ns),
            "isolated_cost_ns": round(self.isolated.mean_ns),
            "isolated_cost_low_ns": _whole(self.isolated.low_ns),
            "isolated_cost_high_ns": _whole(self.isolated.high_ns),
            "gain_if_all_fixed": gain(self.together_ns),
            "coupled_ns_per_iteration": _whole(self.coupled_ns),
            "is_at_most": self.is_at_most,
            "amplification": self.waited_ns / self.caused_ns if self.caused_ns > 0 else None,
        }


def _gain(pace_ns: float, saved_ns: float) -> float | None:
    left = pace_ns - saved_ns
    return pace_ns / left - 1 if left > 0 else None


def finding_costs(
    run: LedgerInput,
    places: Sequence[int],
    found: Sequence[FindingCandidate],
    sources: Sequence[BlamedTime],
    scenarios: CouplingScenarios,
    hosts: HostFloor | None = None,
) -> list[FindingCost]:
    """Cost of each finding.

    Args:
        places: the judged iterations, as places of the model.
        sources: what each finding blames.
        scenarios: the run's couplings.
        hosts: what its hosts need for themselves; None where that is not known.
    """
    rng, result = np.random.default_rng(0), list[FindingCost]()
    replays = Counterfactual(run.model, scenarios.likely, hosts)
    players = [n for n, one in enumerate(found) if one.confidence != "low"]
    likely = _costs(replays, sources, players, places)
    coupled = partial(costs_if, replays, sources, players, places, likely)
    at_ends = [[coupled(end) for end in both] for both in scenarios.ends if found]
    open_to = [likely, *(coupled(one) for one in scenarios.possible if players)]
    doubt = None if hosts is None else replays.limited_by(hosts.without_doubt())
    limited = None if doubt is None else _costs(doubt, sources, players, places)
    uncoupled = _saved_uncoupled(replays, scenarios, sources, places)
    # Hosts limit the sum of what is saved, not each iteration.
    left = _left(replays.limited_by(None), found, sources, likely, places)
    together = float((replays.without_ns([]) - replays.without_ns([sources[n] for n in players]))[places].mean())
    for n, one in enumerate(found):
        effect, source = one.effect, sources[n]
        late = _late_beside(n, found, sources, players)
        known = peer_spread_of(run, one.removed, source, np.asarray(places)[effect.affected], late)
        estimates = {}
        for kind in (kind for kind in _KINDS if (n, kind) in likely):
            ends = [[float(costs[n, kind].mean()) for costs in both] for both in at_ends]
            estimate = widened(_estimate(likely[n, kind], effect, known, rng), ends)
            estimate = _corrected(estimate, left[n], len(effect.affected) / len(places))
            moved = [float((costs[n, kind] - likely[n, kind]).mean()) for costs in open_to]
            estimate = reaching(estimate, min(moved), max(moved) + one.beside_ns)
            estimates[kind] = _down_to(estimate, limited[n, kind].mean() if limited else None)
        delay = estimates.get("delay", _of_ledger(effect))
        caused = source.rank_seconds_ns()[places]
        waited = len(run.model.ranks) * delay.mean_ns - (0 if source.is_transfer else float(caused.mean()))
        result.append(
            FindingCost(
                delay=delay,
                ledger_ns=effect.delay_ns_per_iteration,
                affected_ns=_affected_ns(likely.get((n, "delay")), effect, left[n]),
                saved=estimates["saved"],
                isolated=estimates["isolated"],
                waited_ns=max(0.0, waited),
                caused_ns=float(caused.mean()),
                left_ns=left[n].mean_ns,
                coupled_ns=None if uncoupled is None else float((likely[n, "saved"] - uncoupled[n]).mean()),
                together_ns=together,
                open_ns=max(float((costs[n, "saved"] - likely[n, "saved"]).mean()) for costs in open_to),
                host_limited_ns=float(limited[n, "saved"].mean()) if limited else None,
            )
        )
    return result


def _late_beside(
    n: int, found: Sequence[FindingCandidate], sources: Sequence[BlamedTime], players: Sequence[int]
) -> list[int]:
    """Ranks that others of the findings blame, as places; what all lose, or lose in turns, says nothing of one."""
    others = (other for other in players if other != n and found[other].subject.kind != "job")
    return [place for other in others if not found[other].is_in_turns for place in sources[other].rank_places]


def _saved_uncoupled(
    replays: Counterfactual, scenarios: CouplingScenarios, sources: Sequence[BlamedTime], places: Sequence[int]
) -> list[Amounts] | None:
    """What removing each would save if transfers did not grow with waits; None where it was not measured."""
    if scenarios.likely.spread <= 0 or scenarios.assumption:
        return None
    apart = replays.coupled_by(replace(scenarios.likely, spread=0.0))
    whole = apart.without_ns([])
    return [(whole - apart.without_ns([source]))[places] for source in sources]


def _left(
    replays: Counterfactual,
    found: Sequence[FindingCandidate],
    sources: Sequence[BlamedTime],
    likely: Mapping[tuple[int, str], Amounts],
    places: Sequence[int],
) -> list[ReplayResidual]:
    """What the replay leaves of each finding."""
    players = [n for n in range(len(found)) if (n, "delay") in likely]
    without = replays.without_ns([sources[n] for n in players])[places] if players else np.zeros(0)
    result, calls = [ReplayResidual()] * len(found), replays.calls[places]
    for n in players:
        struck = found[n].effect.affected
        others = [found[other].effect.affected for other in players if other != n]
        elsewhere = np.concatenate([np.zeros(0, dtype=np.int64), *others])
        result[n] = replay_residual(without, likely[n, "delay"], struck, elsewhere, calls)
    return result


def _corrected(estimate: CostEstimate, left: ReplayResidual, part: float) -> CostEstimate:
    """An estimate with what the replay leaves in a part of the iterations."""
    mean, moved = estimate.mean_ns, part * left.mean_ns
    if estimate.low_ns is None or estimate.high_ns is None:
        return CostEstimate(mean + moved, None, None)
    there = CostEstimate(mean + moved, estimate.low_ns + moved, estimate.high_ns + moved)
    return widened(there, [[mean + part * left.low_ns, mean + part * left.high_ns]])


def reaching(estimate: CostEstimate, below_ns: float, above_ns: float) -> CostEstimate:
    """An estimate that may as well be less or more, by amounts of which no chance is known."""
    if estimate.low_ns is None or estimate.high_ns is None:
        return estimate
    return CostEstimate(estimate.mean_ns, estimate.low_ns + below_ns, estimate.high_ns + above_ns)


def _down_to(estimate: CostEstimate, least_ns: float | None) -> CostEstimate:
    """An estimate that may as well be as little; None where it may not."""
    if least_ns is None or estimate.low_ns is None:
        return estimate
    return replace(estimate, low_ns=min(estimate.low_ns, least_ns))


def _affected_ns(delay_ns: Amounts | None, effect: Effect, left: ReplayResidual) -> float:
    """What a finding costs an affected iteration, by replay or else by the ledger."""
    return effect.affected_delay_ns if delay_ns is None else float(delay_ns[effect.affected].mean()) + left.mean_ns


def _costs(
    replays: Counterfactual, sources: Sequence[BlamedTime], players: Sequence[int], places: Sequence[int]
) -> dict[tuple[int, str], Amounts]:
    """Costs of each source by kind, ns, shape (judged iterations,): `delay` of those that count, unless too many do."""
    whole, result = replays.without_ns([]), {}
    for n, source in enumerate(sources):
        result[n, "saved"] = (whole - replays.without_ns([source]))[places]
        result[n, "isolated"] = replays.isolated_cost_ns(source)[places]
    if players and len(players) <= thresholds.MOST_SEPARATED:
        for n, own in zip(players, replays.costs_ns([sources[n] for n in players]), strict=True):
            result[n, "delay"] = own[places]
    return result


def costs_if(
    replays: Counterfactual,
    sources: Sequence[BlamedTime],
    players: Sequence[int],
    places: Sequence[int],
    likely: Mapping[tuple[int, str], Amounts],
    couplings: Couplings,
) -> Mapping[tuple[int, str], Amounts]:
    """Costs with other couplings, or with nearer ones where something would cost, or save, more than an iteration.

    Where messages follow one another, transfers that grow strongly with waits make one another grow without end: with
    such a coupling the run would not have ended when it did. Then half the distance to the replays' own couplings is
    tried, and so on.

    Args:
        likely: costs with the replays' own couplings.
    """
    longest_ns = float(replays.without_ns([])[places].mean())
    for _ in range(_HALVINGS):
        costs = _costs(replays.coupled_by(couplings), sources, players, places)
        if all(abs(float(one.mean())) <= longest_ns for one in costs.values()):
            return costs
        couplings = couplings.halfway_to(replays.couplings)
    return likely


def widened(estimate: CostEstimate, at_ends: Sequence[Sequence[float]]) -> CostEstimate:
    """The interval with what else the mean may be, in quadrature.

    Args:
        at_ends: for each coupling the mean at the lower and at the upper end of its interval.
    """
    if estimate.low_ns is None or estimate.high_ns is None:
        return estimate
    mean = estimate.mean_ns
    below = [mean - estimate.low_ns, *(max(0.0, mean - min(both)) for both in at_ends)]
    above = [estimate.high_ns - mean, *(max(0.0, max(both) - mean) for both in at_ends)]
    return CostEstimate(mean, mean - float(np.linalg.norm(below)), mean + float(np.linalg.norm(above)))


def _estimate(costs_ns: Amounts, effect: Effect, known: PeerSpread, rng: np.random.Generator) -> CostEstimate:
    mean_ns = float(costs_ns.mean())
    if len(costs_ns) < LEAST_COUNT:
        return CostEstimate(mean_ns, None, None)
    return CostEstimate(mean_ns, *interval_of(costs_ns, effect.affected, known, rng))


def _of_ledger(effect: Effect) -> CostEstimate:
    low, high = effect.interval_ns or (None, None)
    return CostEstimate(effect.delay_ns_per_iteration, low, high)


def _whole(value_ns: float | None) -> int | None:
    return None if value_ns is None else round(value_ns)
