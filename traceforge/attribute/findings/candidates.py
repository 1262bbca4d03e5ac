"""Who stands out by which cause. In: the ledger of a run. Out: candidates for findings, graded but not yet costed.

Of each cause, single ranks first; where none stands out alone, the ranks of a host together; then the job: what ranks
cause in turns, and what comes and goes. Slow transfers are a communicator's where its path is slow, else the job's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from traceforge.attribute.cause import UNEXPLAINED, Cause, causes
from traceforge.attribute.findings.counterfactual import BlamedTime, blamed_transfers, blamed_work
from traceforge.attribute.findings.grading import GradeLimits
from traceforge.attribute.findings.significance import (
    Delays,
    Effect,
    dominant_rank,
    effect_on_job,
    effects_of_ranks,
    rotating_straggler,
)
from traceforge.attribute.ledger.ledger_input import LedgerInput
from traceforge.replay.reference_rule import ReferenceRule
from traceforge.thresholds import attribute as thresholds


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """What findings of one run are made from; durations in ns, shape (iterations,)."""

    run_id: int
    ledger: LedgerInput
    iterations: list[int]
    durations_ns: Delays
    residual_ns: int
    hosts: list[str | None]
    members: dict[int, list[int]]
    has_device: bool

    @property
    def places(self) -> list[int]:
        """Places of the judged iterations in the model."""
        found: list[int] = np.searchsorted(self.ledger.model.iterations, self.iterations).tolist()
        return found

    def limits(self, cause: Cause) -> GradeLimits:
        """When an effect counts.

        Ranks without devices that share a host take its cores from one another, and lose them to whatever else runs
        there: work then pauses and transfers take longer in some iterations although nothing is wrong with the job.
        """
        usual = GradeLimits()
        if self.has_device or len(set(self.hosts)) == len(self.hosts):
            return usual
        if cause.is_like_taken_cores:
            return replace(usual, medium_share=thresholds.HARD_HIT_SHARE, high_share=thresholds.HARD_HIT_SHARE)
        return replace(usual, rotating_share=2 * usual.rotating_share)


@dataclass(frozen=True, slots=True)
class FindingCandidate:
    """One that stands out: who, by which cause, what it did."""

    cause: Cause
    effect: Effect
    subject_kind: str
    subject: str
    name: str
    blamed: BlamedTime
    companion_of: str | None = None

    @property
    def confidence(self) -> str:
        """Grade, with what a by-product or an unknown cause takes from it."""
        if self.cause is UNEXPLAINED or self.companion_of:
            return "low"
        # That time is lost may be certain; why is not.
        is_high = self.effect.confidence == "high"
        return "medium" if is_high and self.cause.mode == UNEXPLAINED.mode else self.effect.confidence


def candidates(run: JudgedRun, delays: pl.DataFrame) -> list[FindingCandidate]:
    """All that stands out of a run; `delays` are its rows of attribute.delay: iteration, owner, cause, delay_ns."""
    return _without_companions(list(_found(run, delays)))


def _without_companions(found: list[FindingCandidate]) -> list[FindingCandidate]:
    """Grade down what may be a by-product: a rank's other causes, far smaller than the one it stands out by."""
    result = []
    for one in found:
        least = thresholds.COMPANION_FACTOR * one.effect.delay_ns_per_iteration
        greater = [
            other
            for other in found
            if (other.subject_kind, other.subject) == (one.subject_kind, one.subject)
            and other.effect.delay_ns_per_iteration >= least
        ]
        result.append(replace(one, companion_of=greater[0].cause.name) if greater else one)
    return result


def _found(run: JudgedRun, delays: pl.DataFrame) -> Iterator[FindingCandidate]:
    rng = np.random.default_rng(0)
    for cause in causes().values():
        own = delays.filter(pl.col("cause") == cause.name)
        if own.is_empty():
            continue
        if cause.claims_transfer is None:
            yield from _of_work(run, cause, _matrix(run, own, run.ledger.model.ranks.tolist()), rng)
        else:
            yield from _of_transfers(run, cause, _matrix(run, own, run.ledger.communicators), rng)


def _of_work(run: JudgedRun, cause: Cause, by_rank: Delays, rng: np.random.Generator) -> Iterator[FindingCandidate]:
    found = [_of_rank(run, cause, one) for one in effects_of_ranks(by_rank, run.durations_ns, rng, run.limits(cause))]
    counted = [one for one in found if one.confidence != "low"]
    beyond: list[FindingCandidate] = []
    if all(one.effect.dominance < thresholds.MEDIUM_DOMINANCE for one in counted):
        beyond = list(_of_hosts(run, cause, by_rank, rng))
    if beyond:
        found = [replace(one, effect=replace(one.effect, confidence="low")) for one in found]
    elif not counted:
        beyond = list(_of_job(run, cause, by_rank, rng))
    elif cause.mode == "synchronization_amplification" and run.ledger.model.rule is ReferenceRule.MEDIAN:
        beyond = list(_of_turns(run, cause, by_rank, [one.effect.place for one in counted]))
    named = [one.subject for one in beyond if one.subject_kind == "rank"]
    yield from (one for one in found if one.subject not in named)
    yield from beyond


def _of_rank(run: JudgedRun, cause: Cause, effect: Effect) -> FindingCandidate:
    subject = str(run.ledger.model.ranks[effect.place])
    blamed = blamed_work(run.ledger.model, cause.name, [effect.place])
    return FindingCandidate(cause, effect, "rank", subject, f"rank {subject}", blamed)


def _of_transfers(
    run: JudgedRun, cause: Cause, by_communicator: Delays, rng: np.random.Generator
) -> Iterator[FindingCandidate]:
    """Slow paths are their communicators'; what comes and goes is the job's."""
    if cause.claims_transfer != "path":
        effect = effect_on_job(by_communicator.sum(axis=1), run.durations_ns, run.residual_ns, run.limits(cause))
        if effect is not None:
            affected = [run.places[i] for i in effect.affected]
            lacking = np.isin(run.ledger.communicator, sorted(run.ledger.lacking))
            blamed = blamed_transfers(
                run.ledger.model, None if cause.claims_transfer == "fabric" else lacking, affected
            )
            yield FindingCandidate(cause, effect, "job", "all", "the job", blamed)
        if cause.claims_transfer == "fabric" or (effect is not None and effect.confidence != "low"):
            return
    for effect in effects_of_ranks(by_communicator, run.durations_ns, rng, run.limits(cause)):
        number = run.ledger.communicators[effect.place]
        blamed = blamed_transfers(run.ledger.model, run.ledger.communicator == effect.place)
        name = f"communicator {number} ({_ranks_said(run.members[number])})"
        yield FindingCandidate(cause, effect, "communicator", str(number), name, blamed)


def _of_hosts(run: JudgedRun, cause: Cause, by_rank: Delays, rng: np.random.Generator) -> Iterator[FindingCandidate]:
    """Where no rank stands out alone: the ranks of one host together."""
    names = sorted({host for host in run.hosts if host})
    members = {host: [place for place, own in enumerate(run.hosts) if own == host] for host in names}
    if len(names) > 1 and max(map(len, members.values())) > 1 and None not in run.hosts:
        by_host = np.stack([by_rank[:, members[host]].sum(axis=1) for host in names], axis=1)
        for effect in effects_of_ranks(by_host, run.durations_ns, rng, run.limits(cause)):
            host = names[effect.place]
            if effect.confidence != "low" and _is_shared(by_rank[:, members[host]]):
                blamed = blamed_work(run.ledger.model, cause.name, members[host])
                yield FindingCandidate(
                    cause, replace(effect, pattern="node_wide"), "host", host, f"host {host}", blamed
                )
                return


def _of_job(run: JudgedRun, cause: Cause, by_rank: Delays, rng: np.random.Generator) -> Iterator[FindingCandidate]:
    """Where no rank and no host stands out: all ranks at the same times or in turns, or the rank whose loss it was."""
    if cause is UNEXPLAINED or cause.mode == "gpu_locality":
        return
    takes_turns = cause.mode == "synchronization_amplification"
    if takes_turns and run.ledger.model.rule is not ReferenceRule.MEDIAN:
        # Against faster durations than the median, ranks that are late in turns are what any noise looks like.
        return
    in_turns = list(_of_turns(run, cause, by_rank, [])) if takes_turns else []
    yield from in_turns
    if in_turns:
        return
    found = effect_on_job(by_rank.sum(axis=1), run.durations_ns, 0, run.limits(cause))
    if found is None or found.confidence == "low":
        return
    alone = dominant_rank(by_rank, found.affected, run.durations_ns, rng)
    if alone is not None:
        yield _of_rank(run, cause, replace(alone, confidence=found.confidence))
        return
    if takes_turns:
        return
    blamed = blamed_work(run.ledger.model, cause.name, range(by_rank.shape[1]))
    yield FindingCandidate(cause, found, "job", "all", "the job", blamed)


def _of_turns(run: JudgedRun, cause: Cause, by_rank: Delays, certain: Sequence[int]) -> Iterator[FindingCandidate]:
    """What ranks lose in turns, beside those that are named for themselves."""
    others = np.setdiff1d(np.arange(by_rank.shape[1]), certain)
    found = rotating_straggler(by_rank[:, others], run.durations_ns, run.limits(cause))
    if found is not None and found.confidence != "low":
        blamed = blamed_work(run.ledger.model, cause.name, others.tolist(), in_turns=True)
        yield FindingCandidate(cause, found, "job", "all", "the job", blamed)


def _is_shared(delays_ns: Delays) -> bool:
    """Whether most of a host's ranks have their part of its delay, at the same times and not in turns."""
    own = np.maximum(0, delays_ns)
    even = own.mean(axis=1, keepdims=True)
    weights = even[:, 0]
    if own.shape[1] < 2 or not weights.any():
        return False
    return float(np.average((own >= even / 2).mean(axis=1), weights=weights)) >= thresholds.HOST_SHARE


def _matrix(run: JudgedRun, own: pl.DataFrame, owners: Sequence[int]) -> Delays:
    result = np.zeros((len(run.iterations), len(owners)))
    place = {iteration: i for i, iteration in enumerate(run.iterations)}
    column = {owner: c for c, owner in enumerate(owners)}
    for iteration, owner, delay_ns in own.select("iteration", "owner", "delay_ns").iter_rows():
        if iteration in place and owner in column:
            result[place[iteration], column[owner]] = delay_ns
    return result


def _ranks_said(ranks: Sequence[int]) -> str:
    shown = [str(rank) for rank in ranks[:8]]
    return f"ranks {', '.join(shown)}{', …' if len(ranks) > len(shown) else ''}"
