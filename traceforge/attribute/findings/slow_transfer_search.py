"""Which transfers stand out. In: slow transfers by communicator. Out: candidates for findings, graded but not costed.

Transfers that are slow all the time where their peers' are not belong to their communicator, or to the host or NIC that
all such communicators share; what comes and goes, to the job. Not handled: transfers that are slow alike for everyone
in all iterations; see attribute.sight.
"""

from collections.abc import Iterator, Sequence

import polars as pl

from traceforge.attribute.cause import Cause, causes
from traceforge.attribute.findings.effects import effect_on_job, effect_on_ranks, with_one_off
from traceforge.attribute.findings.finding_candidate import FindingCandidate
from traceforge.attribute.findings.grading import GradeLimits
from traceforge.attribute.findings.lost_time import Delays, JudgedRun, by_owner
from traceforge.attribute.findings.own_link import own_link
from traceforge.attribute.findings.shared_path import shared_path
from traceforge.attribute.findings.slow_link import between_ranks, slow_link
from traceforge.attribute.findings.subjects import Subject, ranks_said
from traceforge.thresholds import attribute as thresholds


def search_transfers(run: JudgedRun, delays: pl.DataFrame) -> Iterator[FindingCandidate]:
    """All slow transfers that stand out; `delays` are the run's rows of attribute.delay."""
    for cause in causes().values():
        own = delays.filter(pl.col("cause") == cause.name)
        if cause.claims_transfer is not None and not own.is_empty():
            yield from _of_cause(run, cause, by_owner(run, own, run.ledger.communicators))


def _of_cause(run: JudgedRun, cause: Cause, by_communicator: Delays) -> Iterator[FindingCandidate]:
    limits = transfer_limits(run, cause)
    job = None if cause.claims_transfer == "path" else _of_job(run, cause, by_communicator, limits)
    is_jobs = cause.claims_transfer == "fabric" or (job is not None and job.effect.confidence != "low")
    parts = [] if is_jobs else list(_of_paths(run, cause, by_communicator, limits))
    # A hint on the job that is nearly all of one communicator is one loss: it is told of that one alone.
    if job is not None and not any(_is_nearly_all(part, job) for part in parts):
        yield job
    yield from parts


def _of_job(run: JudgedRun, cause: Cause, by_communicator: Delays, limits: GradeLimits) -> FindingCandidate | None:
    """Transfers of the whole job, or of the one link that explains them."""
    total_ns = by_communicator.sum(axis=1)
    usual = run.ledger.model.usual_transfers
    usual = None if usual is None else usual[run.places]
    effect = effect_on_job(total_ns, run.durations_ns, run.residual_ns, limits, usual=usual)
    if effect is None:
        return None
    effect = with_one_off(effect, total_ns, run.durations_ns, limits)
    delay_ns = float(effect.by_iteration_ns[effect.affected].sum())
    link, affected = None, effect.affected.tolist()
    if cause.claims_transfer == "fabric":
        link = own_link(run, affected) or slow_link(run, affected, delay_ns)
    return FindingCandidate(cause, effect, link or Subject("job", "all", (), "the job"))


def _is_nearly_all(part: FindingCandidate, job: FindingCandidate) -> bool:
    return part.effect.delay_ns_per_iteration >= thresholds.KNOWN_SET_PART * job.effect.delay_ns_per_iteration


def _of_paths(run: JudgedRun, cause: Cause, by_communicator: Delays, limits: GradeLimits) -> Iterator[FindingCandidate]:
    """Communicators that are slow, or the one place that all of them pass and no other does."""
    count = by_communicator.shape[1]
    effects = {n: effect_on_ranks(by_communicator, [n], run.durations_ns, limits, count) for n in range(count)}
    slow = {n: effect for n, effect in effects.items() if effect is not None}
    place = shared_path(run, list(slow)) if cause.claims_transfer == "path" else None
    together = effect_on_ranks(by_communicator, list(slow), run.durations_ns, limits, count) if place else None
    if place is not None and together is not None:
        yield FindingCandidate(cause, together, place, communicators=tuple(slow))
        return
    for n, effect in slow.items():
        number = run.ledger.communicators[n]
        said = f"communicator {number} ({ranks_said(run.ranks_on(number))})"
        path = run.ledger.paths.get(number)
        subject = between_ranks(run, path.low_rank, path.high_rank) if path else None
        subject = subject or Subject("communicator", str(number), (), said)
        yield FindingCandidate(cause, effect, subject, communicators=(n,))


def unexplained_transfers(by_communicator: Delays, found: Sequence[FindingCandidate]) -> Delays:
    """Slow transfers that no finding of the job explains, shape (judged iterations,)."""
    left: Delays = by_communicator.sum(axis=1)
    for one in found:
        if one.cause.claims_transfer is not None and one.subject.kind in ("job", "link") and one.confidence != "low":
            left[one.effect.affected] = 0.0
    return left


def transfer_limits(run: JudgedRun, cause: Cause) -> GradeLimits:
    """Stricter where hosts that share their cores communicate by themselves: taken cores slow transfers, too."""
    if run.shares_cores and cause.is_like_taken_cores:
        return GradeLimits(medium_share=thresholds.HARD_HIT_SHARE, high_share=thresholds.HARD_HIT_SHARE)
    return GradeLimits()
