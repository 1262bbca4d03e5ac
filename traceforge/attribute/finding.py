"""Findings. Reads the ledger and the graph; fills attribute.finding.

Each cause's delays are judged against the run's own noise (see `judge`); what stands out is replayed without its
delay, and with nothing else, to tell what it costs (see `settlement`). Randomness comes from generators with a fixed
seed, so that a database always yields the same findings.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from traceforge.attribute.booking import Booked, booked
from traceforge.attribute.cause import UNEXPLAINED, Cause, causes
from traceforge.attribute.counterfactual import Source, transfer_source, work_source
from traceforge.attribute.coupled import Coupled, load_coupled
from traceforge.attribute.delay import ON_DEVICE
from traceforge.attribute.judge import Delays, Judgement, Thresholds, judge_job, judge_ranks, judge_turns, leader_of
from traceforge.attribute.settlement import Settled, settled
from traceforge.replay.model import load_model
from traceforge.replay.reference_rule import ReferenceRule
from traceforge.store.database import Store
from traceforge.units import format_ns, format_share

_JUDGED = """
SELECT e.iteration, i.duration_ns
FROM attribute.excess AS e
JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE e.run_id = ? AND NOT i.is_warmup
ORDER BY e.iteration
"""

# What neither a rank nor a communicator owns is nobody's.
_DELAYS = """
SELECT iteration, COALESCE(rank, communicator_id) AS owner, cause, delay_ns
FROM attribute.delay WHERE run_id = ? ORDER BY iteration, owner
"""

_COMMUNICATORS = "SELECT communicator_id, ranks FROM timeline.communicator WHERE run_id = ?"

_RESIDUAL = "SELECT COALESCE(MAX(residual_ns), 0) FROM align.clock WHERE run_id = ?"

# A cause this many times smaller than another of the same rank is taken for its by-product.
_COMPANION_FACTOR = 4

_TURNS_STEP = (
    "No single rank is at fault: look for what varies between iterations on all ranks (uneven batches or sequence"
    " lengths, other work on the hosts, threads that are not pinned), and even it out."
)

# What befalls a host befalls so many of its ranks.
_MOST_RANKS = 0.75

_DELAY = "delay_ns_per_iteration"
# What is likely and costs this many times as much comes before what is sure.
_SURE_WEIGHT = 3


@dataclass(frozen=True, slots=True)
class _Run:
    """What findings of one run are made from; durations in ns, shape (iterations,)."""

    run_id: int
    booked: Booked
    iterations: list[int]
    durations_ns: "np.ndarray[tuple[int], np.dtype[np.float64]]"
    residual_ns: int
    hosts: list[str | None]
    members: dict[int, list[int]]
    has_device: bool

    @property
    def places(self) -> list[int]:
        """Places of the judged iterations in the model."""
        found: list[int] = np.searchsorted(self.booked.model.iterations, self.iterations).tolist()
        return found

    def rules(self, cause: Cause) -> Thresholds:
        """When an effect counts.

        Ranks without devices that share a host take its cores from one another, and lose them to whatever else runs
        there: work then pauses and transfers take longer in some iterations although nothing is wrong with the job.
        """
        usual = Thresholds()
        if self.has_device or len(set(self.hosts)) == len(self.hosts):
            return usual
        if cause.is_like_taken_cores:
            return replace(usual, medium_share=usual.hard_hit_share, high_share=usual.hard_hit_share)
        return replace(usual, turns_share=2 * usual.turns_share)


@dataclass(frozen=True, slots=True)
class _Found:
    """One that stands out: who, by which cause, what it did."""

    cause: Cause
    judgement: Judgement
    subject_kind: str
    subject: str
    name: str
    source: Source
    companion_of: str | None = None

    @property
    def confidence(self) -> str:
        """Grade, with what a by-product or an unknown cause takes from it."""
        if self.cause is UNEXPLAINED or self.companion_of:
            return "low"
        # That time is lost may be certain; why is not.
        is_high = self.judgement.confidence == "high"
        return "medium" if is_high and self.cause.mode == UNEXPLAINED.mode else self.judgement.confidence


def rows(store: Store) -> pl.DataFrame:
    """Findings of all runs, by delay, low confidence last; a sure one precedes a likely one of its size."""
    result: list[dict[str, object]] = []
    for run_id in store.query("SELECT run_id FROM meta.run ORDER BY run_id")["run_id"]:
        run = _run(store, run_id)
        if run is not None:
            found = _without_companions(list(_findings(run, store.query(_DELAYS, [run_id]))))
            known = load_coupled(store, run_id)
            costs = _settled(run, found, known)
            made = [_row(run, one, cost, known) for one, cost in zip(found, costs, strict=True)]
            made.sort(key=precedence)
            result += [{**row, "finding_id": number} for number, row in enumerate(made)]
    return pl.DataFrame(result, infer_schema_length=None)


def precedence(row: Mapping[str, object]) -> tuple[bool, int]:
    """Sort key of a row of attribute.finding, the one to tell first being the least."""
    weight = _SURE_WEIGHT if row["confidence"] == "high" else 1
    return row["confidence"] == "low", -weight * int(str(row[_DELAY]))


def _run(store: Store, run_id: int) -> _Run | None:
    model = load_model(store, run_id)
    judged = store.query(_JUDGED, [run_id])
    if model is None or judged.is_empty():
        return None
    hosts = dict(store.query("SELECT rank, host FROM align.rank WHERE run_id = ?", [run_id]).rows())
    return _Run(
        run_id,
        booked(model, store, run_id),
        judged["iteration"].to_list(),
        judged["duration_ns"].to_numpy().astype(np.float64),
        int(store.query(_RESIDUAL, [run_id]).item()),
        [hosts.get(rank) for rank in model.ranks.tolist()],
        dict(store.query(_COMMUNICATORS, [run_id]).rows()),
        bool(store.query(ON_DEVICE, [run_id]).item()),
    )


def _settled(run: _Run, found: Sequence[_Found], known: Coupled) -> list[Settled]:
    judgements = [(one.cause.name, one.judgement, one.source, one.confidence != "low") for one in found]
    return settled(run.booked, run.places, judgements, known)


def _without_companions(found: list[_Found]) -> list[_Found]:
    """Grade down what may be a by-product: a rank's other causes, far smaller than the one it stands out by."""
    result = []
    for one in found:
        least = _COMPANION_FACTOR * one.judgement.delay_ns_per_iteration
        greater = [
            other
            for other in found
            if (other.subject_kind, other.subject) == (one.subject_kind, one.subject)
            and other.judgement.delay_ns_per_iteration >= least
        ]
        result.append(replace(one, companion_of=greater[0].cause.name) if greater else one)
    return result


def _findings(run: _Run, delays: pl.DataFrame) -> Iterator[_Found]:
    rng = np.random.default_rng(0)
    for cause in causes().values():
        own = delays.filter(pl.col("cause") == cause.name)
        if own.is_empty():
            continue
        if cause.claims_transfer is None:
            yield from _of_work(run, cause, _matrix(run, own, run.booked.model.ranks.tolist()), rng)
        else:
            yield from _of_transfers(run, cause, _matrix(run, own, run.booked.communicators), rng)


def _of_work(run: _Run, cause: Cause, by_rank: Delays, rng: np.random.Generator) -> Iterator[_Found]:
    found = [_of_rank(run, cause, one) for one in judge_ranks(by_rank, run.durations_ns, rng, run.rules(cause))]
    counted = [one for one in found if one.confidence != "low"]
    beyond: list[_Found] = []
    if all(one.judgement.dominance < run.rules(cause).medium_dominance for one in counted):
        beyond = list(_of_hosts(run, cause, by_rank, rng))
    if beyond:
        found = [replace(one, judgement=replace(one.judgement, confidence="low")) for one in found]
    elif not counted:
        beyond = list(_of_job(run, cause, by_rank, rng))
    elif cause.mode == "synchronization_amplification" and run.booked.model.rule is ReferenceRule.MEDIAN:
        beyond = list(_of_turns(run, cause, by_rank, [one.judgement.place for one in counted], rng))
    named = [one.subject for one in beyond if one.subject_kind == "rank"]
    yield from (one for one in found if one.subject not in named)
    yield from beyond


def _of_rank(run: _Run, cause: Cause, judgement: Judgement) -> _Found:
    subject = str(run.booked.model.ranks[judgement.place])
    source = work_source(run.booked.model, cause.name, [judgement.place])
    return _Found(cause, judgement, "rank", subject, f"rank {subject}", source)


def _of_transfers(run: _Run, cause: Cause, by_communicator: Delays, rng: np.random.Generator) -> Iterator[_Found]:
    """Slow paths are their communicators'; what comes and goes is the job's."""
    if cause.claims_transfer != "path":
        judgement = judge_job(by_communicator.sum(axis=1), run.durations_ns, run.residual_ns, rng, run.rules(cause))
        if judgement is not None:
            affected = [run.places[i] for i in judgement.affected]
            lacking = np.isin(run.booked.communicator, sorted(run.booked.lacking))
            source = transfer_source(run.booked.model, None if cause.claims_transfer == "fabric" else lacking, affected)
            yield _Found(cause, judgement, "job", "all", "the job", source)
        if cause.claims_transfer == "fabric" or (judgement is not None and judgement.confidence != "low"):
            return
    for judgement in judge_ranks(by_communicator, run.durations_ns, rng, run.rules(cause)):
        number = run.booked.communicators[judgement.place]
        source = transfer_source(run.booked.model, run.booked.communicator == judgement.place)
        name = f"communicator {number} ({_ranks_said(run.members[number])})"
        yield _Found(cause, judgement, "communicator", str(number), name, source)


def _of_hosts(run: _Run, cause: Cause, by_rank: Delays, rng: np.random.Generator) -> Iterator[_Found]:
    """Where no rank stands out alone: the ranks of one host together."""
    names = sorted({host for host in run.hosts if host})
    members = {host: [place for place, own in enumerate(run.hosts) if own == host] for host in names}
    if len(names) > 1 and max(map(len, members.values())) > 1 and None not in run.hosts:
        by_host = np.stack([by_rank[:, members[host]].sum(axis=1) for host in names], axis=1)
        for judgement in judge_ranks(by_host, run.durations_ns, rng, run.rules(cause)):
            host = names[judgement.place]
            if judgement.confidence != "low" and _is_shared(by_rank[:, members[host]]):
                source = work_source(run.booked.model, cause.name, members[host])
                yield _Found(cause, replace(judgement, pattern="node_wide"), "host", host, f"host {host}", source)
                return


def _of_job(run: _Run, cause: Cause, by_rank: Delays, rng: np.random.Generator) -> Iterator[_Found]:
    """Where no rank and no host stands out: all ranks at the same times or in turns, or the rank whose loss it was."""
    if cause is UNEXPLAINED or cause.mode == "gpu_locality":
        return
    takes_turns = cause.mode == "synchronization_amplification"
    if takes_turns and run.booked.model.rule is not ReferenceRule.MEDIAN:
        # Against faster durations than the median, ranks that are late in turns are what any noise looks like.
        return
    in_turns = list(_of_turns(run, cause, by_rank, [], rng)) if takes_turns else []
    yield from in_turns
    if in_turns:
        return
    found = judge_job(by_rank.sum(axis=1), run.durations_ns, 0, rng, run.rules(cause))
    if found is None or found.confidence == "low":
        return
    alone = leader_of(by_rank, found.affected, run.durations_ns, rng, run.rules(cause))
    if alone is not None:
        yield _of_rank(run, cause, replace(alone, confidence=found.confidence))
        return
    if takes_turns:
        return
    source = work_source(run.booked.model, cause.name, range(by_rank.shape[1]))
    yield _Found(cause, found, "job", "all", "the job", source)


def _of_turns(
    run: _Run, cause: Cause, by_rank: Delays, certain: Sequence[int], rng: np.random.Generator
) -> Iterator[_Found]:
    """What ranks lose in turns, beside those that are named for themselves."""
    others = np.setdiff1d(np.arange(by_rank.shape[1]), certain)
    found = judge_turns(by_rank[:, others], run.durations_ns, rng, run.rules(cause))
    if found is not None and found.confidence != "low":
        source = work_source(run.booked.model, cause.name, others.tolist(), in_turns=True)
        yield _Found(cause, found, "job", "all", "the job", source)


def _is_shared(delays_ns: Delays) -> bool:
    """Whether most of a host's ranks have their part of its delay, at the same times and not in turns."""
    own = np.maximum(0, delays_ns)
    even = own.mean(axis=1, keepdims=True)
    weights = even[:, 0]
    if own.shape[1] < 2 or not weights.any():
        return False
    return float(np.average((own >= even / 2).mean(axis=1), weights=weights)) >= _MOST_RANKS


def _ranks_said(ranks: Sequence[int]) -> str:
    shown = [str(rank) for rank in ranks[:8]]
    return f"ranks {', '.join(shown)}{', …' if len(ranks) > len(shown) else ''}"


def _matrix(run: _Run, own: pl.DataFrame, owners: Sequence[int]) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    result = np.zeros((len(run.iterations), len(owners)))
    place = {iteration: i for i, iteration in enumerate(run.iterations)}
    column = {owner: c for c, owner in enumerate(owners)}
    for iteration, owner, delay_ns in own.select("iteration", "owner", "delay_ns").iter_rows():
        if iteration in place and owner in column:
            result[place[iteration], column[owner]] = delay_ns
    return result


def _row(run: _Run, found: _Found, cost: Settled, known: Coupled) -> dict[str, object]:
    judgement, cause = found.judgement, found.cause
    affected = [run.iterations[i] for i in judgement.affected]
    share = cost.delay.mean_ns / float(run.durations_ns.mean())
    return {
        "run_id": run.run_id,
        "mode": cause.mode,
        "cause": cause.name,
        "subject_kind": found.subject_kind,
        "subject": found.subject,
        **cost.columns(),
        "share": share,
        # What hardly saves anything does not count, however much of it there is.
        "confidence": found.confidence if share >= Thresholds().reported_share else "low",
        "first_iteration": affected[0],
        "last_iteration": affected[-1],
        "pattern": judgement.pattern,
        "summary": _summary(run, found, cost, share),
        "next_step": _TURNS_STEP if judgement.pattern == "rotating" else cause.next_step.format(subject=found.name),
        "iterations": len(run.iterations),
        "affected_iterations": len(affected),
        "dominance": judgement.dominance,
        "chance": judgement.chance,
        "clock_residual_ns": run.residual_ns,
        "companion_of": found.companion_of,
        "cost_note": _cost_note(cost, known) if found.confidence != "low" else None,
    }


def _cost_note(cost: Settled, known: Coupled) -> str | None:
    notes = [known.assumption] if known.assumption else []
    if cost.left_ns:
        notes.append(
            f"Replayed without it, an affected iteration would be {format_ns(abs(cost.left_ns))} "
            f"{'longer' if cost.left_ns > 0 else 'shorter'} than the others: other work is "
            f"{'slower' if cost.left_ns > 0 else 'faster'} meanwhile; its cost takes account of that."
        )
    return " ".join(notes) or None


def _summary(run: _Run, found: _Found, settled_cost: Settled, share: float) -> str:
    judgement, name = found.judgement, found.name
    subject = name[0].upper() + name[1:]
    if name == "the job":
        subject = "Communication" if found.cause.claims_transfer else "The job as a whole"
    if judgement.pattern == "rotating":
        subject = "One rank or another"
    cost = f"{format_ns(settled_cost.delay.mean_ns)} an iteration ({format_share(share)})"
    judged, affected = len(run.iterations), len(judgement.affected)
    extent = "in the one iteration judged" if judged == 1 else f"in {affected} of {judged} iterations"
    hit = f", {format_ns(settled_cost.affected_ns)}" if judgement.pattern != "persistent" and judged > 1 else ""
    hit += " each" if hit and affected > 1 else ""
    return f"{subject} {found.cause.phrase}, {extent}{hit}; it costs the job {cost}."
