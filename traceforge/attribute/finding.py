"""Findings. Reads the ledger and the graph; fills attribute.finding.

Each cause's delays are judged against the run's own noise (see `judge`); what stands out is replayed without its
delay to tell what fixing it would gain. Randomness comes from a generator with a fixed seed, so that a database
always yields the same findings.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from traceforge.attribute.cause import UNEXPLAINED, Cause, causes
from traceforge.attribute.gain import gain_without_transfer_excess, gain_without_work_excess
from traceforge.attribute.judge import Delays, Judgement, Thresholds, judge_job, judge_ranks
from traceforge.replay.model import StepModel, load_model
from traceforge.store.database import Store
from traceforge.units import format_ns, format_share

_JUDGED = """
SELECT e.iteration, i.duration_ns
FROM attribute.excess AS e
JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE e.run_id = ? AND NOT i.is_warmup
ORDER BY e.iteration
"""

_DELAYS = "SELECT iteration, rank, cause, delay_ns FROM attribute.delay WHERE run_id = ? ORDER BY iteration, rank"

_RESIDUAL = "SELECT COALESCE(MAX(residual_ns), 0) FROM align.clock WHERE run_id = ?"

# A cause this many times smaller than another of the same rank is taken for its by-product.
_COMPANION_FACTOR = 4

_CONFIDENCE_ORDER = {"high": 0, "medium": 1, "low": 2}


@dataclass(frozen=True, slots=True)
class _Run:
    """What findings of one run are made from; durations in ns, shape (iterations,)."""

    run_id: int
    model: StepModel
    iterations: list[int]
    durations_ns: "np.ndarray[tuple[int], np.dtype[np.float64]]"
    residual_ns: int
    hosts: list[str | None]


def rows(store: Store) -> pl.DataFrame:
    """Findings of all runs, by confidence, then by delay."""
    result: list[dict[str, object]] = []
    for run_id in store.query("SELECT run_id FROM meta.run ORDER BY run_id")["run_id"]:
        model = load_model(store, run_id)
        judged = store.query(_JUDGED, [run_id])
        if model is None or judged.is_empty():
            continue
        durations = judged["duration_ns"].to_numpy().astype(np.float64)
        residual = int(store.query(_RESIDUAL, [run_id]).item())
        hosts = dict(store.query("SELECT rank, host FROM align.rank WHERE run_id = ?", [run_id]).rows())
        of_ranks = [hosts.get(rank) for rank in model.ranks.tolist()]
        run = _Run(run_id, model, judged["iteration"].to_list(), durations, residual, of_ranks)
        found = _without_companions(list(_findings(run, store.query(_DELAYS, [run_id]))))
        found.sort(
            key=lambda row: (
                _CONFIDENCE_ORDER[str(row["confidence"])],
                -int(str(row["delay_ns_per_iteration"])),
            )
        )
        result += [{**row, "finding_id": number} for number, row in enumerate(found)]
    return pl.DataFrame(result, infer_schema_length=None)


def _without_companions(found: list[dict[str, object]]) -> list[dict[str, object]]:
    """Grade down what may be a by-product: a rank's other causes, far smaller than the one it stands out by."""
    for row in found:
        greater = [
            other
            for other in found
            if (other["subject_kind"], other["subject"]) == (row["subject_kind"], row["subject"])
            and int(str(other["delay_ns_per_iteration"])) >= _COMPANION_FACTOR * int(str(row["delay_ns_per_iteration"]))
        ]
        row["companion_of"] = greater[0]["cause"] if greater else None
        if greater:
            row["confidence"] = "low"
    return found


def _findings(run: _Run, delays: pl.DataFrame) -> Iterator[dict[str, object]]:
    rng = np.random.default_rng(0)
    rules = Thresholds()
    for cause in causes().values():
        own = delays.filter(pl.col("cause") == cause.name)
        if own.is_empty():
            continue
        if cause.claims_transfer:
            by_iteration = _matrix(run, own.with_columns(rank=pl.lit(0, dtype=pl.Int32)), [0])[:, 0]
            judgement = judge_job(by_iteration, run.durations_ns, run.residual_ns, rng, rules)
            if judgement is not None:
                yield _row(run, cause, judgement, "job", "all", gain_without_transfer_excess(run.model))
            continue
        by_rank = _matrix(run, own, run.model.ranks.tolist())
        found = list(_of_ranks(run, cause, by_rank, rng))
        yield from found
        if all(row["confidence"] == "low" for row in found):
            yield from _of_hosts_or_job(run, cause, by_rank, rng)


def _of_ranks(run: _Run, cause: Cause, by_rank: Delays, rng: np.random.Generator) -> Iterator[dict[str, object]]:
    for judgement in judge_ranks(by_rank, run.durations_ns, rng, Thresholds()):
        gain = gain_without_work_excess(run.model, cause.name, [judgement.place])
        yield _row(run, cause, judgement, "rank", str(run.model.ranks[judgement.place]), gain)


def _of_hosts_or_job(run: _Run, cause: Cause, by_rank: Delays, rng: np.random.Generator) -> Iterator[dict[str, object]]:
    """Where no rank stands out alone: the ranks of one host together, else all ranks at the same times."""
    names = sorted({host for host in run.hosts if host})
    members = {host: [place for place, own in enumerate(run.hosts) if own == host] for host in names}
    if len(names) > 1 and max(map(len, members.values())) > 1 and None not in run.hosts:
        by_host = np.stack([by_rank[:, members[host]].sum(axis=1) for host in names], axis=1)
        for judgement in judge_ranks(by_host, run.durations_ns, rng, Thresholds()):
            host = names[judgement.place]
            if judgement.confidence != "low" and len(members[host]) > 1:
                gain = gain_without_work_excess(run.model, cause.name, members[host])
                yield _row(run, cause, replace(judgement, pattern="node_wide"), "host", host, gain)
                return
    if cause.mode != "runtime_control_plane":
        return
    judgement_ = judge_job(by_rank.sum(axis=1), run.durations_ns, 0, rng, Thresholds())
    if judgement_ is not None and judgement_.confidence != "low":
        gain = gain_without_work_excess(run.model, cause.name, range(by_rank.shape[1]))
        yield _row(run, cause, judgement_, "job", "all", gain)


def _matrix(run: _Run, own: pl.DataFrame, ranks: list[int]) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    result = np.zeros((len(run.iterations), len(ranks)))
    place = {iteration: i for i, iteration in enumerate(run.iterations)}
    column = {rank: r for r, rank in enumerate(ranks)}
    for iteration, rank, delay_ns in own.select("iteration", "rank", "delay_ns").iter_rows():
        if iteration in place and rank in column:
            result[place[iteration], column[rank]] = delay_ns
    return result


def _row(
    run: _Run, cause: Cause, judgement: Judgement, subject_kind: str, subject: str, gain: float
) -> dict[str, object]:
    low, high = judgement.interval_ns or (None, None)
    affected = [run.iterations[i] for i in judgement.affected]
    name = "the job" if subject_kind == "job" else f"{subject_kind} {subject}"
    confidence = "low" if cause is UNEXPLAINED else judgement.confidence
    return {
        "run_id": run.run_id,
        "mode": cause.mode,
        "cause": cause.name,
        "subject_kind": subject_kind,
        "subject": subject,
        "delay_ns_per_iteration": round(judgement.delay_ns_per_iteration),
        "delay_low_ns": None if low is None else round(low),
        "delay_high_ns": None if high is None else round(high),
        "share": judgement.share,
        "confidence": confidence,
        "gain_if_fixed": gain,
        "first_iteration": affected[0],
        "last_iteration": affected[-1],
        "pattern": judgement.pattern,
        "summary": _summary(run, cause, judgement, name),
        "next_step": cause.next_step.format(subject=name),
        "iterations": len(run.iterations),
        "affected_iterations": len(affected),
        "affected_delay_ns": round(judgement.affected_delay_ns),
        "dominance": judgement.dominance,
        "chance": judgement.chance,
        "clock_residual_ns": run.residual_ns,
    }


def _summary(run: _Run, cause: Cause, judgement: Judgement, name: str) -> str:
    subject = name[0].upper() + name[1:]
    if name == "the job":
        subject = "Communication" if cause.claims_transfer else "The job as a whole"
    cost = f"{format_ns(judgement.delay_ns_per_iteration)} an iteration ({format_share(judgement.share)})"
    judged, affected = len(run.iterations), len(judgement.affected)
    extent = "in the one iteration judged" if judged == 1 else f"in {affected} of {judged} iterations"
    hit = f", {format_ns(judgement.affected_delay_ns)}" if judgement.pattern != "persistent" and judged > 1 else ""
    hit += " each" if hit and affected > 1 else ""
    return f"{subject} {cause.phrase}, {extent}{hit}; it costs the job {cost}."
