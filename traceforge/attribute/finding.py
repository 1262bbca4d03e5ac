"""Findings. Reads the ledger and the graph; fills attribute.finding.

Each cause's delays are judged against the run's own noise (see `judge`); what stands out is replayed without its
delay, and with nothing else, to tell what it costs (see `settlement`). Randomness comes from generators with a fixed
seed, so that a database always yields the same findings.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from traceforge.attribute.cause import UNEXPLAINED, Cause, causes
from traceforge.attribute.delay import ON_DEVICE
from traceforge.attribute.findings.counterfactual import BlamedTime, blamed_transfers, blamed_work
from traceforge.attribute.findings.coupling_scenarios import CouplingScenarios, load_coupling_scenarios
from traceforge.attribute.findings.finding_cost import FindingCost, finding_costs
from traceforge.attribute.findings.significance import (
    Delays,
    Effect,
    Thresholds,
    dominant_rank,
    effect_on_job,
    effects_of_ranks,
    rotating_straggler,
)
from traceforge.attribute.ledger.ledger_input import LedgerInput, load_ledger_input
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

# Columns that keep their former name for one version.
_FORMER_NAMES = {
    "booked_ns_per_iteration": "ledger_ns_per_iteration",
    "harm_alone_ns": "isolated_cost_ns",
    "harm_alone_low_ns": "isolated_cost_low_ns",
    "harm_alone_high_ns": "isolated_cost_high_ns",
    "chance": "p_value",
}

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
class _JudgedRun:
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
class _Candidate:
    """One that stands out: who, by which cause, what it did."""

    cause: Cause
    effect: Effect
    subject_kind: str
    subject: str
    name: str
    source: BlamedTime
    companion_of: str | None = None

    @property
    def confidence(self) -> str:
        """Grade, with what a by-product or an unknown cause takes from it."""
        if self.cause is UNEXPLAINED or self.companion_of:
            return "low"
        # That time is lost may be certain; why is not.
        is_high = self.effect.confidence == "high"
        return "medium" if is_high and self.cause.mode == UNEXPLAINED.mode else self.effect.confidence


def rows(store: Store) -> pl.DataFrame:
    """Findings of all runs, by delay, low confidence last; a sure one precedes a likely one of its size."""
    result: list[dict[str, object]] = []
    for run_id in store.query("SELECT run_id FROM meta.run ORDER BY run_id")["run_id"]:
        run = _run(store, run_id)
        if run is not None:
            found = _without_companions(list(_findings(run, store.query(_DELAYS, [run_id]))))
            known = load_coupling_scenarios(store, run_id)
            costs = _costs_of(run, found, known)
            made = [_row(run, one, cost, known) for one, cost in zip(found, costs, strict=True)]
            made.sort(key=precedence)
            result += [{**row, "finding_id": number} for number, row in enumerate(made)]
    return pl.DataFrame(result, infer_schema_length=None)


def precedence(row: Mapping[str, object]) -> tuple[bool, int]:
    """Sort key of a row of attribute.finding, the one to tell first being the least."""
    weight = _SURE_WEIGHT if row["confidence"] == "high" else 1
    return row["confidence"] == "low", -weight * int(str(row[_DELAY]))


def _run(store: Store, run_id: int) -> _JudgedRun | None:
    ledger = store.once(load_ledger_input, run_id)
    judged = store.query(_JUDGED, [run_id])
    if ledger is None or judged.is_empty():
        return None
    hosts = dict(store.query("SELECT rank, host FROM align.rank WHERE run_id = ?", [run_id]).rows())
    return _JudgedRun(
        run_id,
        ledger,
        judged["iteration"].to_list(),
        judged["duration_ns"].to_numpy().astype(np.float64),
        int(store.query(_RESIDUAL, [run_id]).item()),
        [hosts.get(rank) for rank in ledger.model.ranks.tolist()],
        dict(store.query(_COMMUNICATORS, [run_id]).rows()),
        bool(store.query(ON_DEVICE, [run_id]).item()),
    )


def _costs_of(run: _JudgedRun, found: Sequence[_Candidate], known: CouplingScenarios) -> list[FindingCost]:
    effects = [(one.cause.name, one.effect, one.source, one.confidence != "low") for one in found]
    return finding_costs(run.ledger, run.places, effects, known)


def _without_companions(found: list[_Candidate]) -> list[_Candidate]:
    """Grade down what may be a by-product: a rank's other causes, far smaller than the one it stands out by."""
    result = []
    for one in found:
        least = _COMPANION_FACTOR * one.effect.delay_ns_per_iteration
        greater = [
            other
            for other in found
            if (other.subject_kind, other.subject) == (one.subject_kind, one.subject)
            and other.effect.delay_ns_per_iteration >= least
        ]
        result.append(replace(one, companion_of=greater[0].cause.name) if greater else one)
    return result


def _findings(run: _JudgedRun, delays: pl.DataFrame) -> Iterator[_Candidate]:
    rng = np.random.default_rng(0)
    for cause in causes().values():
        own = delays.filter(pl.col("cause") == cause.name)
        if own.is_empty():
            continue
        if cause.claims_transfer is None:
            yield from _of_work(run, cause, _matrix(run, own, run.ledger.model.ranks.tolist()), rng)
        else:
            yield from _of_transfers(run, cause, _matrix(run, own, run.ledger.communicators), rng)


def _of_work(run: _JudgedRun, cause: Cause, by_rank: Delays, rng: np.random.Generator) -> Iterator[_Candidate]:
    found = [_of_rank(run, cause, one) for one in effects_of_ranks(by_rank, run.durations_ns, rng, run.rules(cause))]
    counted = [one for one in found if one.confidence != "low"]
    beyond: list[_Candidate] = []
    if all(one.effect.dominance < run.rules(cause).medium_dominance for one in counted):
        beyond = list(_of_hosts(run, cause, by_rank, rng))
    if beyond:
        found = [replace(one, effect=replace(one.effect, confidence="low")) for one in found]
    elif not counted:
        beyond = list(_of_job(run, cause, by_rank, rng))
    elif cause.mode == "synchronization_amplification" and run.ledger.model.rule is ReferenceRule.MEDIAN:
        beyond = list(_of_turns(run, cause, by_rank, [one.effect.place for one in counted], rng))
    named = [one.subject for one in beyond if one.subject_kind == "rank"]
    yield from (one for one in found if one.subject not in named)
    yield from beyond


def _of_rank(run: _JudgedRun, cause: Cause, effect: Effect) -> _Candidate:
    subject = str(run.ledger.model.ranks[effect.place])
    source = blamed_work(run.ledger.model, cause.name, [effect.place])
    return _Candidate(cause, effect, "rank", subject, f"rank {subject}", source)


def _of_transfers(
    run: _JudgedRun, cause: Cause, by_communicator: Delays, rng: np.random.Generator
) -> Iterator[_Candidate]:
    """Slow paths are their communicators'; what comes and goes is the job's."""
    if cause.claims_transfer != "path":
        effect = effect_on_job(by_communicator.sum(axis=1), run.durations_ns, run.residual_ns, rng, run.rules(cause))
        if effect is not None:
            affected = [run.places[i] for i in effect.affected]
            lacking = np.isin(run.ledger.communicator, sorted(run.ledger.lacking))
            source = blamed_transfers(
                run.ledger.model, None if cause.claims_transfer == "fabric" else lacking, affected
            )
            yield _Candidate(cause, effect, "job", "all", "the job", source)
        if cause.claims_transfer == "fabric" or (effect is not None and effect.confidence != "low"):
            return
    for effect in effects_of_ranks(by_communicator, run.durations_ns, rng, run.rules(cause)):
        number = run.ledger.communicators[effect.place]
        source = blamed_transfers(run.ledger.model, run.ledger.communicator == effect.place)
        name = f"communicator {number} ({_ranks_said(run.members[number])})"
        yield _Candidate(cause, effect, "communicator", str(number), name, source)


def _of_hosts(run: _JudgedRun, cause: Cause, by_rank: Delays, rng: np.random.Generator) -> Iterator[_Candidate]:
    """Where no rank stands out alone: the ranks of one host together."""
    names = sorted({host for host in run.hosts if host})
    members = {host: [place for place, own in enumerate(run.hosts) if own == host] for host in names}
    if len(names) > 1 and max(map(len, members.values())) > 1 and None not in run.hosts:
        by_host = np.stack([by_rank[:, members[host]].sum(axis=1) for host in names], axis=1)
        for effect in effects_of_ranks(by_host, run.durations_ns, rng, run.rules(cause)):
            host = names[effect.place]
            if effect.confidence != "low" and _is_shared(by_rank[:, members[host]]):
                source = blamed_work(run.ledger.model, cause.name, members[host])
                yield _Candidate(cause, replace(effect, pattern="node_wide"), "host", host, f"host {host}", source)
                return


def _of_job(run: _JudgedRun, cause: Cause, by_rank: Delays, rng: np.random.Generator) -> Iterator[_Candidate]:
    """Where no rank and no host stands out: all ranks at the same times or in turns, or the rank whose loss it was."""
    if cause is UNEXPLAINED or cause.mode == "gpu_locality":
        return
    takes_turns = cause.mode == "synchronization_amplification"
    if takes_turns and run.ledger.model.rule is not ReferenceRule.MEDIAN:
        # Against faster durations than the median, ranks that are late in turns are what any noise looks like.
        return
    in_turns = list(_of_turns(run, cause, by_rank, [], rng)) if takes_turns else []
    yield from in_turns
    if in_turns:
        return
    found = effect_on_job(by_rank.sum(axis=1), run.durations_ns, 0, rng, run.rules(cause))
    if found is None or found.confidence == "low":
        return
    alone = dominant_rank(by_rank, found.affected, run.durations_ns, rng, run.rules(cause))
    if alone is not None:
        yield _of_rank(run, cause, replace(alone, confidence=found.confidence))
        return
    if takes_turns:
        return
    source = blamed_work(run.ledger.model, cause.name, range(by_rank.shape[1]))
    yield _Candidate(cause, found, "job", "all", "the job", source)


def _of_turns(
    run: _JudgedRun, cause: Cause, by_rank: Delays, certain: Sequence[int], rng: np.random.Generator
) -> Iterator[_Candidate]:
    """What ranks lose in turns, beside those that are named for themselves."""
    others = np.setdiff1d(np.arange(by_rank.shape[1]), certain)
    found = rotating_straggler(by_rank[:, others], run.durations_ns, rng, run.rules(cause))
    if found is not None and found.confidence != "low":
        source = blamed_work(run.ledger.model, cause.name, others.tolist(), in_turns=True)
        yield _Candidate(cause, found, "job", "all", "the job", source)


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


def _matrix(run: _JudgedRun, own: pl.DataFrame, owners: Sequence[int]) -> Delays:
    result = np.zeros((len(run.iterations), len(owners)))
    place = {iteration: i for i, iteration in enumerate(run.iterations)}
    column = {owner: c for c, owner in enumerate(owners)}
    for iteration, owner, delay_ns in own.select("iteration", "owner", "delay_ns").iter_rows():
        if iteration in place and owner in column:
            result[place[iteration], column[owner]] = delay_ns
    return result


def _row(run: _JudgedRun, found: _Candidate, cost: FindingCost, known: CouplingScenarios) -> dict[str, object]:
    effect, cause = found.effect, found.cause
    affected = [run.iterations[i] for i in effect.affected]
    share = cost.delay.mean_ns / float(run.durations_ns.mean())
    row = {
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
        "pattern": effect.pattern,
        "summary": _summary(run, found, cost, share),
        "next_step": _TURNS_STEP if effect.pattern == "rotating" else cause.next_step.format(subject=found.name),
        "iterations": len(run.iterations),
        "affected_iterations": len(affected),
        "dominance": effect.dominance,
        "p_value": effect.p_value,
        "clock_residual_ns": run.residual_ns,
        "companion_of": found.companion_of,
        "cost_note": _cost_note(cost, known) if found.confidence != "low" else None,
    }
    return row | {former: row[name] for former, name in _FORMER_NAMES.items()}


def _cost_note(cost: FindingCost, known: CouplingScenarios) -> str | None:
    notes = [known.assumption] if known.assumption else []
    if cost.left_ns:
        notes.append(
            f"Replayed without it, an affected iteration would be {format_ns(abs(cost.left_ns))} "
            f"{'longer' if cost.left_ns > 0 else 'shorter'} than the others: other work is "
            f"{'slower' if cost.left_ns > 0 else 'faster'} meanwhile; its cost takes account of that."
        )
    return " ".join(notes) or None


def _summary(run: _JudgedRun, found: _Candidate, finding_cost: FindingCost, share: float) -> str:
    effect, name = found.effect, found.name
    subject = name[0].upper() + name[1:]
    if name == "the job":
        subject = "Communication" if found.cause.claims_transfer else "The job as a whole"
    if effect.pattern == "rotating":
        subject = "One rank or another"
    cost = f"{format_ns(finding_cost.delay.mean_ns)} an iteration ({format_share(share)})"
    judged, affected = len(run.iterations), len(effect.affected)
    extent = "in the one iteration judged" if judged == 1 else f"in {affected} of {judged} iterations"
    hit = f", {format_ns(finding_cost.affected_ns)}" if effect.pattern != "persistent" and judged > 1 else ""
    hit += " each" if hit and affected > 1 else ""
    return f"{subject} {found.cause.phrase}, {extent}{hit}; it costs the job {cost}."
