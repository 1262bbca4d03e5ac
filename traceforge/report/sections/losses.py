"""Lost time of each iteration, stacked by who owns it: the whole run at one glance, drawn without a script.

Reads attribute.delay. What is drawn lies above the run's own reference, from zero; its parts sum to the iteration's
delay without credits. Of long runs neighbours share a bar, which shows their mean. A click opens the timeline.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from traceforge.report.answer_blocks import BarStrip, StripBar
from traceforge.report.blocks import Section, Table, TableColumn, number
from traceforge.report.context import Context, Row
from traceforge.report.diagnosis import place_link
from traceforge.report.formatting import LinkedText, clean, count, duration, lowered, percent, spaced, span
from traceforge.report.palette import MODES
from traceforge.report.plugin import Plugin
from traceforge.report.timeline.owners import owners_of
from traceforge.thresholds import report as thresholds
from traceforge.thresholds.attribute import LONG_CALL_SHARE

_MOST_BARS = 120
_MOST_SHADES = 4
_MOST_ROWS = 60


def _build(context: Context) -> Section | None:
    numbers = [iteration.number for iteration in context.job.used]
    rows = [row for row in context.rows("sections/timeline_delays") if row["iteration"] in set(numbers)]
    if not rows or len(numbers) < 2:
        return None
    found = owners_of(rows, set(numbers))
    lost = _by_iteration(found["cells"])
    notes = _calls_of_stalls(rows, context)
    per_bar = -(-len(numbers) // _MOST_BARS)
    groups = [numbers[first : first + per_bar] for first in range(0, len(numbers), per_bar)]
    heights = [_mean(group, lost) for group in groups]
    top_us = max(sum(parts.values()) for parts in heights)
    swatches = _swatches(found["names"])
    strip = BarStrip(
        name="losses",
        caption=_caption(found["names"], found["cells"], context),
        bars=[
            _bar(group, parts, top_us, swatches, found["names"]) for group, parts in zip(groups, heights, strict=True)
        ],
        legend=[(mode, shade, str(names[0])) for (mode, shade), names in zip(swatches, found["names"], strict=True)],
        top=duration(1_000 * top_us),
        ends=(str(numbers[0]), str(numbers[-1])),
        table=Table.of(rows, _COLUMNS, min(_MOST_ROWS, context.limits.table_rows)),
        notes=[*([f"Each bar is the mean of {per_bar} iterations."] if per_bar > 1 else []), *notes],
        queries=["sections/timeline_delays", *(["sections/losses_calls"] if notes else [])],
    )
    return Section([strip])


def _by_iteration(cells: Sequence[Sequence[object]]) -> Mapping[int, Mapping[int, float]]:
    lost: dict[int, dict[int, float]] = defaultdict(dict)
    for iteration, owner, lost_us in cells:
        lost[int(str(iteration))][int(str(owner))] = float(str(lost_us))
    return lost


def _mean(group: Sequence[int], lost: Mapping[int, Mapping[int, float]]) -> dict[int, float]:
    """Mean over the iterations of a bar, µs by owner."""
    sums: dict[int, float] = defaultdict(float)
    for iteration in group:
        for owner, lost_us in lost.get(iteration, {}).items():
            sums[owner] += lost_us / len(group)
    return dict(sorted(sums.items()))


def _swatches(names: Sequence[Sequence[object]]) -> list[tuple[str, int]]:
    """Colour and shade of each owner: those of one failure mode share its colour, the later ones paler."""
    seen: dict[str, int] = defaultdict(int)
    found = []
    for _, mode in names:
        seen[str(mode)] += 1
        found.append((str(mode), min(_MOST_SHADES, seen[str(mode)])))
    return found


def _bar(
    group: Sequence[int], parts: Mapping[int, float], top_us: float, swatches: Sequence[tuple[str, int]],
    names: Sequence[Sequence[object]],
) -> StripBar:  # fmt: skip
    noun = "Iteration" if len(group) == 1 else "Iterations"
    owners = "; ".join(
        f"{_in_sentence(str(names[owner][0]))} {duration(1_000 * lost_us)}" for owner, lost_us in parts.items()
    )
    owners = f": {owners}" if owners else ""
    title = f"{noun} {span(group[0], group[-1])} lost {duration(1_000 * sum(parts.values()))}{owners}"
    heights = [(*swatches[owner], 100 * lost_us / top_us if top_us else 0.0) for owner, lost_us in parts.items()]
    return StripBar(title, heights, place_link(group[0]))


def _who(row: Row) -> str:
    if row["rank"] is not None:
        return f"rank {row['rank']}"
    if row["subject"] is not None:
        return clean(row["subject"], 40)
    return "—" if row["communicator_id"] is None else "transfers of a group"


def _caption(names: Sequence[Sequence[object]], cells: Sequence[Sequence[object]], context: Context) -> str:
    """Who owns most, as a share: the size of a fault is stated once, as what is recoverable."""
    sums: dict[int, float] = defaultdict(float)
    for _, owner, lost_us in cells:
        sums[int(str(owner))] += float(str(lost_us))
    named = [owner for owner in sums if str(names[owner][1]) in MODES]
    if not named:
        return "Time lost in each iteration, by who owns it"
    first = max(named, key=lambda owner: sums[owner])
    owned = sums[first] / sum(sums.values())
    of_all, who = percent(owned), _in_sentence(str(names[first][0]))
    share, is_one = f"the largest owner, {who}, has {of_all} of it", len(context.job.ranks) == 1
    if names[first][1] == "unexplained":
        share = f"{percent(context.trust.unexplained or owned)} of it is unexplained"
    elif context.diagnosis.leading is None and owned < thresholds.MOST_OF_A_STRIP:
        share = f"no cause has more than {of_all} of it" if is_one else f"nobody owns more than {of_all} of it"
    elif is_one:
        share = f"the largest, {spaced(str(names[first][0]).partition(': ')[2])}, has {of_all} of it"
    by = "cause" if is_one else "who owns it"
    return f"Time lost in each iteration, by {by}; {share}{_won_back(sum(sums.values()), context)}"


def _calls_of_stalls(rows: Sequence[Row], context: Context) -> list[str]:
    """What a host stall waits for where that is a long call of another thread, which the verdict on one rank names."""
    lost: dict[str, int] = defaultdict(int)
    for row in rows:
        lost[row["cause"]] += row["delay_ns"]
    if len(context.job.ranks) > 1 or max(lost, key=lambda cause: lost[cause]) != "host_stall":
        return []
    return [
        f"Host stall: the training thread stands still, for {percent(row['share'])} of that time while another thread "
        f"is inside of calls to {clean(row['call'], 80)}."
        for row in context.rows("sections/losses_calls")
        if row["share"] >= LONG_CALL_SHARE
    ]


def _won_back(lost_us: float, context: Context) -> str:
    """What stretches faster than the reference make up for, where that is much of what is drawn."""
    excess = context.rows("sections/waterfall_excess")[0]
    if not lost_us or not excess["iterations"]:
        return ""
    won_back = 1 - excess["excess_ns"] * excess["iterations"] / (1_000 * lost_us)
    if won_back < thresholds.LEAST_WON_BACK_SHARE:
        return ""
    faster = "iterations" if len(context.job.ranks) == 1 else "ranks"
    return f"; {percent(min(1.0, won_back))} is won back where {faster} are faster than usual"


def _in_sentence(name: str) -> str:
    """`Rank 2: slow compute` as it stands inside a sentence: rank 2 (slow compute)."""
    subject, _, cause = lowered(name).partition(": ")
    return f"{subject} ({cause})" if cause else subject


_COLUMNS = (
    number("iteration", lambda row: LinkedText(count(row["iteration"]), place_link(row["iteration"]))),
    TableColumn("who", _who),
    TableColumn("cause", lambda row: spaced(row["cause"])),
    number("lost", lambda row: duration(row["delay_ns"])),
)

SECTION = Plugin(11, "Time lost in each iteration, by who owns it", "", _build)
