"""What a verdict says of a pipeline's stages. In: a state of the verdict. Out: sentences; empty where there are none.

A stage that always computes longer than the others is no loss against the run's own pace, and still what the others
wait for. Its kernels may tell whether it has more work or is slow (operation.stage_work). Nobody is accused; what
evening out would save is said. Not handled: memory, which may forbid it.
"""

from collections.abc import Mapping
from typing import Any

from traceforge.attribute.findings.subjects import ranks_said
from traceforge.attribute.lone_link import of_lone_link, waits_for_lone_link
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_ns, format_share, plural

_STAGES = """
SELECT l.run_id, l.stage AS heavy_stage, l.ranks AS heavy_ranks, l.compute_ns_per_iteration AS heavy_ns,
  l.mean_stage_ns_per_iteration AS mean_stage_ns, l.excess_share AS heavy_excess_share,
  w.reason AS stage_reason, w.slower_ns, w.more_calls_ns, w.own_ns, w.missing_ns, w.low_slowdown, w.high_slowdown,
  w.lost_to_pace_ns
FROM timeline.stage_load AS l
LEFT JOIN operation.stage_work AS w USING (run_id)
QUALIFY ROW_NUMBER() OVER (PARTITION BY run_id ORDER BY compute_ns_per_iteration DESC, stage) = 1
"""

State = Mapping[str, Any]

_SCHEDULES = {
    "gpipe": "GPipe", "1f1b": "1F1B", "interleaved": "interleaved 1F1B", "breadth_first": "breadth first",
    "zb_h1": "ZB-H1", "zb_h2": "ZB-H2", "interleaved_zb": "interleaved zero-bubble", "zb_v": "ZB-V",
    "dualpipe_v": "DualPipeV", "unknown": "an unknown schedule",
}  # fmt: skip


_REASONS = {
    "slower": "as it is slower at the same work",
    "more": "as it has more work",
    "": "by design or by a fault, which one run cannot tell",
}
_LATE, _MESSAGES = "ranks later than usual", "messages"
_NEGATIVE = {_LATE: "of waits that late ranks are spared"}


def longest_stages(store: Store) -> dict[int, dict[str, Any]]:
    """By run the stage that computes longest, and what its kernels tell; of runs with stages."""
    return {row["run_id"]: row for row in store.records(_STAGES)}


def is_unbalanced(state: State) -> bool:
    """Whether one stage computes so much more than the mean stage that it, and not a fault, limits the run."""
    return state["state"] == "nothing_significant" and has_heavy_stage(state)


def has_heavy_stage(state: State) -> bool:
    """Whether one stage computes so much more than the mean stage that evening out would save much."""
    if state.get("heavy_excess_share") is None:
        return False
    is_large = saved_by_stages_ns(state) >= thresholds.UNBALANCED_SAVING_SHARE * state["duration_ns"]
    return bool(is_large and state["heavy_excess_share"] >= thresholds.UNBALANCED_STAGE_SHARE)


def stages_beside_finding(state: State) -> str:
    """What a finding must not hide; empty where it is what makes the stage compute longer."""
    if not has_heavy_stage(state):
        return ""
    is_same = set(state["heavy_ranks"]) & set(state["finding_ranks"] or ())
    if is_same and state["finding_mode"] == "synchronization_amplification":
        return ""
    return " ".join(filter(None, ["Beside that:", headline_of_stages(state), of_stage_work(state)]))


def behind_headline_of_stages(state: State) -> str:
    """What bubbles may hide, and what kernels say of it; empty where no stage limits the run."""
    if not is_unbalanced(state):
        return ""
    work = of_stage_work(state)
    return f"{of_few_microbatches(state)}{' ' if work else ''}{work}"


def of_few_microbatches(state: State) -> str:
    """That bubbles may hide what is uneven; empty where the schedule leaves few."""
    if (state["bubble_share"] or 0.0) < thresholds.HIDING_BUBBLE_SHARE:
        return ""
    return (
        f" With {_microbatches(state)} for "
        f"{plural(state['stages'], 'stage')} it may save far less, or nothing: part of the longer work lies where the "
        "stage would idle."
    )


def headline_of_stages(state: State) -> str:
    """Which stage computes longest, why where its kernels tell, and what mending that would save."""
    reason = _reason(state)
    why, how, saved_ns = _REASONS[reason], "evened out", saved_by_stages_ns(state)
    # Less where another stage is as slow: mended alone it would save little.
    if reason == "slower" and state["lost_to_pace_ns"] >= saved_ns:
        how, saved_ns = "at the others' pace", state["lost_to_pace_ns"]
    longer, share = format_share(state["heavy_excess_share"]), format_share(saved_ns / state["duration_ns"])
    return (
        f"Stage {state['heavy_stage']} ({ranks_said(state['heavy_ranks'])}) computes {longer} longer than the mean "
        f"stage, {why}: {how}, an iteration would be up to {format_ns(saved_ns)} ({share}) shorter."
    )


def of_stage_work(state: State) -> str:
    """What its kernels say of why a stage computes longest; empty where they say nothing."""
    if state.get("slower_ns") is None:
        return ""
    return _of_pace(state) if state["stage_reason"] in ("slower", "perhaps_slower") else _of_parts(state)


def _of_pace(state: State) -> str:
    """That the stage does the same work at a slower pace, and what that rests on."""
    is_sure = state["stage_reason"] == "slower"
    others = "the other stage" if state["stages"] == 2 else "the other stages"
    on_inputs = ", on inputs of the same shapes" if is_sure else ""
    unless = "" if is_sure else ", unless its inputs are larger: too few of their shapes are known"
    return (
        f"Stage {state['heavy_stage']} runs the same kernels as often as {others}{on_inputs}, and a call takes "
        f"{_slowdown(state)} longer: the same work, more slowly{unless}."
    )


def _of_parts(state: State) -> str:
    """How much of what the kernels of a stage take longer is due to what."""
    slower_ns, more_calls_ns = state["slower_ns"], state["more_calls_ns"]
    longer_ns = slower_ns + more_calls_ns + state["own_ns"] - state["missing_ns"]
    shared = "kernels that others run, too"
    parts = (
        (state["own_ns"], "in kernels that no other stage runs on such inputs"),
        (more_calls_ns, f"in more calls of {shared}"),
        (slower_ns, f"in longer calls of {shared} ({_slowdown(state)} longer)"),
        (-more_calls_ns, f"in fewer calls of {shared}"),
        (-slower_ns, f"in shorter calls of {shared}"),
        (state["missing_ns"], "in kernels that only others run"),
    )
    least_ns = thresholds.TOLD_BUBBLE_SHARE * state["duration_ns"]
    told = [f"{format_ns(part_ns)} {where}" if part_ns >= least_ns else "" for part_ns, where in parts]
    more, less = (", ".join(filter(None, some)) for some in (told[:3], told[3:]))
    if not more:
        return ""
    less = f", less {less}" if less else ""
    return (
        f"Kernels of stage {state['heavy_stage']} take {format_ns(longer_ns)} an iteration longer than those of the "
        f"mean other stage: {more}{less}."
    )


def _slowdown(state: State) -> str:
    low, high = format_share(state["low_slowdown"]), format_share(state["high_slowdown"])
    return high if low == high else f"{low} to {high}" if state["low_slowdown"] > 0 else f"up to {high}"


def next_step_of_stages(state: State) -> str:
    """What to do about a stage with more work, or a slow one."""
    stage = state["heavy_stage"]
    if _reason(state) == "slower":
        return (
            f"Compare clock, temperature and power of the devices of stage {stage} with others', and see what else "
            "runs on them: to move layers away would hide the reason."
        )
    if _reason(state) == "more":
        return (
            f"See whether stage {stage} is meant to have more work (embedding, head, more layers, layers that are "
            "computed again): then move layers to other stages."
        )
    return (
        f"See whether stage {stage} has more work by design (embedding, head, layers that do not "
        "divide): then move layers to other stages. If all stages have the same work, its devices are slow: compare "
        "with an earlier run."
    )


def of_slow_replicas(state: State) -> str:
    """That a stage slow in all replicas does not show, where there are stages and none is told to be so."""
    if not state["has_stages"] or (is_unbalanced(state) and _reason(state)):
        return ""
    return " Nor does a stage that is slow in all replicas: it may have more work by design."


def _reason(state: State) -> str:
    """Why a stage computes longest: slower or more; empty where its kernels do not tell for sure."""
    reason = state.get("stage_reason")
    return reason if reason in _REASONS else ""


def of_schedule(state: State) -> str:
    """How much of its step a pipeline idles by its schedule, which no rank is to blame for."""
    if state["bubble_ns"] is not None:
        return " ".join(["", of_bubbles(state), of_lone_link(state)]).rstrip()
    if state["bubble_share"] is None:
        return ""
    named = _SCHEDULES.get(state["schedule"] or "", "its order")
    return (
        f" By its schedule alone ({named}, {plural(state['stages'], 'stage')}, {_microbatches(state)}) a pipeline of "
        "equal stages "
        f"idles {format_share(state['bubble_share'])} of a step at most; part of what ranks wait for is that."
    )


def of_bubbles(state: State) -> str:
    """What stages of a pipeline wait for each other, why, and what more micro-batches would leave."""
    iteration_ns = state["pipeline_iteration_ns"]
    # Fill and drain of the first iteration are unlike all others', so that it is in no mean of the pipeline.
    of_which = ", the first iteration left out" if state["is_first_left_out"] else ""
    named = f"{_SCHEDULES.get(state['schedule'], 'an unknown schedule')}, {plural(state['stages'], 'stage')}"
    parts = _parts_of_bubble(state)
    least_ns = thresholds.TOLD_BUBBLE_SHARE * iteration_ns
    told = [f"{_points(part_ns / iteration_ns)} {what}" for what, part_ns in parts if part_ns >= least_ns]
    # A late rank waits less itself, so that a part can be negative; without it the others would not add up.
    less = [
        f"{_points(-part_ns / iteration_ns)} {_NEGATIVE.get(what, what)}"
        for what, part_ns in parts
        if -part_ns >= least_ns
    ]
    text = (
        f"{format_share(state['bubble_ns'] / iteration_ns)} of a rank's own step "
        f"({format_ns(iteration_ns)}{of_which}) is pipeline bubble ({named})"
    )
    text += f": {', '.join(told)}" if told else ""
    text += f", less {', '.join(less)}" if told and less else ""
    return (
        f"{text}. With {state['more_microbatches']} micro-batches of this size instead of {state['all_microbatches']}, "
        f"fill and drain would take {format_share(state['more_fill_drain_share'])}."
    )


def main_parts_of_bubble(state: State) -> str:
    """What makes more than half of the bubbles of a pipeline, as `mostly fill and drain`; two parts where none does."""
    parts = sorted(_parts_of_bubble(state), key=lambda part: -part[1])
    named = [what for what, _ in (parts[:1] if 2 * parts[0][1] > state["bubble_ns"] else parts[:2])]
    if waits_for_lone_link(state):
        named = [what for what in named if what != _MESSAGES] + [f"{_MESSAGES} {state['lone_link'].between}"]
    return f"mostly {', and '.join(named)}"


def _parts_of_bubble(state: State) -> list[tuple[str, int]]:
    return [
        ("fill and drain", state["fill_drain_ns"]),
        ("unequal stages", state["imbalance_ns"]),
        (_MESSAGES, state["message_ns"]),
        (_LATE, state["late_peer_ns"]),
    ]


def _microbatches(state: State) -> str:
    return f"{state['microbatches']} micro-batch{'' if state['microbatches'] == 1 else 'es'}"


def _points(share: float) -> str:
    number = _number(share)
    return f"{number} {'point' if number == '1' else 'points'}"


def _number(share: float) -> str:
    """Points of a hundred, whole from 10 on."""
    points = 100 * share
    return f"{points:.0f}" if points >= thresholds.WHOLE_POINTS else f"{points:.2g}"


def saved_by_stages_ns(state: State) -> int:
    """The longest stage above the mean one, ns an iteration: the others wait for that much of it."""
    return int(state["heavy_ns"] - state["mean_stage_ns"])
