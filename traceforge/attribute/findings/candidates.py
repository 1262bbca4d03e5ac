"""All candidates of a run. In: its ledger. Out: what stands out by work and by transfers, by-products graded down."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from traceforge.attribute.cause import cause_of_work, causes
from traceforge.attribute.findings.coinciding import with_coinciding
from traceforge.attribute.findings.counterfactual import BlamedTime, blamed_transfers, blamed_work
from traceforge.attribute.findings.finding_candidate import FindingCandidate
from traceforge.attribute.findings.lost_time import Delays, JudgedRun, LostTime, by_owner, lost_time
from traceforge.attribute.findings.routing import saved_of
from traceforge.attribute.findings.same_event import with_sure_events
from traceforge.attribute.findings.search import search
from traceforge.attribute.findings.slow_transfer_search import search_transfers, unexplained_transfers
from traceforge.thresholds import attribute as thresholds

_COMPUTING = cause_of_work("compute", None)


@dataclass(frozen=True, slots=True)
class Searched:
    """A run after the search.

    Attributes:
        found: all that stands out.
        left: losses of work that nothing of it explains.
        transfers_ns: slow transfers that nothing of it explains, shape (judged iterations,).
    """

    run: JudgedRun
    found: list[FindingCandidate]
    left: LostTime
    transfers_ns: Delays


def candidates(run: JudgedRun, delays: pl.DataFrame) -> Searched:
    """All that stands out of a run; `delays` are its rows of attribute.delay: iteration, owner, cause, delay_ns."""
    lost = lost_time(run, delays)
    found = _without_companions([*_without_parts(list(search(run, lost))), *search_transfers(run, delays)])
    found = with_sure_events(found, len(run.iterations))
    found = [_with_followers(one, found) for one in found]
    if run.couplings.may_transfers_grow:
        found = with_coinciding(found, len(run.iterations))
    claimed = [name for name, cause in causes().items() if cause.claims_transfer is not None]
    transfers = by_owner(run, delays.filter(pl.col("cause").is_in(claimed)), run.ledger.communicators)
    return Searched(run, found, lost, unexplained_transfers(transfers, found))


def _without_parts(found: Sequence[FindingCandidate]) -> list[FindingCandidate]:
    """Leave out what does not count alone and is part of what counts together with other causes of the same subject."""
    together = [(one.subject, set(one.parts)) for one in found if len(one.parts) > 1]
    return [
        one
        for one in found
        if len(one.parts) > 1
        or one.confidence != "low"
        or not any(one.subject == subject and one.parts.keys() <= parts for subject, parts in together)
    ]


def _without_companions(found: Sequence[FindingCandidate]) -> list[FindingCandidate]:
    """Grade down what may be a by-product: a rank's other causes, far smaller than the one it stands out by.

    It may stand out with other ranks, which are late alike.
    """
    result = []
    for one in found:
        # What is left of a rank that is named already, by several causes, has no cause of its own.
        factor = 1 if len(one.parts) > 1 else thresholds.COMPANION_FACTOR
        least = factor * one.effect.delay_ns_per_iteration
        greater = [
            other
            for other in found
            if other is not one and _is_of(one, other) and other.effect.delay_ns_per_iteration >= least
        ]
        result.append(replace(one, companion_of=greater[0].cause.name) if greater else one)
    return result


def _is_of(one: FindingCandidate, other: FindingCandidate) -> bool:
    """Whether both are of one subject, or the other one is of several ranks that this one's are among."""
    mine, others = one.subject, other.subject
    if (mine.kind, mine.name) == (others.kind, others.name):
        return True
    is_set = others.kind == "ranks" and not other.is_in_turns and not one.is_in_turns
    return is_set and set(mine.places) < set(others.places)


def _with_followers(one: FindingCandidate, found: Sequence[FindingCandidate]) -> FindingCandidate:
    """A pause of ranks, with the causes that follow from pauses, unless these are a finding of the ranks' own.

    A host that launches late in all iterations is slow, and what else it does takes longer.
    """
    is_pause = any(causes()[name].is_of_hosts for name in one.parts)
    if one.cause.claims_transfer is not None or not is_pause:
        return one
    counted = [other for other in found if other.confidence != "low" or other is one]
    places = set(one.subject.places)
    taken = {name for other in counted if places & set(other.subject.places) for name in other.parts}
    is_slow_host = one.effect.pattern == "persistent" and any(causes()[name].follows_pauses for name in one.parts)
    followers = [
        name
        for name, cause in causes().items()
        if (cause.follows_pauses or (is_slow_host and cause.comes_with_slow_hosts)) and name not in taken
    ]
    return replace(one, followers=tuple(followers))


def blamed_time(run: JudgedRun, found: FindingCandidate) -> BlamedTime:
    """What a replay without the finding leaves out.

    Ranks that wait for a slow one are slowed; beside what they take alone it is slower than it seems.
    """
    model, claim = run.ledger.model, found.cause.claims_transfer
    affected = [run.places[i] for i in found.effect.affected]
    if claim is None:
        only = affected if found.subject.kind == "job" and not found.is_in_turns else None
        alone, places = run.alone or model, found.subject.places
        blamed = blamed_work(alone, found.removed, places, in_turns=found.is_in_turns, iterations=only)
        is_routed = set(found.parts) == {_COMPUTING} and not found.is_in_turns and only is None
        ranks = [run.ranks[place] for place in blamed.rank_places]
        if not (is_routed and run.even_routing):
            return blamed
        # Evening out takes tokens from all hot experts at once, so that only who names them all owns the transfers.
        owns_transfers = set(run.even_routing) <= set(ranks)
        scaled = blamed.scaled(saved_of(run.even_routing, ranks))
        return replace(scaled, transfer_ns=run.uneven_ns) if owns_transfers else scaled
    if found.communicators:
        return blamed_transfers(model, np.isin(run.ledger.communicator, found.communicators))
    lacking = np.isin(run.ledger.communicator, sorted(run.ledger.lacking))
    return blamed_transfers(model, None if claim == "fabric" else lacking, affected)
