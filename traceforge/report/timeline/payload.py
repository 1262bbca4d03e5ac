"""All that the timeline draws. In: a context. Out: `TimelineData`: plain values, and what the section says about them.

Lists are kept by position and times by difference, as the text is then compressed. Names are shown by the page's
script as text, never as markup.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceforge.align.clock_course import read_course
from traceforge.report.context import Context
from traceforge.report.formatting import clean, duration
from traceforge.report.job import Iteration
from traceforge.report.line_breaks import unbroken
from traceforge.report.palette import PHASES
from traceforge.report.representatives import drawn_iterations
from traceforge.report.timeline.arrivals import LinkedCollectives, communication_rows, linked_collectives
from traceforge.report.timeline.axis import TimeAxis, read_axis
from traceforge.report.timeline.moments import (
    Detail,
    Moment,
    detail_of,
    detailed_iterations,
    moments_of,
    shown_findings,
)
from traceforge.report.timeline.owners import owners_of
from traceforge.report.timeline.runs import Runs, runs_of
from traceforge.report.timeline.streams import Blocks, host_row, work_rows

_LEAST_RUNS = 4  # of a rank in an iteration; with room for fewer, iterations are left out


@dataclass(frozen=True, slots=True)
class TimelineData:
    """What is drawn, and what is said beside it.

    Attributes:
        page: the values that travel to the page.
        blocks_left_out: short blocks of opened ranks that are not there.
    """

    page: dict[str, object]
    axis: TimeAxis
    runs: Runs
    detail: Detail
    moments: list[Moment]
    blocks_left_out: int


@dataclass(frozen=True, slots=True)
class _Opened:
    """Rows of the opened ranks, and the names in them."""

    lanes: list[dict[str, object]]
    names: list[tuple[str, str, str]]
    left_out: int


def read_timeline(context: Context) -> TimelineData | None:
    """The timeline of a run; None where no iteration was recorded."""
    shown = drawn(context)
    if not shown:
        return None
    axis = read_axis(shown, context.frame("sections/timeline_origins"))
    segments = context.frame("sections/timeline", iterations=list(axis.numbers))
    if segments.is_empty():
        return None
    findings = shown_findings(context.diagnosis.findings, axis.numbers)
    used = [iteration for iteration in context.job.used if iteration.number in axis.offset_ns]
    chosen = sorted(detailed_iterations(findings, used))
    arrivals = _known(context.frame("sections/timeline_arrivals", iterations=chosen), axis)
    detail = detail_of(findings, used, arrivals, context.job.ranks)
    after = sorted(({int(one.moment_iteration or 0) + 1 for one in findings} & axis.offset_ns.keys()) - set(chosen))
    following = _known(context.frame("sections/timeline_arrivals", iterations=after), axis)
    moments = moments_of(findings, pl.concat([arrivals, following]), segments, axis.origin_ns)
    linked = linked_collectives(arrivals, axis)
    opened = _opened(context, axis, detail, arrivals, linked)
    runs = runs_of(segments, axis, context.limits.runs, list(detail.iterations), detail.ranks)
    page = {
        **_frame(context, axis, shown, detail),
        "culprits": sorted({one.moment_rank for one in findings if one.is_significant and one.moment_rank is not None}),
        "lanes": [runs.by_rank.get(rank, ("", [])) for rank in context.job.ranks],
        "slot": 0 if runs.slot_ns is None else round(runs.slot_ns),
        "collectives": linked.entries,
        "opened": opened.lanes,
        "names": opened.names,
        "moments": [_moment(moment, axis, linked) for moment in moments],
        "owners": owners_of(context.rows("sections/timeline_delays"), {one.number for one in context.job.used}),
    }
    return TimelineData(page, axis, runs, detail, moments, opened.left_out)


def axes_of(context: Context) -> list[tuple[str, list[str], list[int]]]:
    """Axes of the parallel layout by which ranks can be grouped: name, names of the groups, and each rank's group."""
    places: dict[str, dict[int, int]] = {}
    for row in context.rows("sections/timeline_mesh"):
        places.setdefault(row["axis"], {})[row["rank"]] = row["coordinate"]
    ranks, found = context.job.ranks, []
    for axis, place in places.items():
        known = sorted({place[rank] for rank in ranks if rank in place})
        if 1 < len(known) < len(ranks) and all(rank in place for rank in ranks):
            names = [f"{'stage' if axis == 'pp' else clean(axis, 20)} {coordinate}" for coordinate in known]
            found.append((clean(axis, 20), names, [known.index(place[rank]) for rank in ranks]))
    return found


def drawn(context: Context) -> list[Iteration]:
    """All iterations; where there are too many, of neighbours the longest."""
    job = context.job
    room = context.limits.runs // (_LEAST_RUNS * max(1, len(job.ranks)))
    most = max(context.limits.pictures, room)
    if len(job.iterations) <= most:
        return list(job.iterations)
    return [one.iteration for one in drawn_iterations(job.used or job.iterations, most)]


def _known(arrivals: pl.DataFrame, axis: TimeAxis) -> pl.DataFrame:
    """Arrivals of ranks whose place on the line is known."""
    keys = pl.DataFrame(list(axis.origin_ns), schema={"iteration": pl.Int32, "rank": pl.Int32}, orient="row")
    return arrivals.join(keys, on=["iteration", "rank"], how="semi", maintain_order="left")


def _frame(context: Context, axis: TimeAxis, shown: Sequence[Iteration], detail: Detail) -> dict[str, object]:
    """Iterations, ranks, hosts, and the ranks to compare."""
    by_number = {iteration.number: iteration for iteration in shown}
    hosts = list(dict.fromkeys(context.job.host_of[rank] for rank in context.job.ranks))
    offsets, extents = ([times[number] for number in axis.numbers] for times in (axis.offset_ns, axis.extent_ns))
    return {
        "step": axis.step_ns / 1_000,
        "whole": context.job.is_one_stretch,
        "phases": PHASES,
        "iterations": axis.numbers,
        "offsets": axis.steps(np.array(offsets, dtype=np.int64)).tolist(),
        "extents": axis.steps(np.array(extents, dtype=np.int64)).tolist(),
        "durations": [round(one.duration_ns / 1_000) for one in context.job.iterations],
        "all": [one.number for one in context.job.iterations],
        "unused": [number for number in axis.numbers if not by_number[number].is_used],
        "reasons": {str(number): reason for number, reason in detail.iterations.items() if number in axis.offset_ns},
        "ranks": context.job.ranks,
        "hosts": [host or "unknown host" for host in hosts],
        "host_of": [hosts.index(context.job.host_of[rank]) for rank in context.job.ranks],
        "racks": _racks_of(hosts, context),
        "axes": axes_of(context),
        "peer": detail.peer,
        "normal": detail.normal,
    }


def _racks_of(hosts: Sequence[str | None], context: Context) -> list[str | None]:
    """The rack of each host; nothing where fewer than two are stated."""
    rack_of = {clean(row["host"], 80): clean(row["rack"], 40) for row in context.rows("racks")}
    racks = [rack_of.get(host) if host is not None else None for host in hosts]
    return racks if len({*racks} - {None}) > 1 else []


def _moment(moment: Moment, axis: TimeAxis, linked: LinkedCollectives) -> dict[str, object]:
    number = moment.iteration
    rank = moment.ranks[0] if moment.ranks else None
    span = None
    if rank is not None and moment.span and (number, rank) in axis.origin_ns:
        span = [axis.step_at(number, rank, edge) for edge in moment.span]
    what = "late" if moment.rank is not None else "of transfer"
    return {
        "iteration": number,
        "rank": moment.rank,
        "ranks": moment.ranks,
        "span": span,
        "label": f"{duration(moment.excess_ns)} {what}" if span else "",
        "title": unbroken(moment.finding.summary),
        "sure": moment.finding.is_significant,
        "link": linked.place.get(moment.collective_id, -1) if moment.collective_id is not None else -1,
    }


def _opened(
    context: Context, axis: TimeAxis, detail: Detail, arrivals: pl.DataFrame, linked: LinkedCollectives
) -> _Opened:
    numbers = [number for number in detail.iterations if number in axis.offset_ns]
    ranks = list(detail.ranks)
    if not ranks or not numbers:
        return _Opened([], [], 0)
    names = context.frame("sections/timeline_names", ranks=ranks)
    events = context.frame("sections/timeline_events", ranks=ranks, iterations=numbers)
    host = context.frame("sections/timeline_host", ranks=ranks, iterations=numbers)
    windows = _windows(context, axis)
    clocks = {rank: read_course(context.store, context.run_id, rank) for rank in ranks}
    places: dict[tuple[str, str, str], int] = {}
    lanes: list[dict[str, object]] = []
    left_out = 0
    for number in numbers:
        for rank in ranks:
            if (number, rank) not in axis.origin_ns:
                continue
            here = (pl.col("rank") == rank) & (pl.col("iteration") == number)
            own_names = names.filter(pl.col("rank") == rank)
            has_device = bool(own_names["has_device"].any())
            work = work_rows(events.filter(here), own_names, windows[number, rank], clocks[rank], has_device=has_device)
            rows = [*host_row(host.filter(here)), *work, *communication_rows(arrivals.filter(here), linked)]
            left_out += sum(row.left_out for row in rows)
            packed = [_packed(row, number, rank, axis, places) for row in rows]
            span = [axis.step_at(number, rank, edge) for edge in windows[number, rank]]
            lanes.append({"iteration": number, "rank": rank, "span": span, "rows": packed})
    return _Opened(lanes, list(places), left_out)


def _windows(context: Context, axis: TimeAxis) -> dict[tuple[int, int], tuple[int, int]]:
    origins = context.frame("sections/timeline_origins")
    rows = origins.select("iteration", "rank", "start_ns", "duration_ns").iter_rows()
    return {(number, rank): (start, start + lasting) for number, rank, start, lasting in rows}


def _packed(
    blocks: Blocks, number: int, rank: int, axis: TimeAxis, places: dict[tuple[str, str, str], int]
) -> dict[str, object]:
    shift_ns = axis.offset_ns[number] - axis.origin_ns[number, rank]
    starts, ends = axis.steps(blocks.start_ns + shift_ns), axis.steps(blocks.end_ns + shift_ns)
    packed: dict[str, object] = {
        "title": blocks.title,
        "names": [places.setdefault(label, len(places)) for label in blocks.labels],
        "starts": np.diff(starts, prepend=0).tolist(),
        "lengths": np.maximum(ends - starts, 0).tolist(),
    }
    if blocks.link:
        until = axis.steps(np.array(blocks.until_ns, dtype=np.int64) + shift_ns)
        packed |= {"link": blocks.link, "waits": np.maximum(until - starts, 0).tolist()}
    return packed
