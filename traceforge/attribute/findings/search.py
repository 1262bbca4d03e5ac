"""Who stands out, and by what. In: the losses of a run. Out: candidates for findings, graded but not yet costed.

One search: single causes first, then all of them together, then those of a mode. At each of these the strongest
subject is named (a rank, the ranks of a host or of a group, ranks that are slow alike, everyone in the same
iterations), what it explains is taken out, and the rest is searched again until nothing counts. What ranks lose in
turns comes last.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from traceforge.attribute.cause import SEVERAL, UNEXPLAINED, Cause, causes
from traceforge.attribute.findings.chance import level_p_value, subsets
from traceforge.attribute.findings.counterfactual import blamed_work
from traceforge.attribute.findings.effects import (
    Effect,
    apart_from_all,
    effect_in_turns,
    effect_on_job,
    effect_on_ranks,
    with_one_off,
)
from traceforge.attribute.findings.finding_candidate import FindingCandidate
from traceforge.attribute.findings.grading import GradeLimits, begins_the_run
from traceforge.attribute.findings.lost_time import Delays, JudgedRun, LostTime
from traceforge.attribute.findings.subjects import (
    Subject,
    everyone,
    is_alike,
    known_sets,
    one_or_another,
    rank_of,
    slow_set,
)
from traceforge.replay.reference_rule import ReferenceRule
from traceforge.thresholds import attribute as thresholds

# Ranks are tried alone in the order of what they lose; those far down the list cannot count.
_TRIED_RANKS = 8
_MOST_SUBJECTS = 8


@dataclass(frozen=True, slots=True)
class CauseNode:
    """One cause, or several together.

    Attributes:
        cause: what is said; `several` where there is more than one.
        numbers: of its causes in `LostTime.causes`.
    """

    cause: Cause
    numbers: tuple[int, ...]

    @property
    def is_single(self) -> bool:
        """Whether it is one cause."""
        return len(self.numbers) == 1


def cause_nodes(names: Sequence[str]) -> list[CauseNode]:
    """The tree of causes: each cause, then all of them together, then those of each mode."""
    known = [causes()[name] for name in names]
    leaves = [CauseNode(cause, (n,)) for n, cause in enumerate(known)]
    modes = dict.fromkeys(cause.mode for cause in known)
    groups = [tuple(n for n, cause in enumerate(known) if cause.mode == mode) for mode in modes]
    together = [tuple(range(len(known))), *groups] if len(groups) > 1 else groups
    return [*leaves, *(CauseNode(SEVERAL, numbers) for numbers in together if len(numbers) > 1)]


def limits_of(run: JudgedRun, node: CauseNode, names: Sequence[str]) -> GradeLimits:
    """When an effect counts.

    Ranks without devices that share a host take its cores from one another, and lose them to whatever else runs
    there: work then pauses in some iterations although nothing is wrong with the job.
    """
    own = [causes()[names[n]] for n in node.numbers]
    # A kernel that takes long once is what heavy-tailed noise looks like; a pause of the host has a name.
    is_named = all(cause.is_of_hosts for cause in own)
    one_off_share = thresholds.ONE_OFF_SHARE if is_named else thresholds.ONE_OFF_COMPUTE_SHARE
    usual = GradeLimits(one_off_share=one_off_share, any_size=is_named)
    if not run.shares_cores:
        return usual
    if any(cause.is_like_taken_cores for cause in own):
        hard = thresholds.HARD_HIT_SHARE
        return replace(usual, medium_share=hard, high_share=hard, rotating_share=hard, is_like_taken_cores=True)
    return replace(usual, rotating_share=2 * thresholds.ROTATING_SHARE)


def search(run: JudgedRun, lost: LostTime) -> Iterator[FindingCandidate]:
    """All that stands out; what counts is taken out of `lost`."""
    known = known_sets(run)
    for node in cause_nodes(lost.causes):
        counted = []
        warm_up = _warm_up(run, lost, node, known)
        if warm_up is not None:
            lost.take_out(node.numbers, warm_up.subject.places, warm_up.effect.affected.tolist())
            yield warm_up
        for _ in range(_MOST_SUBJECTS):
            found = _strongest(run, lost, node, known)
            if found is None:
                break
            struck = found.effect.affected.tolist() if found.subject.kind == "job" else None
            lost.take_out(node.numbers, found.subject.places, struck)
            counted.append(found)
        yield from counted
        if node.is_single:
            yield from _what_is_left(run, lost, node, counted, known)


def _warm_up(run: JudgedRun, lost: LostTime, node: CauseNode, known: Sequence[Subject]) -> FindingCandidate | None:
    """What all ranks lose alike in the first iterations, and never again: it accuses nobody, nor do its shares."""
    cost, own = lost.of(node.numbers)
    effect = effect_on_job(cost.sum(axis=1), run.durations_ns, 0, limits_of(run, node, lost.causes), own)
    if effect is None or not begins_the_run(effect.affected):
        return None
    struck = slow_set(run, own[effect.affected].mean(axis=0), known)
    if struck is None or struck.kind != "job":
        return None
    return _candidate(run, lost, node, struck, replace(effect, confidence="low"))


def _strongest(run: JudgedRun, lost: LostTime, node: CauseNode, known: Sequence[Subject]) -> FindingCandidate | None:
    """The subject that explains most, of those that count; the smaller of two that explain about as much."""
    cost, own = lost.of(node.numbers)
    if np.maximum(0.0, cost).sum() < thresholds.REPORTED_SHARE * run.durations_ns.sum():
        return None
    limits = limits_of(run, node, lost.causes)
    # Who is slow shows in the ranks' own work; of ranks that are slow alike the ledger may blame the last alone.
    slow = _slow_subjects(run, lost.slower(node.numbers), known)
    effects = _effects(run, cost, own, known, limits, slow)
    found = [_candidate(run, lost, node, subject, effect) for subject, effect in effects]
    sure = [one for one in found if one.confidence != "low" and (limits.any_size or not _is_one_kernel(run, one))]
    counted = [one for one in sure if not _is_part_of_everyone(lost, node, one)]
    if not counted:
        return None
    least = thresholds.KNOWN_SET_PART * max(one.effect.share for one in counted)
    enough = [one for one in counted if one.effect.share >= least]
    by_work = [one for one in enough if one.subject in slow or one.subject.kind == "job"]
    best = min(by_work or enough, key=lambda one: (len(one.subject.places), -one.effect.share))
    best = _who_has_most_of(best, counted)
    return None if _leads_in_turns(run, apart_from_all(cost, own), node, best, limits) else best


def _who_has_most_of(best: FindingCandidate, counted: Sequence[FindingCandidate]) -> FindingCandidate:
    """Of a loss of everyone the rank that has most of it, beside what all lose alike; else everyone."""
    if best.subject.kind != "job":
        return best
    least = thresholds.MEDIUM_DOMINANCE * best.effect.share
    ranks = [one for one in counted if one.subject.kind == "rank" and one.effect.share >= least]
    return max(ranks, key=lambda one: one.effect.share, default=best)


def _leads_in_turns(run: JudgedRun, cost: Delays, node: CauseNode, best: FindingCandidate, limits: GradeLimits) -> bool:
    """Whether a rank only leads more often than others that lose in turns with it: nothing is surely its own."""
    effect = best.effect
    is_sure = (effect.p_value or 0.0) <= thresholds.CONTENTION_P_VALUE or effect.dominance >= thresholds.HIGH_DOMINANCE
    if best.subject.kind != "rank" or is_sure or not _takes_turns(run, node):
        return False
    turns = effect_in_turns(cost, run.durations_ns, replace(limits, any_size=True))
    return turns is not None and turns.confidence != "low"


def _is_one_kernel(run: JudgedRun, one: FindingCandidate) -> bool:
    """Whether ranks lose nearly all of very few iterations at one of the places where they work.

    There a kernel takes long once, at any size, as heavy-tailed noise does; a slow rank is slow wherever it works.
    """
    model, affected = run.alone or run.ledger.model, [run.places[i] for i in one.effect.affected]
    if one.subject.kind == "job" or len(affected) >= thresholds.FEW_ITERATIONS:
        return False
    blamed = blamed_work(model, tuple(one.parts), one.subject.places, iterations=affected)
    lost = np.concatenate([blamed.before_arrival_ns[affected], blamed.before_wait_ns[affected]], axis=1).sum(axis=2)
    kinds, ranks = [k for k, (name, _) in enumerate(model.kinds) if name in one.parts], list(one.subject.places)
    works = (model.before_arrival_ns, model.before_wait_ns)
    usual = np.concatenate([work[:, :, ranks][..., kinds].sum(axis=(0, 2, 3)) for work in works])
    is_single = lost.max(axis=1) >= thresholds.SOLE_DOMINANCE * lost.sum(axis=1)
    return bool((is_single & (usual[lost.argmax(axis=1)] < thresholds.SOLE_DOMINANCE * usual.sum())).all())


def _is_part_of_everyone(lost: LostTime, node: CauseNode, one: FindingCandidate) -> bool:
    """Whether the other ranks lose as much in the same iterations by other causes: one pause that shows in two ways."""
    own = np.maximum(0.0, lost.own_ns[one.effect.affected])
    of_all, of_node = own.sum(axis=(0, 2)), own[..., list(node.numbers)].sum()
    return node.is_single and is_alike(of_all) and bool(of_node <= thresholds.ALIKE_PART * of_all.sum())


def _slow_subjects(run: JudgedRun, longer: Delays, known: Sequence[Subject]) -> set[Subject]:
    """Who works longest, on average and in the usual iteration."""
    found = (slow_set(run, shift, known) for shift in (longer.mean(axis=0), np.median(longer, axis=0)))
    return {one for one in found if one is not None and (one.kind != "ranks" or _lose_alike(longer, one.places))}


def _lose_alike(own_ns: Delays, places: Sequence[int]) -> bool:
    """Whether some ranks have about as much on average, and in the usual iteration, unless none has much in that.

    A rank that is always slow and one that is so now and then are two faults.
    """
    of_ranks = own_ns[:, list(places)]
    on_average, usually = of_ranks.mean(axis=0), np.median(of_ranks, axis=0)
    is_rare = float(usually.max()) < thresholds.ALIKE_PART * float(on_average.mean())
    return is_alike(on_average) and (is_rare or is_alike(usually))


def _effects(
    run: JudgedRun,
    cost: Delays,
    own: Delays,
    known: Sequence[Subject],
    limits: GradeLimits,
    slow: Collection[Subject],
) -> Iterator[tuple[Subject, Effect]]:
    """Effects of all subjects that may be the strongest; among them those that are slow alike."""
    most = np.argsort(-cost.mean(axis=0), kind="stable")[:_TRIED_RANKS]
    subjects = {rank_of(run, place) for place in most.tolist()} | set(slow)
    together = effect_on_job(cost.sum(axis=1), run.durations_ns, 0, limits, own)
    if together is not None:
        struck = slow_set(run, own[together.affected].mean(axis=0), known)
        if struck is not None and struck.kind == "job":
            is_of_single = len(run.ranks) > 1 and _strikes_single_ranks(own[together.affected])
            struck = one_or_another(struck.places) if is_of_single else struck
            yield struck, with_one_off(together, cost.sum(axis=1), run.durations_ns, limits, own)
        elif struck is not None and (struck.kind != "ranks" or _lose_alike(own, struck.places)):
            # One of them may lose as much as the others in these iterations, and nothing in all those between.
            subjects.add(struck)
    apart = apart_from_all(cost, own)
    for subject in sorted(subjects - {everyone(run)}, key=lambda one: one.places):
        effect = effect_of_subject(run, apart, own, subject, limits, len(known))
        if effect is not None:
            # A kernel that takes long now and then is what heavy-tailed noise looks like.
            recurs = limits.any_size or len(effect.affected) >= thresholds.FEW_ITERATIONS
            yield subject, _as_sure_as(effect, together, apart, subject) if recurs else effect


def _strikes_single_ranks(own_ns: Delays) -> bool:
    """Whether in most iterations one rank has nearly all of the loss, shape (iterations, ranks)."""
    positive = np.maximum(0.0, own_ns)
    is_of_one = positive.max(axis=1) >= thresholds.SOLE_DOMINANCE * positive.sum(axis=1)
    return bool(2 * np.count_nonzero(is_of_one) > len(is_of_one))


def effect_of_subject(
    run: JudgedRun, cost: Delays, own: Delays, subject: Subject, limits: GradeLimits, known: int
) -> Effect | None:
    """How a subject's delay stands out; None where it is too small.

    Args:
        cost: delay by some cause, shape (iterations, ranks).
        own: the ranks' own work above the reference, likewise.
        known: number of hosts, stages and groups.
    """
    count, size = len(run.ranks), len(subject.places)
    alternatives = count if size == 1 else known if subject.kind in ("host", "stage") else subsets(count, size)
    if subject.kind == "ranks":
        # Any two ranks that were struck once, each at its time, would make such a set.
        limits = replace(limits, one_off_share=np.inf)
    communicating = np.flatnonzero(run.ledger.model.calls[run.places] > 0)
    effect = effect_on_ranks(cost, subject.places, run.durations_ns, limits, alternatives, communicating)
    if effect is not None and effect.confidence == "medium" and effect.share < limits.high_share:
        # Devices differ for a whole run: what is small may be no more than that.
        is_usual = level_p_value(own, np.asarray(subject.places), alternatives) > thresholds.HIGH_P_VALUE
        return replace(effect, confidence="low") if is_usual else effect
    if effect is None or effect.confidence != "low" or not run.shares_cores:
        return effect
    # Cores that are taken away strike the ranks of a host at random; what always strikes the same ones is theirs.
    usual = effect_on_ranks(cost, subject.places, run.durations_ns, GradeLimits(), alternatives, communicating)
    is_random = (
        effect.p_value is None
        or effect.p_value > thresholds.CONTENTION_P_VALUE
        or not (effect.pattern == "persistent" or _hits_hard(effect, run.durations_ns))
        or effect.dominance < thresholds.HIGH_DOMINANCE
    )
    if is_random and usual is not None and _is_always_as_long(effect, cost[:, list(subject.places)]):
        return replace(usual, confidence="medium") if usual.confidence == "high" else usual
    return effect if is_random else usual


def _hits_hard(effect: Effect, durations_ns: Delays) -> bool:
    """Whether several iterations lose so much each that taken cores hardly explain it."""
    is_large = effect.affected_delay_ns >= thresholds.HARD_HIT_SHARE * float(np.median(durations_ns))
    return is_large and len(effect.affected) >= thresholds.HARD_HIT_ITERATIONS


def _is_always_as_long(effect: Effect, own_ns: Delays) -> bool:
    """Whether a delay that recurs on these ranks alone lasts as long each time, as a program's own pause tends to.

    Args:
        own_ns: delays of these ranks, shape (iterations, ranks).
    """
    struck = own_ns[effect.affected]
    is_alone = effect.dominance >= thresholds.OVERWHELMING_DOMINANCE
    is_in_each = len(struck) == len(own_ns) >= thresholds.FEW_ITERATIONS
    recurs = is_in_each or len(struck) >= thresholds.HARD_HIT_ITERATIONS
    is_even = np.ptp(struck, axis=0) <= thresholds.CLOSE_SHARE * struck.mean(axis=0)
    return bool(is_alone and recurs and is_even.all())


def _as_sure_as(effect: Effect, together: Effect | None, cost: Delays, subject: Subject) -> Effect:
    """Where a loss is no noise of the run, counting need not show whose it is: nearly all of it is the subject's."""
    if together is None or together.confidence == "low" or effect.confidence != "low" or subject.kind == "ranks":
        return effect
    positive = np.maximum(0.0, cost[together.affected]).sum(axis=0)
    part = float(positive[list(subject.places)].sum() / positive.sum())
    return replace(effect, confidence=together.confidence) if part >= thresholds.SOLE_DOMINANCE else effect


def _what_is_left(
    run: JudgedRun, lost: LostTime, node: CauseNode, counted: Sequence[FindingCandidate], known: Sequence[Subject]
) -> Iterator[FindingCandidate]:
    """Of one cause: what ranks lose in turns, what the job loses now and then, and who may be chance."""
    cost, own = lost.of(node.numbers)
    limits = limits_of(run, node, lost.causes)
    of_ranks = node.cause.mode == "synchronization_amplification"
    if _takes_turns(run, node):
        places = np.setdiff1d(np.arange(len(run.ranks)), [place for one in counted for place in one.subject.places])
        effect = effect_in_turns(apart_from_all(cost, own)[:, places], run.durations_ns, limits)
        if effect is not None and effect.confidence != "low":
            yield _candidate(run, lost, node, one_or_another(places.tolist()), effect)
            return
    if not counted and not of_ranks and node.cause is not UNEXPLAINED and node.cause.mode != "gpu_locality":
        effect = effect_on_job(cost.sum(axis=1), run.durations_ns, 0, limits, own)
        if effect is not None and effect.confidence != "low":
            found = _candidate(run, lost, node, one_or_another(range(len(run.ranks))), effect)
            yield from [] if _is_part_of_everyone(lost, node, found) else [found]
            return
    for subject, effect in _hints(run, apart_from_all(cost, own), limits, known):
        yield _candidate(run, lost, node, subject, replace(effect, confidence="low"))


def _hints(
    run: JudgedRun, apart: Delays, limits: GradeLimits, known: Sequence[Subject]
) -> Iterator[tuple[Subject, Effect]]:
    """Ranks that lose enough to be told; in place of a host's ranks the host, where it is less likely by chance."""
    places = np.flatnonzero(apart.mean(axis=0) >= thresholds.REPORTED_SHARE * run.durations_ns.mean()).tolist()
    found = {place: effect_on_ranks(apart, [place], run.durations_ns, limits, len(run.ranks)) for place in places}
    effects = {place: effect for place, effect in found.items() if effect is not None}
    for host in (one for one in known if one.kind == "host"):
        of_host = effect_on_ranks(apart, host.places, run.durations_ns, limits, len(known))
        if of_host is None:
            continue
        alone = {place: effect for place, effect in effects.items() if place in host.places}
        if len(alone) > 1 and all((of_host.p_value or 0.0) < (one.p_value or 0.0) for one in alone.values()):
            yield host, of_host
            effects = {place: effect for place, effect in effects.items() if place not in alone}
    for place, effect in effects.items():
        yield rank_of(run, place), effect


def _takes_turns(run: JudgedRun, node: CauseNode) -> bool:
    """Whether ranks that lose time in turns are a finding."""
    return node.cause is not UNEXPLAINED and run.ledger.model.rule is ReferenceRule.MEDIAN


def _candidate(run: JudgedRun, lost: LostTime, node: CauseNode, subject: Subject, effect: Effect) -> FindingCandidate:
    """A subject with what it lost, by cause; `several` that are nearly one are that one."""
    counted = effect.affected.tolist() if subject.kind == "job" else range(len(lost.cost_ns))
    block = np.ix_(list(counted), list(subject.places), list(node.numbers))
    by_cause = lost.cost_ns[block].sum(axis=(0, 1)) / len(lost.cost_ns)
    if subject.kind != "job" and by_cause.sum() > 0:
        # Without what all ranks lose alike.
        by_cause *= effect.delay_ns_per_iteration / by_cause.sum()
    # What a finding of one of these ranks explains already would count twice.
    own = [n for n in node.numbers if lost.explained.isdisjoint((n, place) for place in subject.places)]
    shares = zip(node.numbers, by_cause, strict=True)
    parts = {lost.causes[n]: float(part) for n, part in shares if part > 0 and (n in own or not own)}
    cause = node.cause
    if not node.is_single:
        cause = _cause_of(parts)
    return FindingCandidate(cause, effect, subject, parts, is_in_turns=effect.pattern == "rotating")


def _cause_of(parts: Mapping[str, float]) -> Cause:
    """The cause that nearly all of a delay is by; else several, in the mode that has most of it."""
    by_mode: dict[str, float] = {}
    for name, part in parts.items():
        by_mode[causes()[name].mode] = by_mode.get(causes()[name].mode, 0.0) + part
    mode = max(by_mode, key=lambda one: by_mode[one])
    largest = causes()[max((name for name in parts if causes()[name].mode == mode), key=lambda name: parts[name])]
    if parts[largest.name] >= thresholds.SOLE_DOMINANCE * sum(parts.values()):
        return largest
    return replace(
        SEVERAL,
        mode=mode,
        next_step=largest.next_step,
        next_step_of_host=largest.next_step_of_host,
        next_step_on_one_host=largest.next_step_on_one_host,
    )
