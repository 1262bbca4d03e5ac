"""Findings in words. In: a candidate and its cost. Out: the summary, the next step, a note on the cost."""

from traceforge.attribute.cause import Cause
from traceforge.attribute.findings.chance import even_gap
from traceforge.attribute.findings.coupling_scenarios import CouplingScenarios
from traceforge.attribute.findings.effects import Effect
from traceforge.attribute.findings.finding_candidate import FindingCandidate
from traceforge.attribute.findings.finding_cost import FindingCost
from traceforge.attribute.findings.grading import begins_the_run
from traceforge.attribute.findings.lost_time import JudgedRun
from traceforge.attribute.findings.subjects import EVERY_RANK, ONE_OR_ANOTHER, Subject
from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_ns, format_share, ordinal

_NO_SINGLE_RANK = "No single rank is at fault. "

_TURNS_STEP = (
    "No single rank is at fault: look for what varies between iterations on all ranks (uneven batches or sequence"
    " lengths, other work on the hosts, threads that are not pinned), and even it out."
)

_TURNS_STEP_OF_HOSTS = (
    "No single rank is at fault: look for what stops host threads of all ranks now and then (logging, locks,"
    " memory that is freed, other programs on the same cores, threads that are not pinned)."
)

_INTERVAL_STEP = "See what {subject} does in {every} iteration only: an evaluation, a checkpoint, a log. "


def next_step(found: FindingCandidate, run: JudgedRun) -> str:
    """What an engineer does next."""
    if found.effect.pattern == "rotating":
        return _step_in_turns(found.cause)
    peer = ("host" if found.subject.kind == "host" else "rank") if _has_peers(found.subject, run) else "iteration"
    is_network = found.subject.kind == "link" and (
        len(found.subject.places) < 2 or len({run.hosts[place] for place in found.subject.places}) > 1
    )
    step = _step_of(found.cause, run, is_network=is_network) or found.cause.next_step
    said, every = found.subject.said, _interval(found.effect, run)
    subject = "such a rank" if said == ONE_OR_ANOTHER else said.removeprefix("each of ")
    ahead = _INTERVAL_STEP.format(subject=subject, every=every) if every else ""
    return ahead + step.format(subject=subject, peer=peer)


def _step_in_turns(cause: Cause) -> str:
    """The step where no rank is at fault; of a pause with a name it is the pause's own, on any rank."""
    if cause.is_like_taken_cores:
        return _TURNS_STEP_OF_HOSTS
    if not cause.is_of_hosts:
        return _TURNS_STEP
    return _NO_SINGLE_RANK + cause.next_step.format(subject="every rank", peer="iteration")


def _step_of(cause: Cause, run: JudgedRun, *, is_network: bool) -> str:
    """The step for where the ranks are; empty where the usual one will do."""
    of_host = "" if run.has_device else cause.next_step_of_host
    if not run.is_one_host:
        return (cause.next_step_of_link if is_network else "") or of_host
    return cause.next_step_between_devices if run.has_device else cause.next_step_on_one_host or of_host


def _interval(effect: Effect, run: JudgedRun) -> str:
    """Such as `every 5th` where what it struck is evenly spaced, and too often for chance; else nothing."""
    gap = even_gap([run.iterations[i] for i in effect.affected])
    return f"every {ordinal(gap)}" if gap else ""


def _has_peers(subject: Subject, run: JudgedRun) -> bool:
    """Whether other ranks do the same work: those of its stage, where there are stages; transfers count as such."""
    others = set(range(len(run.ranks))) - set(subject.places)
    role = run.ledger.model.role
    if role is None or not subject.places:
        return bool(others)
    return bool({role[place] for place in others} & {role[one] for one in subject.places})


def cost_note(cost: FindingCost, known: CouplingScenarios, beside_ns: float = 0.0) -> str | None:
    """What else is in a finding's cost: a coupling that was assumed, or a residual of the replay; None if nothing.

    Args:
        beside_ns: slow transfers that may follow from it, and that its interval counts.
    """
    notes = [known.assumption] if known.assumption else []
    if beside_ns > 0:
        notes.append(
            f"Transfers are slower by {format_ns(beside_ns)} an iteration, in these iterations and hardly in others. "
            "If they are because ranks wait, this costs as much more, which its interval includes; if the network is "
            "slow by itself then, it does not. A longer recording tells which."
        )
    if cost.coupled_ns is not None and cost.coupled_ns > 0:
        doubt = ", or none of it: waits vary too little here to show it surely" if known.is_stretched else ""
        notes.append(f"{format_ns(cost.coupled_ns)} of it because transfers take longer while ranks wait{doubt}.")
    if cost.open_ns > thresholds.RESIDUAL_SHARE * cost.delay.mean_ns:
        notes.append(
            f"Up to {format_ns(cost.open_ns)} more if transfers grow while ranks wait, which this run cannot exclude."
        )
    if cost.is_at_most:
        notes.append("Less, or nothing, where a rank that was not recorded comes later still.")
    limited_ns = cost.host_limited_ns
    if limited_ns is not None and limited_ns <= (1 - thresholds.CLOSE_SHARE) * cost.saved.mean_ns:
        notes.append(
            "Hosts seem to need nearly as long by themselves. Unless they wait for their devices in what"
            f" looks like work, mending it saves {format_ns(max(0.0, limited_ns))}."
        )
    if cost.left_ns:
        notes.append(
            f"Replayed without it, an affected iteration would be {format_ns(abs(cost.left_ns))} "
            f"{'longer' if cost.left_ns > 0 else 'shorter'} than the others: other work is "
            f"{'slower' if cost.left_ns > 0 else 'faster'} meanwhile; its cost takes account of that."
        )
    return " ".join(notes) or None


def summary(found: FindingCandidate, cost: FindingCost, run: JudgedRun, *, repeats: bool) -> str:
    """A finding in one sentence.

    Args:
        run: iterations and ranks judged.
        repeats: whether another finding of the same ranks and iterations precedes it.
    """
    effect, name, judged = found.effect, found.subject.said, run.iterations
    subject = "Communication" if found.cause.claims_transfer and name == "the job" else name[0].upper() + name[1:]
    # What ranks lose in turns is held against the others.
    is_of_one_kind = found.subject.kind != "job" or len(run.ranks) == 1
    is_own_peer = name == EVERY_RANK or (is_of_one_kind and not _has_peers(found.subject, run))
    of_host = "" if run.has_device else found.cause.phrase_of_host
    phrase = (found.cause.phrase_of_all if is_own_peer else "") or of_host or found.cause.phrase
    affected, count = len(effect.affected), len(judged)
    is_sized = effect.pattern != "persistent" and count > 1
    in_each = "in each of" if is_sized and affected > 1 else "in"
    extent = "in the one iteration judged" if count == 1 else f"{in_each} {affected} of {count} iterations"
    extent = ", ".join(filter(None, [extent, _interval(effect, run), "at the same times" if repeats else ""]))
    if name == EVERY_RANK and begins_the_run(effect.affected):
        begun = "first" if affected == 1 else f"first {affected}"
        extent = f"{in_each} the {begun} of {count} iterations, as a job that warms up"
    inside = cost.affected_ns * affected
    if is_sized and cost.delay.mean_ns * count - inside > thresholds.LEAST_COST_BESIDE * inside:
        extent += " and less in the others"
    first, last = int(effect.affected[0]), int(effect.affected[-1])
    # Without a gap, and to the end: it has begun, and nothing shows that it is over.
    if effect.pattern == "episode" and last == count - 1 == first + affected - 1:
        extent += f", since iteration {judged[first]}"
    size = f"{format_ns(cost.affected_ns)} " if is_sized else ""
    share = format_share(cost.delay.mean_ns / run.pace_ns)
    total = f"{format_ns(cost.delay.mean_ns)} an iteration ({share})"
    if cost.saved.mean_ns <= 0:
        return (
            f"{subject} {phrase}, {size}{extent}: {total} in the ledger, but the job ends no earlier when it is"
            " replayed without that."
        )
    return f"{subject} {phrase}, {size}{extent}. It costs the job {'up to ' if cost.is_at_most else ''}{total}."
