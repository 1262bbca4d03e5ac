"""What bounds a rank and the job. Reads attribute.bottleneck and others named below; fills attribute.bound.

Idea: a device that computes nearly all the time is bound by its kernels; otherwise the largest part that can be
avoided is named with its share. What was not measured is said to be so. Not handled: what it would gain to remove it.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from traceforge.attribute import bound_words
from traceforge.attribute.copies import Copies, CopiesAlone
from traceforge.attribute.exposed import Exposed, ExposedTransfers
from traceforge.attribute.finding_function import StallingFunction, stalling_function
from traceforge.attribute.late_launch import LateLaunches, late_launches, phrase_of, phrases
from traceforge.attribute.memory_work import MemoryBoundWork
from traceforge.attribute.mixed_formats import profilers_of
from traceforge.attribute.profiler_steps import step_of
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_ns, format_share

_PARTS = """
SELECT run_id, rank, bound, is_avoidable, duration_ns_per_iteration AS duration_ns, share
FROM attribute.bottleneck
ORDER BY run_id, rank NULLS FIRST, place
"""

# Kernels of each rank and of the job: how many an iteration, their time, and how much of it has known arithmetic.
_KERNELS = """
WITH judged AS (
  SELECT run_id, COUNT(*) AS iterations FROM operation.judged_iteration GROUP BY run_id
),
compute AS (
  SELECT run_id, rank, operation, COALESCE(operation, kernel) AS name, shapes, calls, duration_ns, bytes, bound,
    COALESCE(MAX(arithmetic_duration_ns) OVER same, -1) >= 0 AS is_modelled
  FROM operation.kernel
  WHERE joined <> 'host' AND class = 'compute'
  WINDOW same AS (PARTITION BY run_id, rank, operation, shapes)
),
named AS (
  SELECT run_id, rank, name, SUM(calls) AS calls, SUM(duration_ns) AS duration_ns,
    SUM(duration_ns) FILTER (WHERE is_modelled) AS modelled_ns, COUNT(shapes) AS shaped, COUNT(bytes) AS counted,
    COUNT(bound) AS compared
  FROM compute
  GROUP BY GROUPING SETS ((run_id, name), (run_id, rank, name))
),
computing AS (
  SELECT run_id, COUNT(DISTINCT rank) AS ranks FROM compute GROUP BY run_id
)
SELECT
  n.run_id, n.rank,
  CAST(SUM(n.calls) AS DOUBLE) / ANY_VALUE(j.iterations) / IF(n.rank IS NULL, ANY_VALUE(w.ranks), 1) AS calls,
  SUM(n.duration_ns) / SUM(n.calls) AS mean_ns,
  COALESCE(SUM(n.modelled_ns), 0) / NULLIF(SUM(n.duration_ns), 0) AS modelled_share,
  ARG_MAX(n.name, n.duration_ns) AS largest,
  MAX(n.duration_ns) / NULLIF(SUM(n.duration_ns), 0) AS largest_share,
  SUM(n.shaped) > 0 AS has_shapes, SUM(n.counted) > 0 AND SUM(n.compared) = 0 AS lacks_peak
FROM named AS n
JOIN computing AS w USING (run_id)
JOIN judged AS j USING (run_id)
GROUP BY n.run_id, n.rank
ORDER BY n.run_id, n.rank NULLS FIRST
"""

_BUSY = """
SELECT p.run_id, p.rank,
  SUM(p.duration_ns) FILTER (WHERE p.phase IN ('compute', 'transfer', 'wait', 'communication', 'copy'))
    / SUM(p.duration_ns) AS busy,
  BOOL_OR(d.records_stacks) AS records_stacks
FROM timeline.phase AS p
JOIN operation.judged_iteration USING (run_id, iteration)
JOIN align.rank AS r USING (run_id, rank)
LEFT JOIN operation.device AS d USING (run_id, rank)
WHERE r.has_device
GROUP BY GROUPING SETS ((p.run_id), (p.run_id, p.rank))
"""

# What the host does for longest, where nothing runs.
_HOST = """
SELECT s.run_id, s.rank, ARG_MAX(s.activity, s.duration_ns) AS host_activity,
  CAST(MAX(s.duration_ns) AS DOUBLE) / SUM(s.duration_ns) AS host_share
FROM (
  SELECT run_id, rank, activity, CAST(SUM(duration_ns) AS BIGINT) AS duration_ns
  FROM timeline.segment
  JOIN operation.judged_iteration USING (run_id, iteration)
  WHERE activity IS NOT NULL
  GROUP BY GROUPING SETS ((run_id, activity), (run_id, rank, activity))
) AS s
GROUP BY s.run_id, s.rank
"""

_UNMARKED = "SELECT DISTINCT run_id FROM align.step WHERE NOT is_marked"

_KERNEL_PARTS = ("ideal", "compute_bound", "memory_bound", "small_kernels", "unmodelled_kernels", "host_compute")
_EXPOSED = MappingProxyType(
    {"communication_at_line_rate": "communication_bound", "communication_bound": "communication_bound"}
)
# Bounds in which kernels of communication may do nothing but wait: the device is busy with them all the same.
_SPINNING = ("communication_bound", "imbalance_bound", "pipeline_bubble")
_NOT_NAMED = (*_KERNEL_PARTS, "stagger", "unexplained")

_PLACE = ("run_id", "rank")
Place = tuple[int, int | None]
Parts = Sequence[Mapping[str, Any]]
Facts = Mapping[str, Any]


def rows(store: Store) -> list[tuple[object, ...]]:
    """One row a rank, and one a run."""
    known = [store.query(query).rows_by_key(_PLACE, named=True, unique=True) for query in (_KERNELS, _BUSY, _HOST)]
    unmarked = set(store.query(_UNMARKED)["run_id"])
    profilers = profilers_of(store)
    result = []
    for place, parts in store.query(_PARTS).rows_by_key(_PLACE, named=True).items():
        facts = {"is_marked": place[0] not in unmarked, "profilers": profilers.get(place[0], {})}
        for of_place in known:
            facts |= of_place.get(place, {})
        if any(part["duration_ns"] for part in parts):
            result.append(_row(place, parts, facts, store))
    return result


def _late(store: Store, run_id: int, rank: int | None) -> LateLaunches | None:
    """Of a rank, or of the job's rank with most such gaps; None where nobody looked at this one."""
    found = store.once(late_launches, run_id)
    return found if found and rank in (None, found.rank) else None


def _function(store: Store, run_id: int, rank: int | None) -> StallingFunction | None:
    """Of a rank, or of the only one that was recorded."""
    ranks = [int(own) for (own,) in store.rows("SELECT rank FROM align.rank WHERE run_id = ?", [run_id])]
    one = rank if rank is not None else ranks[0] if len(ranks) == 1 else None
    return None if one is None else stalling_function(store, run_id, one)


def _more(store: Store, place: Place, bound: str) -> Copies | Exposed | None:
    """What else is to be said of this bound."""
    run_id, rank = place
    if bound == "copy_bound":
        return store.once(CopiesAlone, run_id).of(rank)
    return store.once(ExposedTransfers, run_id).of(rank) if bound == "communication_bound" else None


def _row(place: Place, parts: Parts, facts: Facts, store: Store) -> tuple[object, ...]:
    measured, step, recorded = _together([part for part in parts if part["duration_ns"]]), "", ""
    computing = sum(part["share"] for part in measured if part["bound"] in _KERNEL_PARTS)
    other = next(filter(_is_lost, measured), None)
    peak = next((part["share"] for part in measured if part["bound"] == "ideal"), None)
    by_kernels = other is None or computing >= thresholds.COMPUTING_SHARE or other["share"] < thresholds.BOUND_SHARE
    slow = next((part for part in measured if part["is_avoidable"] and part["bound"] in _KERNEL_PARTS), None)
    # What the host waits for is no part of a step in which nothing was recorded that could run.
    runs = computing or facts.get("busy") or (other is not None and other["share"] >= thresholds.BOUND_SHARE)
    if not by_kernels and slow is not None and other is not None and slow["share"] > other["share"]:
        named, sentence = slow, _of_part(slow, computing, measured, {**facts, "is_set": False}, None)
    elif other is None or not runs or (by_kernels and computing):
        named = max((part for part in measured if part["bound"] in _KERNEL_PARTS), key=_share, default=measured[0])
        sentence = _of_kernels(named["bound"], computing, measured, peak, facts)
        first, recorded = _of_unexplained(computing, measured, facts, store, place) if computing else ("", "")
        beside, avoidable = _beside_kernels(measured, computing, facts, store, place)
        sentence, recorded = f"{first}{sentence}{beside}", f"{recorded} {avoidable}".strip()
        if not computing:
            sentence = _of_nothing(measured, facts)
            step = step_of(facts["profilers"], "nothing_runs", bound_words.NOTHING_RUNS)
    else:
        named = other
        late = _late(store, *place) if other["bound"] == "launch_bound" else None
        if other["bound"] == "launch_bound":
            step = _launch_step(late, facts)
        more = _more(store, place, other["bound"])
        facts = {**facts, "is_set": isinstance(more, Copies) and more.is_set}
        sentence = _of_part(other, computing, measured, facts, late)
        if more:
            usual = more.next_step or bound_words.NEXT_STEPS[other["bound"]]
            sentence, step = f"{sentence} {more.sentence}", step_of(facts["profilers"], other["bound"], usual)
        first, recorded = _of_unexplained(named["share"], measured, facts, store, place)
        sentence = f"{first}{sentence}"
    moved = store.once(MemoryBoundWork, place[0]).sentence(place[1]) if named["bound"] == "memory_bound" else ""
    sentence += f" {moved}" if moved else ""
    shares = (facts.get("busy"), peak, facts.get("modelled_share"))
    step = step or step_of(facts["profilers"], named["bound"], _usual_step(named["bound"], facts))
    step = f"{recorded} {step}".strip()
    return (*place, named["bound"], named["share"], *shares, sentence, step)


def _beside_kernels(parts: Parts, computing: float, facts: Facts, store: Store, place: Place) -> tuple[str, str]:
    """What a device that computes most of the time loses all the same, and what helps; nothing where that is little."""
    lost = [part for part in parts if part["bound"] == "unexplained" or _is_lost(part)]
    largest = max(lost, key=_share, default=None)
    if largest is None or largest["share"] < thresholds.BOUND_SHARE or largest["share"] > computing:
        return "", ""
    bound, late = largest["bound"], _late(store, *place) if largest["bound"] == "launch_bound" else None
    asked = "idle" if bound == "unexplained" else bound
    usual = step_of(facts["profilers"], asked, bound_words.NEXT_STEPS.get(asked, bound_words.SEE_ALL))
    step = _launch_step(late, facts) if bound == "launch_bound" else usual
    return f" For {format_share(largest['share'])} of the {_whole(facts)} {phrase_of(bound, late)}.", step


def _launch_step(late: LateLaunches | None, facts: Facts) -> str:
    """What helps against late launches, by what the host does meanwhile."""
    reason = "held" if late and late.is_held else "quiet" if late and late.is_quiet else "launch_bound"
    return step_of(facts["profilers"], reason, phrases(late)[2])


def _is_lost(part: Mapping[str, Any]) -> bool:
    """Whether a part can be avoided, and is no work of kernels."""
    return bool(part["is_avoidable"]) and part["bound"] not in _NOT_NAMED


def _usual_step(bound: str, facts: Facts) -> str:
    """What helps; of kernels without a model, what they lack."""
    if bound == "unmodelled_kernels" and facts.get("has_shapes"):
        return bound_words.STATE_PEAKS if facts["lacks_peak"] else bound_words.NO_MODEL
    return bound_words.NEXT_STEPS.get(bound, bound_words.SEE_ALL)


def _of_unexplained(known: float, parts: Parts, facts: Facts, store: Store, place: Place) -> tuple[str, str]:
    """What no operation explains, and how to record it, where that is more than what is known; stacks may."""
    share = _unknown_share(parts)
    if share <= known:
        return "", ""
    text, function = f"Nothing runs for {format_share(share)} {_step(parts, facts)}", _function(store, *place)
    if function is not None:
        return f"{text}: the host is in {function.said}. ", ""
    step = step_of(facts["profilers"], "idle", bound_words.NEXT_STEPS["idle"])
    return f"{text}, and no call of the host is recorded: what it waits for is not known. ", step


def _unknown_share(parts: Parts) -> float:
    return next((float(part["share"]) for part in parts if part["bound"] == "unexplained"), 0.0)


def _together(parts: Parts) -> list[Mapping[str, Any]]:
    """The parts, exposed communication as one, largest avoidable first."""
    of_links = [part for part in parts if part["bound"] in _EXPOSED]
    if len(of_links) < 2:
        return [{**part, "bound": _EXPOSED.get(part["bound"], part["bound"])} for part in parts]
    summed = {name: sum(part[name] for part in of_links) for name in ("duration_ns", "share")}
    rest = [part for part in parts if part["bound"] not in _EXPOSED]
    return sorted([{**of_links[0], "bound": "communication_bound", **summed}, *rest], key=_place)


def _place(part: Mapping[str, Any]) -> tuple[bool, float]:
    return not part["is_avoidable"], -part["share"]


def _share(part: Mapping[str, Any]) -> float:
    return float(part["share"])


def _step(parts: Parts, facts: Facts) -> str:
    lasting = format_ns(sum(part["duration_ns"] for part in parts))
    return f"of each {lasting} step" if facts["is_marked"] else f"of the {lasting} recorded without steps"


def _whole(facts: Facts) -> str:
    """What shares are of: nobody who marks no steps knows of one."""
    return "step" if facts["is_marked"] else "time"


def _of_nothing(parts: Parts, facts: Facts) -> str:
    """No device works and the host does nothing that is known to be work of the job."""
    activity = facts.get("host_activity")
    when = f"in {_step(parts, facts).removeprefix('of ')}"
    if activity in (None, "unnamed"):
        return f"Nothing is known {when}: no kernel, no operation of the host and no annotation of a known name."
    doing = bound_words.MEANWHILE.get(activity, f"the host is busy with {activity.replace('_', ' ')}")
    return f"Nothing runs on a device {when}; for {format_share(facts['host_share'])} of it {doing}."


def _of_kernels(bound: str, computing: float, parts: Parts, peak: float | None, facts: Facts) -> str:
    """The device computes most of the time: what of it is ideal, and where the rest is."""
    who = "host" if bound == "host_compute" else "device"
    title = bound_words.KERNELS_BOUND.get(bound, "No part stands out")
    # What has no known kind may be bound by anything.
    text = f"The {who} computes " if _unknown_share(parts) > computing else f"{title}: the {who} computes "
    text += f"{format_share(computing)} {_step(parts, facts)}"
    if facts.get("largest"):
        part = "most of it" if 2 * facts["largest_share"] > 1 else "longest"
        text += f", {part} in {facts['largest'][:80]} ({format_share(facts['largest_share'])} of the kernels' time)"
    if who == "host" or (peak is None and bound == "memory_bound"):
        return f"{text}."
    if peak is None:
        return f"{text}; how near it comes to the device's peak is not measured."
    if facts["modelled_share"] >= thresholds.MODELLED_SHARE:
        return f"{text}; it reaches {format_share(peak)} of the device's peak."
    known = format_share(facts["modelled_share"])
    return f"{text}; work is known for {known} of it, whose arithmetic is {format_share(peak)} of the device's peak."


def _of_part(named: Mapping[str, Any], computing: float, parts: Parts, facts: Facts, late: LateLaunches | None) -> str:
    """A part that is no work of kernels is the largest that can be avoided."""
    is_launch = named["bound"] == "launch_bound"
    told = "memory_sets" if facts["is_set"] else named["bound"]
    title, phrase = phrases(late)[:2] if is_launch else bound_words.words_of(told)
    share, who = format_share(named["share"]), "device" if facts.get("busy") is not None else "host"
    if named["share"] >= computing and _unknown_share(parts) > named["share"]:
        # What has no known kind may be bound by anything.
        text = f"For {share} {_step(parts, facts)} {phrase}, the largest part of a known kind"
    elif named["share"] >= computing:
        text = f"{title}: for {share} {_step(parts, facts)} {phrase}"
    else:
        text = f"The {who} computes {format_share(computing)} {_step(parts, facts)}. For {share}, the largest "
        text += f"avoidable part, {phrase}"
    told = late.sentence if late else ""
    if is_launch and not told and facts.get("calls"):
        calls = round(facts["calls"])
        text += f" ({calls:,} {'kernel' if calls == 1 else 'kernels'} in it, {format_ns(facts['mean_ns'])} on average)"
    spins = ", counting kernels that wait for other ranks" if named["bound"] in _SPINNING else ""
    whole = _whole(facts)
    text += f". The device is busy {format_share(facts['busy'])} of the {whole}{spins}." if who == "device" else "."
    if told:
        text += f" {told}"
    elif is_launch and facts.get("records_stacks"):
        text += " Stacks were recorded, which slows the host: without them it may launch faster."
    return text
