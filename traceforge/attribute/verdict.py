"""The verdict. Reads attribute.verdict_state and the first finding; fills attribute.verdict with sentences.

What is said follows from the state that SQL computes; here is only how it is said.
"""

from collections.abc import Mapping
from typing import Any

import polars as pl

from traceforge.attribute import verdict_words
from traceforge.attribute.common_loss import (
    common_losses,
    headline_of_loss,
    loses_in_common,
    loss_beside_finding,
    step_of_bubbles,
)
from traceforge.attribute.costless import costless
from traceforge.attribute.divided_work import explanation_of_division, headline_of_division, idle_owners
from traceforge.attribute.drift import drifts_of, of_drift
from traceforge.attribute.dump_text import of_dumps_without_rank
from traceforge.attribute.excluded import is_owner_unknown, seen, without_owner
from traceforge.attribute.host_text import host_bounds, next_step_of_hosts, said_of_hosts
from traceforge.attribute.judged_text import of_judged
from traceforge.attribute.link_text import (
    costs_much,
    headline_of_link,
    next_step_of_link,
    no_more_than_waited,
    uneven_links,
)
from traceforge.attribute.log_text import of_logs_alone
from traceforge.attribute.lone_link import lone_links, next_step_of_lone_link
from traceforge.attribute.longer_stages import longer_stages
from traceforge.attribute.mixed_formats import joined, of_mixed_formats, profilers_of
from traceforge.attribute.profiler_steps import step_of
from traceforge.attribute.stage_peers import longest_beside_peers
from traceforge.attribute.stage_text import (
    behind_headline_of_stages,
    headline_of_stages,
    is_unbalanced,
    next_step_of_stages,
    of_bubbles,
    of_schedule,
    of_slow_replicas,
    saved_by_stages_ns,
    stages_beside_finding,
)
from traceforge.attribute.unrecorded_wait import held_ranks, of_held_ranks, sentence_of_held
from traceforge.attribute.unseen_ranks import sentence_of_unseen
from traceforge.attribute.untimed import of_graphs, of_what_was_read
from traceforge.attribute.verdict_beside import with_what_is_beside
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_ns, format_share, plural

State = Mapping[str, Any]

_STATES = """
SELECT s.*, p.schedule, p.stages, p.microbatches, p.bubble_share,
  q.bubble_ns, q.iteration_ns AS pipeline_iteration_ns, q.fill_drain_ns, q.imbalance_ns, q.transfer_ns AS message_ns,
  q.late_peer_ns, q.microbatches AS all_microbatches, q.is_first_left_out, q.more_microbatches, q.more_fill_drain_share,
  a.reference, f.summary, f.next_step, f.subject_kind AS finding_subject, f.mode AS finding_mode,
  f.delay_ns_per_iteration AS finding_ns, f.is_at_most AS finding_is_at_most, f.ranks AS finding_ranks,
  w.found_ns, w.found_share,
  b.sentence AS bound, b.next_step AS bound_step,
  h.summary AS hang_summary, h.detail AS hang_detail, h.next_step AS hang_next_step,
  b.bound IS DISTINCT FROM 'unexplained' OR b.share < 1 AS is_step_known,
  e.dumps, g.summary AS fault, g.next_step AS fault_step, o.path AS fault_path, g.line AS fault_line
FROM attribute.verdict_state AS s
LEFT JOIN (
  SELECT run_id, MODE(schedule) AS schedule, MODE(stages) AS stages, MODE(microbatches) AS microbatches,
    MODE(ideal_bubble_share) AS bubble_share
  FROM timeline.schedule
  GROUP BY run_id
) AS p ON p.run_id = s.run_id
LEFT JOIN timeline.pipeline AS q ON q.run_id = s.run_id
LEFT JOIN fabric.hang AS h ON h.run_id = s.run_id AND h.place = 0
LEFT JOIN attribute.bound AS b ON b.run_id = s.run_id AND b.rank IS NULL
CROSS JOIN meta.analysis AS a
LEFT JOIN attribute.finding AS f ON f.run_id = s.run_id AND f.finding_id = 0
LEFT JOIN (
  -- The parts of what all findings cost add up (see attribute.finding).
  SELECT run_id, subject_kind, subject, SUM(delay_ns_per_iteration) AS found_ns, SUM(share) AS found_share
  FROM attribute.finding
  WHERE confidence <> 'low' AND subject_kind IN ('rank', 'ranks', 'host')
  GROUP BY ALL
) AS w ON w.run_id = f.run_id AND w.subject_kind = f.subject_kind AND w.subject = f.subject
LEFT JOIN attribute.configuration AS c ON c.run_id = f.run_id AND c.finding_id = f.finding_id AND c.place = 0
LEFT JOIN fabric.finding AS g ON g.run_id = c.run_id AND g.finding_id = c.fabric_finding_id
LEFT JOIN meta.source AS o ON o.source_id = g.source_id
LEFT JOIN (
  SELECT run_id, COUNT(*) AS dumps FROM meta.source WHERE kind = 'flight_recorder' AND status = 'used' GROUP BY run_id
) AS e ON e.run_id = s.run_id
ORDER BY s.run_id
"""

_WITHOUT_CLOCK = ("unmatched", "mostly_unmatched", "irregular", "ranks_missing")
_UNCONNECTED = frozenset({"no_communication", "unmatched", "mostly_unmatched"})


def rows(store: Store) -> pl.DataFrame:
    """One row a run."""
    states = store.records(_STATES)
    profilers = profilers_of(store)
    owners, stages = idle_owners(store), longer_stages(store)
    held, drifts, losses = store.once(held_ranks), drifts_of(store), common_losses(store)
    links, lone = uneven_links(store), lone_links(store)
    hosts = {
        run_id: {"bound": said_of_hosts(one), "bound_step": next_step_of_hosts(one), "host_bound": one}
        for run_id, one in host_bounds(store).items()
    }
    known = [
        state
        | {"profilers": profilers.get(state["run_id"], {}), "idle_owner": owners.get(state["run_id"])}
        | {"longer_stages": stages.get(state["run_id"])}
        | {"held": held.get(state["run_id"]), "link": no_more_than_waited(links.get(state["run_id"]), state)}
        | {"losses": losses.get(state["run_id"], ()), "host_bound": None, "lone_link": lone.get(state["run_id"])}
        | (hosts.get(state["run_id"], {}) if state["state"] == "nothing_significant" else {})
        for state in states
    ]
    told = [
        _row(store, state)
        | _of_one_rank(state)
        | of_mixed_formats(state, state["profilers"])
        | of_held_ranks(state, state["held"])
        | of_dumps_without_rank(state)
        for state in known
    ]
    told = [row | of_drift(row, drifts.get(row["run_id"])) for row in told]
    return pl.DataFrame(with_what_is_beside(store, known, told), infer_schema_length=None)


def _row(store: Store, state: State) -> dict[str, Any]:
    return {
        "run_id": state["run_id"],
        "kind": state["kind"],
        "headline": _headline(state),
        "explanation": " ".join(filter(None, [joined(state, state["profilers"]), _explanation(store, state)])),
        "confidence": _confidence(state),
        "next_step": _from_logs(state) or _advice(state),
        "delay_share": _delay_share(state),
        "is_unbalanced": is_unbalanced(state) or _has_uneven_link(state),
        "is_common": _is_common(state),
    }


def _confidence(state: State) -> str | None:
    """A host may wait for its device in a way that no trace shows, so that it is never certain to set the pace."""
    return "medium" if state["host_bound"] and state["confidence"] == "high" else state["confidence"]


def _has_uneven_link(state: State) -> bool:
    """Whether messages of one link are always slow, which may cost much, and more than an uneven stage does."""
    if state["state"] != "nothing_significant" or not costs_much(state["link"], state["duration_ns"]):
        return False
    return not is_unbalanced(state) or state["link"].extra_ns >= saved_by_stages_ns(state)


def _uneven_beside(state: State) -> str:
    """Of a slow link and a longer stage that may both cost much, the one that is no headline."""
    if not is_unbalanced(state) or not costs_much(state["link"], state["duration_ns"]):
        return ""
    link = headline_of_link(state["link"], state["duration_ns"])
    return f" Beside that: {headline_of_stages(state) if _has_uneven_link(state) else link}"


def _advice(state: State) -> str:
    if _has_uneven_link(state):
        return next_step_of_link(state["link"])
    return (next_step_of_stages if is_unbalanced(state) else _next_step)(state)


def _headline(state: State) -> str:
    if _has_uneven_link(state):
        return headline_of_link(state["link"], state["duration_ns"])
    if is_unbalanced(state):
        return headline_of_stages(state)
    if _is_spread(state) and state["idle_owner"]:
        return headline_of_division(state["idle_owner"], format_share(_delay_share(state) or 0.0))
    if state["state"] == "logs_alone" and state["problems"]:
        first = "a problem" if state["problems"] == 1 else f"{plural(state['problems'], 'problem')}, the first"
        return _filled(verdict_words.HEADLINES["problems"], {**state, "shown_problems": first})
    usual = _filled(verdict_words.HEADLINES[_headline_key(state)], state) + _of_other_causes(state)
    return headline_of_loss(state, usual) if _is_common(state) else usual


def _of_other_causes(state: State) -> str:
    """What a culprit costs in all, where it is much more than by the first of its causes."""
    if state["state"] != "finding" or state["found_ns"] is None:
        return ""
    if state["found_ns"] <= (1 + thresholds.LEAST_COST_BESIDE) * state["finding_ns"]:
        return ""
    cost = f"{format_ns(state['found_ns'])} ({format_share(state['found_share'])})"
    return f" With the other causes found there: {'up to ' if state['finding_is_at_most'] else ''}{cost}."


def _headline_key(state: State) -> str:
    if state["state"] == "irregular" and not state["has_steps"]:
        return "unmarked"
    if state["state"] == "irregular" and state["has_untimed_work"]:
        return "untimed"
    if _is_spread(state):
        return "ownerless" if is_owner_unknown(state) else "spread"
    return str(state["state"])


def _is_common(state: State) -> bool:
    """Whether what all ranks lose alike is the answer: nobody is to blame, and nothing is uneven."""
    is_free = state["state"] in ("nothing_significant", "partly_seen") and not _is_spread(state)
    return is_free and not is_unbalanced(state) and not _has_uneven_link(state) and loses_in_common(state)


def _delay_share(state: State) -> float | None:
    """Time above the reference over the mean iteration; None where no iteration was judged."""
    return state["excess_ns"] / state["duration_ns"] if state["duration_ns"] else None


def _is_spread(state: State) -> bool:
    """Whether much is lost and nobody owns enough of it."""
    is_nobody = state["state"] == "nothing_significant" and state["spread"] is not None
    return is_nobody and (_delay_share(state) or 0.0) >= thresholds.SPREAD_SHARE


def _of_one_rank(state: State) -> dict[str, object]:
    """What bounds the only rank that was recorded: that needs no others. Nothing in any other state."""
    if state["state"] != "one_rank" or state["bound"] is None:
        return {}
    alone = state["world_size"] == 1
    known = (
        "The job has one rank: none waits for it." if alone else f"Only one rank was recorded: {verdict_words.UNKNOWN}"
    )
    step = state["bound_step"] if alone else f"{state['bound_step']} {verdict_words.OTHER_RANKS}"
    explanation = f"{known} What is said of its own step needs no other rank." if state["is_step_known"] else known
    return {"headline": state["bound"], "explanation": explanation, "next_step": step}


def _filled(sentence: str, state: State) -> str:
    """A sentence with its columns; only sentences of this module are patterns, never text from a trace."""
    lost = format_share(_delay_share(state) or 0.0)
    sure = "certain" if state["confidence"] == "low" else "single"
    said = {**state, "inner_summary": _inside(state["summary"])}
    over = "ranks and causes" if "," in (state["spread"] or "") else "ranks"
    return sentence.format_map({**said, "seen": seen(state), "delay_share": lost, "sure": sure, "over": over})


def _inside(summary: str | None) -> str:
    """A sentence as it stands behind a colon: only a name in capitals keeps its first letter."""
    text = summary or ""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def _explanation(store: Store, state: State) -> str:
    if state["state"] in verdict_words.OF_HANGS:
        return state["hang_detail"] or "Flight recorder dumps tell which calls wait, not how long they take."
    if state["state"] == "logs_alone":
        return of_logs_alone(state)
    if state["state"] == "graphs_alone":
        return of_graphs(store, state)
    if state["kind"] != "cannot_be_known":
        free = costless(store, state["run_id"]) if state["state"] == "nothing_significant" else ""
        return _of_iterations(state, f" {free}" if free else "")
    if state["state"] in _WITHOUT_CLOCK and state["leading_rank"] is not None:
        return _filled(
            "From durations alone, without a common clock: rank {leading_rank} has most work of its own in "
            "{led_iterations} of {frontier_iterations} iterations. Whether it delays the others, these files do not "
            "tell.",
            state,
        )
    # What each rank computes, and what bounds a device, needs no other rank.
    longest = longest_beside_peers(store, state["run_id"]) if state["state"] == "ranks_missing" else None
    goes = longest or (f"Where the time goes: {state['bound']}" if state["bound"] else "")
    if state["state"] == "no_timeline":
        goes = of_what_was_read(store, state["run_id"])
    return f"{goes}{' ' if goes else ''}Data quality lists what was read and what was left out (meta.issue)."


def _of_iterations(state: State, free: str) -> str:
    """The iterations judged; `free` says who stands out and costs nothing."""
    rest = of_judged(state)
    goes = f" Where the time goes: {state['bound']}" if state["bound"] else ""
    if state["state"] != "nothing_significant":
        waits = sentence_of_held(state["held"])
        rest = rest if waits in (state["summary"] or "") else f"{rest} {waits}"
        bubbles = of_bubbles(state) if state["bubble_ns"] is not None else ""
        beside = [_beside_finding(state), loss_beside_finding(state), bubbles]
        beside += [goes.strip()] if state["state"] in ("partly_seen", "uncertain") else []
        return " ".join(filter(None, [sentence_of_unseen(state), rest, *beside]))
    small = f" There for certain, but small: {state['small_summary']}" if state["small_summary"] else ""
    nobody = f" {without_owner(state)}".rstrip() if _is_spread(state) else ""
    if _is_spread(state) and state["idle_owner"]:
        nobody = f" {explanation_of_division(state['idle_owner'])}"
    if is_unbalanced(state) or _has_uneven_link(state):
        hidden = "" if _has_uneven_link(state) else behind_headline_of_stages(state)
        nobody = f"{hidden}{_uneven_beside(state)} Nothing else is significant{seen(state)}."
    what = "Kernels and transfers that are slow" if _is_common(state) else "What is slow"
    alike = f" {what} alike for everyone in all iterations {'do' if _is_common(state) else 'does'} not show this way."
    if state["is_size_assumed"]:
        alike += " No file says how many ranks the job has: of others, if there are any, nothing is known."
    return f"{rest}{nobody}{small}{free}{goes}{of_schedule(state)}{alike}{of_slow_replicas(state)}"


def _beside_finding(state: State) -> str:
    """What may limit the run as well, and one run cannot tell from its design: a finding must not hide it."""
    if state["state"] != "finding":
        return ""
    is_transfer = state["finding_mode"] in ("fabric_contention", "gpu_locality")
    of_stages, link = stages_beside_finding(state), None if is_transfer else state["link"]
    if link is None or not costs_much(link, state["duration_ns"]):
        return of_stages
    if not of_stages or link.extra_ns >= saved_by_stages_ns(state):
        return f"Beside that: {headline_of_link(link, state['duration_ns'])}"
    return of_stages


def _from_logs(state: State) -> str:
    """What to mend where logs show what fits the finding: the usual advice would ask to collect them."""
    if state["state"] != "finding" or state["fault"] is None:
        return ""
    where = f"{state['fault_path']}, line {state['fault_line']}"
    return f"The job's logs show what may cause it. {state['fault']} [{where}] {state['fault_step']}"


def _next_step(state: State) -> str:
    if state["state"] in verdict_words.NEXT_STEPS:
        usual = _filled(verdict_words.NEXT_STEPS[state["state"]], state)
        if state["state"] == "logs_alone" and state["first_problem_step"]:
            return f"{state['first_problem_step']} What it costs only a timeline shows: {usual[0].lower()}{usual[1:]}"
        return step_of(state["profilers"], "communication", usual) if state["state"] in _UNCONNECTED else usual
    if state["state"] == "irregular":
        what = {"unmarked": "steps", "irregular": "regular"}.get(_headline_key(state), "untimed")
        return step_of(state["profilers"], what, verdict_words.IRREGULAR[what])
    if state["iterations"] < thresholds.SURE_NEGATIVE_ITERATIONS:
        return step_of(state["profilers"], "more_steps", verdict_words.MORE_STEPS)
    if state["state"] == "uncertain":
        return _filled(
            "Record more iterations than these, so that chance can be told from a cause; then: {next_step}", state
        )
    scale = "If it scales badly nonetheless, compare with a run at another scale: the time per collective tells why."
    led = step_of_bubbles(state) if _is_common(state) else ""
    return " ".join(filter(None, [next_step_of_lone_link(state), led, state["bound_step"], scale]))
