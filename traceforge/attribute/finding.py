"""Findings. Reads the ledger and the graph; fills attribute.finding.

Each cause's delays are held against the run's own noise (see `findings.search`); the cost of what stands out is
found by replaying the run without it (see `findings.finding_cost`). Random numbers come from generators with a fixed
seed, so that a database always yields the same findings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from traceforge.attribute.finding_clock import steps_of_clocks
from traceforge.attribute.finding_function import steps_of_functions
from traceforge.attribute.finding_hardware import steps_of_models
from traceforge.attribute.finding_operation import steps_of_operations
from traceforge.attribute.findings.candidates import Searched, blamed_time, candidates
from traceforge.attribute.findings.counterfactual import working_alone
from traceforge.attribute.findings.coupling_scenarios import CouplingScenarios, load_coupling_scenarios
from traceforge.attribute.findings.finding_candidate import FindingCandidate
from traceforge.attribute.findings.finding_cost import FindingCost, finding_costs
from traceforge.attribute.findings.lost_time import JudgedRun, own_work_ns
from traceforge.attribute.findings.routing import hot_experts
from traceforge.attribute.findings.same_event import events_of
from traceforge.attribute.findings.text import cost_note, next_step, summary
from traceforge.attribute.ledger.host_causes import load_host_times, load_judged_input, longer_ns
from traceforge.attribute.ledger.host_floor import load_host_floor
from traceforge.attribute.ledger.ledger_input import ON_DEVICE
from traceforge.attribute.unrecorded_wait import held_ranks, of_late_ranks
from traceforge.attribute.unseen_ranks import has_unseen_ranks, limited_by_unseen
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds

_JUDGED = """
SELECT e.iteration, i.duration_ns
FROM attribute.excess AS e
JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE e.run_id = ? AND NOT i.is_warmup
ORDER BY e.iteration
"""

# What neither a rank nor a communicator owns is nobody's.
_DELAYS = """
SELECT iteration, COALESCE(rank, communicator_id) AS owner, communicator_id, low_rank, high_rank, cause, delay_ns
FROM attribute.delay WHERE run_id = ? ORDER BY iteration, owner, low_rank, high_rank
"""

_COMMUNICATORS = "SELECT communicator_id, ranks FROM timeline.communicator WHERE run_id = ?"

_MESSAGES = """
SELECT iteration, LEAST(source_rank, destination_rank) AS low, GREATEST(source_rank, destination_rank) AS high,
  size_bytes, transfer_ns
FROM timeline.message WHERE run_id = ? AND iteration IS NOT NULL
"""

_NICS = "SELECT host, nic, communicator_id, ranks FROM attribute.nic_use WHERE run_id = ?"

_PACE = "SELECT pace_ns FROM attribute.pace WHERE run_id = ?"

_RESIDUAL = "SELECT COALESCE(MAX(residual_ns), 0) FROM align.clock WHERE run_id = ?"

_MATCHED_SHARE = "SELECT COALESCE(MIN(1 - unmatched / calls), 0) FROM align.partner_count WHERE run_id = ?"

# Columns that keep their former name for one version.
_FORMER_NAMES = {
    "booked_ns_per_iteration": "ledger_ns_per_iteration",
    "harm_alone_ns": "isolated_cost_ns",
    "harm_alone_low_ns": "isolated_cost_low_ns",
    "harm_alone_high_ns": "isolated_cost_high_ns",
    "chance": "p_value",
}


@dataclass(frozen=True, slots=True)
class CostedFinding:
    """A row of attribute.finding, and its delay by cause, ns an iteration, as the ledger divides it."""

    row: dict[str, object]
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Costed:
    """What stands out of a run, with its cost by replay in the same order."""

    run: JudgedRun
    found: Sequence[FindingCandidate]
    costs: Sequence[FindingCost]


def rows(store: Store) -> pl.DataFrame:
    """Findings of all runs, by delay, low confidence last; a sure one precedes a likely one of its size."""
    result: list[dict[str, object]] = []
    for run_id in store.run_ids():
        found = store.once(load_findings, run_id)
        result += [{**one.row, "finding_id": n, "usual_step": one.row["next_step"]} for n, one in enumerate(found)]
    # Each may put its own step in the place of the one before it, or ahead of it.
    sources = (steps_of_operations, steps_of_functions, steps_of_clocks, steps_of_models)
    for step_of in [source(store) for source in sources] if result else []:
        result = [row | {"next_step": step_of(row)} for row in result]
    held = store.once(held_ranks) if result else {}
    result = [row | of_late_ranks(row, held.get(int(str(row["run_id"])))) for row in result]
    return pl.DataFrame(result, infer_schema_length=None).drop("usual_step", strict=False)


def load_findings(store: Store, run_id: int) -> list[CostedFinding]:
    """Findings of a run in the order of the table; what costs nothing is none."""
    costed = store.once(load_costed, run_id)
    if costed is None:
        return []
    run, known = costed.run, costed.run.couplings
    is_matched = len(run.ranks) == 1 or store.value(_MATCHED_SHARE, [run_id]) >= thresholds.MATCHED_SHARE
    made = [
        CostedFinding(
            _row(run, one, cost, known) | {"confidence": confidence_of(one, cost, run, is_matched=is_matched)},
            one.parts or {one.cause.name: 1.0},
        )
        for one, cost in zip(costed.found, costed.costs, strict=True)
    ]
    return [
        replace(made[n], row=made[n].row | {"summary": summary(costed.found[n], costed.costs[n], run, repeats=repeats)})
        for n, repeats in in_order([one.row for one in made], events_of(costed.found))
        if costed.costs[n].delay.mean_ns > 0
    ]


def in_order(rows: Sequence[Mapping[str, Any]], events: Sequence[int]) -> list[tuple[int, bool]]:
    """Places of rows, the most important first, and whether a row of the same event precedes it.

    An event is as important as its most important row; of its rows the costliest comes first.
    """
    members: dict[int, list[int]] = {}
    for n, event in enumerate(events):
        members.setdefault(event, []).append(n)
    result = []
    for own in sorted(members.values(), key=lambda own: min(precedence(rows[n]) for n in own)):
        own.sort(key=lambda n: (rows[n]["confidence"] == "low", -int(rows[n]["delay_ns_per_iteration"])))
        result += [(n, n != own[0] and rows[n]["confidence"] != "low") for n in own]
    return result


def load_costed(store: Store, run_id: int) -> Costed | None:
    """What stands out of a run, and what each costs by replay; None where no iteration can be judged."""
    searched = store.once(load_search, run_id)
    if searched is None:
        return None
    run, found = searched.run, searched.found
    sources = [blamed_time(run, one) for one in found]
    costs = finding_costs(run.ledger, run.places, found, sources, run.couplings, run.host_floor)
    if has_unseen_ranks(store, run_id):
        costs = [limited_by_unseen(one, cost) for one, cost in zip(found, costs, strict=True)]
    return Costed(run, found, costs)


def precedence(row: Mapping[str, object]) -> tuple[bool, int]:
    """Sort key of a row of attribute.finding, the most important first."""
    weight = thresholds.HIGH_CONFIDENCE_WEIGHT if row["confidence"] == "high" else 1
    return row["confidence"] == "low", -weight * int(str(row["delay_ns_per_iteration"]))


def load_search(store: Store, run_id: int) -> Searched | None:
    """A run with what stands out of it; None where no iteration can be judged."""
    run = _run(store, run_id)
    return None if run is None else candidates(run, _by_path(store.query(_DELAYS, [run_id]), run))


def _by_path(delays: pl.DataFrame, run: JudgedRun) -> pl.DataFrame:
    """Delays of which slow messages are owned by their path."""
    ends = ["communicator_id", "low_rank", "high_rank"]
    rows = [(one.communicator_id, one.low_rank, one.high_rank, path) for path, one in run.ledger.paths.items()]
    known = pl.DataFrame(rows, schema={**{name: delays.schema[name] for name in ends}, "path": pl.Int64}, orient="row")
    joined = delays.join(known, on=ends, how="left", maintain_order="left")
    return joined.select("iteration", pl.coalesce("path", "owner").alias("owner"), "cause", "delay_ns")


def _run(store: Store, run_id: int) -> JudgedRun | None:
    ledger = store.once(load_judged_input, run_id)
    judged = store.query(_JUDGED, [run_id])
    if ledger is None or judged.is_empty():
        return None
    hosts = dict(store.rows("SELECT rank, host FROM align.rank WHERE run_id = ?", [run_id]))
    hot = hot_experts(store, run_id, ledger.model)
    known = load_coupling_scenarios(store, run_id, ledger.model)
    spent_ns = load_host_times(store, run_id, ledger.model)
    return JudgedRun(
        run_id,
        ledger,
        judged["iteration"].to_list(),
        judged["duration_ns"].to_numpy().astype(np.float64),
        float(store.value(_PACE, [run_id])),
        int(store.value(_RESIDUAL, [run_id])),
        [hosts.get(rank) for rank in ledger.model.ranks.tolist()],
        dict(store.rows(_COMMUNICATORS, [run_id])),
        bool(store.value(ON_DEVICE, [run_id])),
        store.query(_MESSAGES, [run_id]),
        _nics(store, run_id),
        hot.saved,
        known,
        working_alone(ledger.model, known.likely),
        hot.transfer_ns,
        load_host_floor(store, run_id, ledger.model),
        None if spent_ns is None else longer_ns(ledger.model, spent_ns),
    )


def _nics(store: Store, run_id: int) -> dict[tuple[str, str], dict[int, list[int]]]:
    """By (host, NIC) the communicators that pass it, with their ranks there."""
    found: dict[tuple[str, str], dict[int, list[int]]] = {}
    for host, nic, communicator, ranks in store.rows(_NICS, [run_id]):
        found.setdefault((host, nic), {})[communicator] = ranks or []
    return found


def _row(run: JudgedRun, found: FindingCandidate, cost: FindingCost, known: CouplingScenarios) -> dict[str, object]:
    effect, cause = found.effect, found.cause
    affected = [run.iterations[i] for i in effect.affected]
    moment = int(effect.affected[np.argmax(effect.by_iteration_ns[effect.affected])])
    row = {
        "run_id": run.run_id,
        "mode": cause.mode,
        "cause": cause.name,
        "subject_kind": found.subject.kind,
        "subject": found.subject.name,
        "ranks": _ranks(run, found),
        "host": _host(run, found),
        **cost.columns(run.pace_ns),
        "share": cost.delay.mean_ns / run.pace_ns,
        "first_iteration": affected[0],
        "last_iteration": affected[-1],
        "pattern": effect.pattern,
        "next_step": next_step(found, run),
        "moment_iteration": run.iterations[moment],
        "moment_rank": _rank_at(run, found, moment),
        "iterations": len(run.iterations),
        "affected_iterations": len(affected),
        "dominance": effect.dominance,
        "p_value": effect.p_value,
        "clock_residual_ns": run.residual_ns,
        "companion_of": found.companion_of,
        "cost_note": cost_note(cost, known, found.beside_ns) if found.confidence != "low" else None,
    }
    return row | {former: row[name] for former, name in _FORMER_NAMES.items()}


def confidence_of(found: FindingCandidate, cost: FindingCost, run: JudgedRun, *, is_matched: bool) -> str:
    """Low for what costs little, whatever the ledger says; where most calls have no partner, for all but the certain.

    Medium for what costs little if the hosts of other ranks need as long as they seem to, or what may cost nothing.
    What ranks lose in turns is above the usual rank's time, but evening it out saves what is above the mean.
    """
    least = thresholds.ROTATING_SHARE if found.is_in_turns else thresholds.MEDIUM_SHARE
    least_ns = least * float(run.durations_ns.mean())
    is_hint = cost.delay.mean_ns < least_ns or (not is_matched and found.confidence != "high")
    is_little = cost.host_limited_ns is not None and cost.host_limited_ns < least_ns
    may_be_nothing = cost.delay.low_ns is not None and cost.delay.low_ns <= 0
    is_doubtful = (is_little or may_be_nothing) and found.confidence == "high"
    return "low" if is_hint else "medium" if is_doubtful else found.confidence


def _ranks(run: JudgedRun, found: FindingCandidate) -> list[int]:
    """Ranks that are blamed; of slow transfers those that move the bytes, of the job's none in particular: all."""
    if found.subject.kind == "communicator":
        return sorted(run.members[int(found.subject.name)])
    return [run.ranks[place] for place in found.subject.places] or run.ranks


def _host(run: JudgedRun, found: FindingCandidate) -> str | None:
    """The host of all its ranks, where there is one."""
    place_of = {rank: place for place, rank in enumerate(run.ranks)}
    hosts = {run.hosts[place_of[rank]] if rank in place_of else None for rank in _ranks(run, found)}
    return hosts.pop() if len(hosts) == 1 else None


def _rank_at(run: JudgedRun, found: FindingCandidate, moment: int) -> int | None:
    """Of the blamed ranks the one with most own work beyond the reference in an iteration; None for transfers."""
    kinds = [k for k, (name, _) in enumerate(run.ledger.model.kinds) if name in found.parts]
    places = list(found.subject.places)
    if not kinds or not places:
        return None
    own = own_work_ns(run.ledger.model)[run.places[moment]][np.ix_(places, kinds)].sum(axis=1)
    return run.ranks[places[int(own.argmax())]]
