"""What a verdict says of a pipeline's stages. In: a state of the verdict. Out: sentences; empty where there are none.

A stage that always computes longer than the others is no loss against the run's own pace, and still what the others
wait for. Its kernels may tell whether it has more work or is slow (operation.stage_work). Nobody is accused; what
evening out would save is said. Not handled: memory, which may forbid it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from traceforge.attribute.findings.subjects import ranks_said
from traceforge.attribute.lone_link import of_lone_link, waits_for_lone_link
from traceforge.attribute.longer_stages import LongerStages, StageLoad
from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_ns, format_share, listed, plural

State = Mapping[str, Any]

_SCHEDULES = {
    "gpipe": "GPipe", "1f1b": "1F1B", "interleaved": "interleaved 1F1B", "breadth_first": "breadth first",
    "zb_h1": "ZB-H1", "zb_h2": "ZB-H2", "interleaved_zb": "interleaved zero-bubble", "zb_v": "ZB-V",
    "dualpipe_v": "DualPipeV", "unknown": "an unknown schedule",
}  # fmt: skip


_REASONS = {
    "slower": "slower at the same work",
    "more": "has more work",
    "": "by design or by a fault, which one run cannot tell",
}
# So many stages are named each.
_SHOWN = 3
_LATE, _MESSAGES = "ranks later than usual", "messages"
_NEGATIVE = {_LATE: "of waits that late ranks are spared"}


def is_unbalanced(state: State) -> bool:
    """Whether stages compute so much more than others that they, and not a fault, limit the run."""
    return state["state"] == "nothing_significant" and has_heavy_stage(state)


def has_heavy_stage(state: State) -> bool:
    """Whether stages compute so much more than others that mending it would save much."""
    longer: LongerStages | None = state.get("longer_stages")
    return longer is not None and longer.costs_much(_step_ns(state))


def _step_ns(state: State) -> float:
    """A rank's own step where iterations of a pipeline overlap, else the iteration."""
    return float(state.get("pipeline_iteration_ns") or state["duration_ns"])


def saved_by_stages_ns(state: State) -> int:
    """What an iteration would be shorter by without what makes stages longer, ns; of a run that has such."""
    return int(state["longer_stages"].saved_ns)


def stages_beside_finding(state: State) -> str:
    """What a finding must not hide; empty where it is what makes the stages compute longer."""
    if not has_heavy_stage(state):
        return ""
    is_same = state["longer_stages"].ranks & set(state["finding_ranks"] or ())
    if is_same and state["finding_mode"] == "synchronization_amplification":
        return ""
    return " ".join(filter(None, ["Beside that:", headline_of_stages(state), of_stage_work(state)]))


def behind_headline_of_stages(state: State) -> str:
    """What bubbles may hide, and what kernels say of it; empty where no stage limits the run."""
    if not is_unbalanced(state):
        return ""
    longer: LongerStages = state["longer_stages"]
    beside = longer.beside if longer.beside is not None and longer.beside.costs_much(_step_ns(state)) else None
    said = [
        of_few_microbatches(state),
        of_stage_work(state),
        of_each_alone(longer),
        of_whole_hosts(longer),
        f"Beside that: {said_of_stages(beside, _step_ns(state))}" if beside else "",
    ]
    return "".join(f" {one}" for one in said if one)


def of_few_microbatches(state: State) -> str:
    """That bubbles may hide what is uneven; empty where the schedule leaves few, or what they hide is known."""
    if state["longer_stages"].is_played or (state["bubble_share"] or 0.0) < thresholds.HIDING_BUBBLE_SHARE:
        return ""
    return (
        f"With {_microbatches(state)} for "
        f"{plural(state['stages'], 'stage')} it may save far less, or nothing: part of the longer work lies where the "
        "stage would idle."
    )


def headline_of_stages(state: State) -> str:
    """Which stages compute longest, why where their kernels tell, and what mending that would save."""
    return said_of_stages(state["longer_stages"], _step_ns(state))


def said_of_stages(longer: LongerStages, duration_ns: float) -> str:
    """The same, of iterations that take so long."""
    is_pace = longer.reason == "slower"
    is_one = len(longer.told) == 1
    why = _REASONS[longer.reason]
    if is_pace:
        why = f"as {'it is' if is_one else 'they are'} {why}"
    elif longer.reason:
        why = f"as it {why}" if is_one else "as they have more work"
    return (
        f"{_named(longer.told, with_ranks=True)} {'computes' if is_one else 'compute'} {_longer(longer)} longer than "
        f"the {'usual' if is_pace else 'mean'} stage, {why}: {_saved(longer, duration_ns)}."
    )


def _saved(longer: LongerStages, duration_ns: float) -> str:
    """What evening out would save, and what the pace of the others would."""

    def said(saved_ns: int, *, is_known: bool) -> str:
        return f"{'about' if is_known else 'up to'} {format_ns(saved_ns)} ({format_share(saved_ns / duration_ns)})"

    # Layers are moved as a whole, so that evening out saves less than was played.
    even = None if longer.even_ns is None else said(longer.even_ns, is_known=False)
    if longer.pace_ns is None:
        return f"evened out, an iteration would be {even} shorter"
    how = "with no more work than the others" if longer.reason == "more" else "at the others' pace"
    at_pace = f"{how}, an iteration would be {said(longer.pace_ns, is_known=longer.is_played)} shorter"
    if longer.even_ns is not None and longer.even_ns < thresholds.TOLD_BUBBLE_SHARE * duration_ns:
        even = "hardly any"
    return f"{at_pace}, evened out {even}" if even else at_pace


def of_each_alone(longer: LongerStages) -> str:
    """What mending one of several slow stages would save; empty where that is not known."""
    alone = [(one.stage, one.alone_ns) for one in _in_order(longer.told) if one.alone_ns is not None]
    if longer.reason != "slower" or not 1 < len(longer.told) == len(alone) <= _SHOWN:
        return ""
    said = listed([f"{format_ns(saved_ns)} (stage {stage})" for stage, saved_ns in alone])
    return f"Mended alone, one saves {said}, as others stay slow."


def of_whole_hosts(longer: LongerStages) -> str:
    """That slow stages are whole hosts; empty where they are not."""
    if longer.reason != "slower" or not longer.hosts:
        return ""
    shown = [*longer.hosts[:_SHOWN], *([f"{len(longer.hosts) - _SHOWN} more"] if len(longer.hosts) > _SHOWN else [])]
    return (
        f"{'Its' if len(longer.told) == 1 else 'Their'} ranks are all those of host{_s(longer.hosts)} {listed(shown)}."
    )


def _s(some: Sequence[object]) -> str:
    return "" if len(some) == 1 else "s"


def _named(told: Sequence[StageLoad], *, with_ranks: bool) -> str:
    """`Stage 1 (ranks 2, 3)`, `Stages 1 and 3`, `Stages 1, 3, 5 and 2 more`."""
    names = [
        f"{one.stage} ({ranks_said(one.ranks)})" if with_ranks else str(one.stage) for one in _in_order(told)[:_SHOWN]
    ]
    more = [f"{len(told) - _SHOWN} more"] if len(told) > _SHOWN else []
    return f"Stage{_s(told)} {listed([*names, *more])}"


def _longer(longer: LongerStages) -> str:
    """By how much, of one, of each of two, or of more from the least to the most."""
    pace = longer.reason == "slower"
    shares = [one.compute_ns / (one.usual_ns if pace else one.mean_ns) - 1 for one in _in_order(longer.told)]
    said = [format_share(share) for share in shares]
    if len(set(said)) == 1:
        return said[0]
    return " and ".join(said) if len(said) == 2 else f"{format_share(min(shares))} to {format_share(max(shares))}"


def _in_order(told: Sequence[StageLoad]) -> list[StageLoad]:
    return sorted(told, key=lambda one: one.stage)


def of_stage_work(state: State) -> str:
    """What their kernels say of why stages compute longest; empty where they say nothing."""
    longer: LongerStages = state["longer_stages"]
    known = [one for one in longer.told if one.slower_ns is not None]
    pace = [one for one in known if one.reason in ("slower", "perhaps_slower")]
    if known and known[0] in pace:
        return _of_pace([one for one in pace if one.reason == known[0].reason], longer.stages)
    return _of_parts(known[0], _step_ns(state)) if known else ""


def _of_pace(told: Sequence[StageLoad], stages: int) -> str:
    """That stages do the same work at a slower pace, and what that rests on."""
    is_sure = told[0].reason == "slower"
    others = "the other stage" if stages == 2 else "the other stages"
    on_inputs = ", on inputs of the same shapes" if is_sure else ""
    inputs = "its inputs are" if len(told) == 1 else "their inputs are"
    unless = "" if is_sure else f", unless {inputs} larger: too few shapes are known"
    low, high = min(one.low_slowdown for one in told), max(one.high_slowdown for one in told)
    return (
        f"{_named(told, with_ranks=False)} run{'s' if len(told) == 1 else ''} the same kernels as often as {others}"
        f"{on_inputs}, and a call takes {_slowdown(low, high)} longer: the same work, more slowly{unless}."
    )


def _of_parts(told: StageLoad, duration_ns: float) -> str:
    """How much of what the kernels of a stage take longer is due to what."""
    slower_ns, more_calls_ns = told.slower_ns or 0, told.more_calls_ns
    longer_ns = slower_ns + more_calls_ns + told.own_ns - told.missing_ns
    shared = "kernels that others run, too"
    parts = (
        (told.own_ns, "in kernels that no other stage runs on such inputs"),
        (more_calls_ns, f"in more calls of {shared}"),
        (slower_ns, f"in longer calls of {shared} ({_slowdown(told.low_slowdown, told.high_slowdown)} longer)"),
        (-more_calls_ns, f"in fewer calls of {shared}"),
        (-slower_ns, f"in shorter calls of {shared}"),
        (told.missing_ns, "in kernels that only others run"),
    )
    least_ns = thresholds.TOLD_BUBBLE_SHARE * duration_ns
    said = [f"{format_ns(part_ns)} {where}" if part_ns >= least_ns else "" for part_ns, where in parts]
    more, less = (", ".join(filter(None, some)) for some in (said[:3], said[3:]))
    if not more:
        return ""
    less = f", less {less}" if less else ""
    return (
        f"Kernels of stage {told.stage} take {format_ns(longer_ns)} an iteration longer than those of the "
        f"usual stage: {more}{less}."
    )


def _slowdown(low: float, high: float) -> str:
    least, most = format_share(low), format_share(high)
    return most if least == most else f"{least} to {most}" if low > 0 else f"up to {most}"


def next_step_of_stages(state: State) -> str:
    """What to do about stages with more work, or slow ones."""
    longer: LongerStages = state["longer_stages"]
    which, is_one = _named(longer.told, with_ranks=False).lower(), len(longer.told) == 1
    if longer.reason == "slower":
        return (
            f"Compare clock, temperature and power of the devices of {which} with others', and see what else "
            "runs on them: to move layers away would hide the reason."
        )
    if longer.reason == "more":
        return (
            f"See whether {which} {'is' if is_one else 'are'} meant to have more work (embedding, head, more layers, "
            "layers that are computed again): then move layers to other stages."
        )
    return (
        f"See whether {which} {'has' if is_one else 'have'} more work by design (embedding, head, layers that do not "
        f"divide): then move layers to other stages. If all stages have the same work, {'its' if is_one else 'their'} "
        "devices are slow: compare with an earlier run."
    )


def of_slow_replicas(state: State) -> str:
    """That a stage slow in all replicas does not show, where there are stages and none is told to be so."""
    if not state["has_stages"] or (is_unbalanced(state) and state["longer_stages"].reason):
        return ""
    return " Nor does a stage that is slow in all replicas: it may have more work by design."


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
