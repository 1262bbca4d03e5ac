"""Iteration time over the run: how long, how steady, and where it changed for good.

Reads timeline.iteration. Beyond some hundred iterations neighbours are binned: the line is their median, the box
spans fastest and slowest. Where the time axis does not start at zero, a note says so.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean, median

from traceforge.report.blocks import Figure, Missing, Panel, Section, Table, TableColumn, number
from traceforge.report.charts.strip import is_crossed, strip_domain, strip_spec
from traceforge.report.context import Context
from traceforge.report.diagnosis import place_link
from traceforge.report.embedded_data import Dataset
from traceforge.report.formatting import LinkedText, change, count, duration, duration_range, percent, plural, span
from traceforge.report.job import Iteration, JobOverview
from traceforge.report.machine_readable import share, whole
from traceforge.report.missing_data import missing
from traceforge.report.plugin import Plugin
from traceforge.report.representatives import LastingChange, lasting_change, median_iteration, worst_iteration
from traceforge.thresholds import report as thresholds


def _build(context: Context) -> Section | Missing | None:
    job = context.job
    if not job.used:
        return missing("Iteration time cannot be shown", context)
    if len(job.used) < thresholds.LEAST_ITERATIONS and len(job.iterations) == 1:
        return None  # the timeline says how long it takes
    per_column = -(-len(job.iterations) // _MOST_COLUMNS)
    shown = job.used if per_column > 1 else job.iterations
    marks = _marks(job)
    data = {
        "iterations": _columns(shown, per_column),
        "median": {"duration_ms": [round((job.quantile_ns(0.5) or 0) / 1e6, 5)]},
        **marks,
    }
    spec = strip_spec(min(job.durations_ns) / 1e6, max(job.durations_ns) / 1e6, marks)
    figure = Figure(
        name="strip",
        caption=_caption(job, lasting_change(job.used), _episode(context)),
        panels=[Panel(spec, data, "Duration of each iteration over the run.")],
        table=Table.of(job.iterations, _COLUMNS, context.limits.table_rows),
        queries=["iterations"],
        notes=_notes(job, per_column),
    )
    return Section([figure])


def _state(iteration: Iteration) -> str:
    return "warm-up" if iteration.is_warmup else "partial" if iteration.is_partial else "used"


def _columns(iterations: Sequence[Iteration], per_column: int) -> Dataset:
    groups = [iterations[first : first + per_column] for first in range(0, len(iterations), per_column)]
    durations = [[iteration.duration_ns / 1e6 for iteration in group] for group in groups]
    return {
        "from": [group[0].number - 0.4 for group in groups],
        "to": [group[-1].number + 0.4 for group in groups],
        "label": [_label(group) for group in groups],
        "state": [_state(group[0]) for group in groups],
        "duration_ms": [round(median(values), 5) for values in durations],
        "low_ms": [round(min(values), 5) for values in durations],
        "high_ms": [round(max(values), 5) for values in durations],
    }


def _label(group: Sequence[Iteration]) -> str:
    return span(group[0].number, group[-1].number)


def _marks(job: JobOverview) -> dict[str, Dataset]:
    """Words at the median and the worst iteration, and a line where the run changed.

    The median's word stands below its bar, or above where the dashed line would run through it. Of two iterations
    neither is the median.
    """
    middle, worst = median_iteration(job.used), worst_iteration(job.used)
    marks: dict[str, Dataset] = {"above": _words({"worst": worst})}
    if middle != worst and len(job.used) >= thresholds.LEAST_ITERATIONS:
        line_ms = (job.quantile_ns(0.5) or 0) / 1e6
        if is_crossed(middle.duration_ns / 1e6, line_ms, _domain(job)):
            marks["above"] = _words({"worst": worst, "median": middle})
        else:
            marks["below"] = _words({"median": middle})
    if found := lasting_change(job.used):
        marks["change"] = {"at": [found.first.number - 0.5]}
    return marks


def _domain(job: JobOverview) -> list[float]:
    return strip_domain(min(job.durations_ns) / 1e6, max(job.durations_ns) / 1e6)


def _words(marked: Mapping[str, Iteration]) -> Dataset:
    return {
        "at": [iteration.number for iteration in marked.values()],
        "duration_ms": [round(iteration.duration_ns / 1e6, 5) for iteration in marked.values()],
        "label": list(marked),
    }


def _episode(context: Context) -> str:
    """How long the iterations of the verdict's episode take, and the others; empty where it is none."""
    leading, job = context.diagnosis.leading, context.job
    if leading is None or leading.pattern != "episode":
        return ""
    first, last = leading.first_iteration or 0, leading.last_iteration or 0
    inside = [one.duration_ns for one in job.used if first <= one.number <= last]
    outside = [one.duration_ns for one in job.used if not first <= one.number <= last]
    if not inside or not outside:
        return ""
    within, beside = fmean(inside), fmean(outside)
    size = f"{duration(within)} instead of {duration(beside)} ({change(within / beside)})"
    return f"Iterations {span(first, last)} take {size}."


def _caption(job: JobOverview, found: LastingChange | None, episode: str) -> str:
    middle_ns, slow_ns = job.quantile_ns(0.5), job.quantile_ns(0.95)
    if len(job.used) < thresholds.LEAST_ITERATIONS:
        return f"Only {plural(len(job.used), 'iteration')} can be used; the mean is {duration(job.mean_ns)}."
    text = f"Half of the iterations take less than {duration(middle_ns)}, 95 % less than {duration(slow_ns)}"
    if len(job.used) < thresholds.LEAST_ITERATIONS_OF_A_TAIL:
        ends = duration_range(job.quantile_ns(0.0), job.quantile_ns(1.0))
        text = f"The {len(job.used)} iterations take {ends}, half of them less than {duration(middle_ns)}"
    text += f"; they vary by {percent(job.variation)}."
    if found is None:
        return f"{text} {episode or 'No lasting change exceeds the scatter.'}"
    before, after = duration(found.before_ns), duration(found.after_ns)
    size = change(found.after_ns / found.before_ns)
    return f"{text} From iteration {found.first.number} on they take {after} instead of {before} ({size})."


def _notes(job: JobOverview, per_column: int) -> list[str]:
    starts_at_zero = _domain(job)[0] == 0
    cut = "" if starts_at_zero else "The time axis does not start at zero. "
    notes = [f"{cut}The horizontal dashed line is the median."]
    if lasting_change(job.used):
        notes.append("The vertical line marks the change.")
    left_out = len(job.iterations) - len(job.used)
    if per_column > 1:
        notes.append(f"{per_column} iterations share a column: the line is their median, the box their range.")
    elif left_out:
        pale = plural(left_out, "iteration")
        notes.append(f"Pale: {pale} that were not judged and count in no statistics; clipped where off the scale.")
    return notes


def _summarise(context: Context) -> dict[str, object]:
    job = context.job
    return {
        "iterations": {
            "used": len(job.used),
            "all": len(job.iterations),
            "mean_ns": whole(job.mean_ns),
            **{f"p{percentile}_ns": whole(job.quantile_ns(percentile / 100)) for percentile in (50, 95, 99)},
            "variation": share(job.variation),
        }
    }


_MOST_COLUMNS = 600
_COLUMNS = (
    number("iteration", lambda one: LinkedText(count(one.number), place_link(one.number))),
    number("duration", lambda one: duration(one.duration_ns)),
    TableColumn("state", _state),
)

SECTION = Plugin(21, "Iteration time over the run", "", _build, _summarise)
