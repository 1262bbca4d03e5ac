"""The page of a fleet. In: `Fleet`. Out: one HTML file of the report's look, and its first screen as Markdown.

Idea: the answer first (who is guilty too often, what got slower), then trends, hosts and NICs, lost GPU-hours,
verdicts, and every query as executed. What cannot be judged yet is said. Not handled: single runs, which have reports
of their own.
"""

from collections.abc import Sequence
from statistics import median

from traceforge.history.fleet import WATCHED, ChangeOfSeries, Fleet, Series, fleet_query
from traceforge.history.fleet_text import (
    answer,
    answer_state,
    change_text,
    metric_name,
    moved,
    next_steps,
    suspect_text,
    value_text,
)
from traceforge.history.steps import FEWEST_RUNS
from traceforge.history.suspects import Suspect
from traceforge.report.answer_blocks import VerdictPanel
from traceforge.report.blocks import (
    Block,
    Code,
    Figure,
    Missing,
    Note,
    Panel,
    Paragraph,
    Section,
    Subheading,
    Table,
    TableColumn,
    Tile,
    Tiles,
    number,
)
from traceforge.report.bundle import asset
from traceforge.report.charts.parts import unvalidated
from traceforge.report.charts.trend import TrendLevel, TrendPoint, trend_spec, trend_tables
from traceforge.report.context import Query, query_anchor
from traceforge.report.cost import Price
from traceforge.report.formatting import (
    capital,
    clean,
    count,
    gpu_hours,
    listed,
    mode_name,
    money,
    percent,
    plural,
    probability,
    rank_list,
    spaced,
)
from traceforge.report.layout import Placed, laid_out
from traceforge.report.page import other_page
from traceforge.report.page_header import PageHeader
from traceforge.report.plugin import Plugin

_MOST_FIGURES = 12
_MOST_POINTS = 2_000
_MOST_ROWS = 200
_NAME_COLUMNS = 80
_QUERIES = ("runs", "points", "participation", "verdict_mix", "lost_gpu_hours")
_LABELS = {
    "finding": "Recurring",
    "nothing_significant": "Nothing stands out",
    "unsure": "Not all can be judged",
    "cannot_be_known": "Cannot be known yet",
}


def fleet_page(fleet: Fleet, name: str, price: Price | None = None) -> tuple[str, str]:
    """The page, and its first screen as Markdown.

    Args:
        name: of the history, for the heading.
        price: what a GPU costs an hour; without it losses are in GPU-hours alone.
    """
    with unvalidated():
        sections = [
            _placed("verdict", 1, "Verdict", "Verdict", Section(_first_screen(fleet))),
            _placed("trends", 2, "Trends and lasting changes", "Trends", _trends(fleet)),
            _placed("hosts", 3, "Hosts and NICs that are accused", "Hosts and NICs", _suspects(fleet)),
            _placed("losses", 4, "GPU-hours lost, by cause", "GPU-hours", _losses(fleet, price)),
            _placed("verdicts", 5, "Verdicts", "Verdicts", _verdicts(fleet)),
            _placed("queries", 6, "How this was made", "SQL", _appendix()),
        ]
    header = PageHeader(clean(name), _facts(fleet), "")
    return other_page(header, laid_out(sections), _queries())


def _placed(name: str, place: int, title: str, short_title: str, content: Section | Missing) -> Placed:
    return Placed(name, Plugin(place, title, short_title, lambda _: content), content)


def _queries() -> list[Query]:
    texts = {name: fleet_query(name) for name in _QUERIES}
    return [Query(name, text.splitlines()[0].removeprefix("--").strip(), text) for name, text in texts.items()]


def _facts(fleet: Fleet) -> list[tuple[str, str]]:
    watched = [series for series in fleet.series if series.metric == WATCHED[0]]
    hosts = sum(one.kind == "host" for one in fleet.suspects)
    return [
        ("Runs", count(fleet.runs)),
        ("Jobs", count(fleet.jobs)),
        ("Hosts", count(hosts) if hosts else "none named in the traces"),
        ("Series", f"{count(len(watched))}, {count(sum(one.is_judged for one in watched))} long enough to be judged"),
    ]


def _first_screen(fleet: Fleet) -> list[Block]:
    headline, explanation = answer(fleet)
    state = answer_state(fleet)
    panel = VerdictPanel(state, _LABELS[state], headline, explanation, next_steps(fleet))
    lost = sum(row["lost_gpu_hours_per_day"] for row in fleet.losses)
    recent = [change for _, change in fleet.regressions if change.is_recent]
    judged = sum(one.is_judged for one in fleet.series)
    long = len({(one.job, one.title) for one in fleet.series if one.is_judged})
    tiles = [
        Tile(
            count(len(fleet.named)) if fleet.suspects else "—",
            "Hosts and NICs that stand out",
            f"of {count(len(fleet.suspects))}, accused in more runs than chance allows"
            if fleet.suspects
            else "no run names its hosts",
        ),
        Tile(
            count(len(recent)) if judged else "—",
            "New regressions",
            f"in {plural(judged, 'metric')} of {plural(long, 'series', 'series')}; "
            f"{count(len(fleet.regressions))} of any age"
            if judged
            else f"not judged: no series has {FEWEST_RUNS} runs",
        ),
        Tile(
            gpu_hours(lost) if fleet.losses else "—",
            "GPU-hours lost per day",
            "if each job ran all day as its runs did on average" if fleet.losses else "no run has devices",
        ),
        Tile(count(fleet.runs), "Runs", f"of {plural(fleet.jobs, 'job')}"),
    ]
    return [panel, Tiles(tiles, list(_QUERIES))]


def _trends(fleet: Fleet) -> Section | Missing:
    if not fleet.series:
        return Missing("No run has a judged iteration.", "Record ten or more iterations of each job.")
    changed = [(series, change) for series in fleet.series for change in series.changes]
    blocks: list[Block] = [
        Paragraph(
            "A change is lasting where several runs in a row lie beyond what was usual, on one side. Runs are compared "
            "within a series: one job, as many ranks, the same devices and layout. Below "
            f"{FEWEST_RUNS} runs no change can show."
        )
    ]
    if changed:
        blocks += [Subheading("Changes"), Table.of(changed, _CHANGE_COLUMNS, _MOST_ROWS, queries=["points"])]
    watched = [series for series in fleet.series if series.metric == WATCHED[0] or series.changes]
    shown = sorted(
        (series for series in watched if len(series.points) > 1),  # one point is no trend
        key=lambda series: (not series.changes, series.metric != WATCHED[0], -len(series.points)),
    )
    blocks += [_figure(number, series) for number, series in enumerate(shown[:_MOST_FIGURES])]
    if len(shown) > _MOST_FIGURES:
        blocks.append(Note(f"{count(len(shown) - _MOST_FIGURES)} more series are not drawn; the query returns all."))
    if alone := len(watched) - len(shown):
        blocks.append(Note(f"{plural(alone, 'series', 'series')} of one run each: no trend to draw."))
    return Section(blocks, len(changed) or None)


def _figure(place: int, series: Series) -> Figure:
    shown = series.points[-_MOST_POINTS:]
    left_out = len(series.points) - len(shown)
    is_share = series.metric.endswith("_share")
    scale = 100 if is_share else 1
    points = [
        TrendPoint(
            left_out + at,
            clean(point.run_name, _NAME_COLUMNS),
            _rounded(scale * point.value),
            None if point.low is None else _rounded(scale * point.low),
            None if point.high is None else _rounded(scale * point.high),
        )
        for at, point in enumerate(shown, start=1)
    ]
    levels = [level for level in _levels(series, scale) if level.last > left_out]
    title = f"{metric_name(series.metric)}, {'%' if is_share else 'ms'}"
    caption = _caption(series)
    panel = Panel(trend_spec(title, levels), trend_tables(points, levels), caption)
    return Figure(
        name=f"trend-{place}",
        caption=caption,
        panels=[panel],
        table=Table.of(list(series.points), _point_columns(series), _MOST_ROWS),
        queries=["points"],
        notes=[f"The first {count(left_out)} runs are not drawn."] if left_out else [],
    )


def _caption(series: Series) -> str:
    lead = f"{capital(metric_name(series.metric))} of {clean(series.title)}: "
    if series.changes:
        return lead + change_text(series.metric, series.changes[-1])
    if not series.is_judged:
        return lead + f"{plural(len(series.points), 'run')}, too few to tell a lasting change (at least {FEWEST_RUNS})"
    sight = "" if series.sight is None else f"; one of {value_text(series.metric, series.sight)} would have shown"
    return lead + f"no lasting change in {plural(len(series.points), 'run')}{sight}"


def _levels(series: Series, scale: int) -> list[TrendLevel]:
    starts = [0, *(change.step.place for change in series.changes)]
    ends = [*starts[1:], len(series.points)]
    words = ["", *(moved(series.metric, change) for change in series.changes)]
    return [
        TrendLevel(start + 1, end, _rounded(scale * median(point.value for point in series.points[start:end])), word)
        for start, end, word in zip(starts, ends, words, strict=True)
    ]


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _point_columns(series: Series) -> tuple[TableColumn, ...]:
    return (
        TableColumn("run", lambda point: clean(point.run_name, _NAME_COLUMNS)),
        TableColumn("commit", lambda point: clean(point.commit_id or "—", _NAME_COLUMNS), code=True),
        number("value", lambda point: value_text(series.metric, point.value)),
        number("low", lambda point: "—" if point.low is None else value_text(series.metric, point.low)),
        number("high", lambda point: "—" if point.high is None else value_text(series.metric, point.high)),
    )


def _hosts(change: ChangeOfSeries) -> str:
    came = f"came: {listed([clean(one, 40) for one in change.hosts_came], 3)}" if change.hosts_came else ""
    went = f"went: {listed([clean(one, 40) for one in change.hosts_went], 3)}" if change.hosts_went else ""
    return "; ".join(filter(None, [came, went])) or "the same"


def _commit(change: ChangeOfSeries) -> str:
    before, after = change.before.commit_id, change.first.commit_id
    if before is None or after is None:
        return "—"
    return clean(after, 40) if before == after else f"{clean(before, 40)} → {clean(after, 40)}"


_CHANGE_COLUMNS = (
    TableColumn("series", lambda one: clean(one[0].title, _NAME_COLUMNS), wide=True),
    TableColumn("metric", lambda one: metric_name(one[0].metric)),
    number("change", lambda one: moved(one[0].metric, one[1])),
    TableColumn("since run", lambda one: clean(one[1].first.run_name, _NAME_COLUMNS)),
    TableColumn("certain with", lambda one: clean(one[1].found.run_name, _NAME_COLUMNS)),
    TableColumn("commits", lambda one: _commit(one[1]), code=True),
    TableColumn("hosts", lambda one: _hosts(one[1]), wide=True),
)


def _suspects(fleet: Fleet) -> Section | Missing:
    if not fleet.suspects:
        why = "No trace names a host."
        return Missing(why, "Record with PyTorch 2.13 or later, or keep the host in the names of the files.")
    accused = [one for one in fleet.suspects if one.guilty_jobs]
    intro = (
        "If hosts were interchangeable, a run that accuses one of its eight hosts would accuse each with the chance "
        "1/8. The p-value says how likely a host is accused in so many of its runs by such chance alone (exact); "
        "corrected, it says so for all hosts and NICs that were looked at (Holm). Runs of one --job-id count as one. "
        "Findings of medium or high confidence accuse; ranks that do more work than their peers accuse no host."
    )
    blocks: list[Block] = [Paragraph(intro)]
    blocks += [Paragraph(suspect_text(one)) for one in fleet.named]
    if fleet.hostless:
        blocks.append(Note(f"{plural(fleet.hostless, 'run')} without names of hosts are not counted."))
    if accused:
        blocks.append(Table.of(accused, _SUSPECT_COLUMNS, _MOST_ROWS, queries=["participation"]))
    else:
        blocks.append(Paragraph(f"None of {plural(len(fleet.suspects), 'host or NIC', 'hosts and NICs')} was accused."))
    return Section(blocks, len(fleet.named) or None)


def _guilty_share(one: Suspect) -> str:
    return f"{count(len(one.guilty_jobs))} of {count(one.jobs)}"


_SUSPECT_COLUMNS = (
    TableColumn("kind", lambda one: one.kind.upper() if one.kind == "nic" else one.kind),
    TableColumn("name", lambda one: clean(one.name, _NAME_COLUMNS), wide=True),
    number("accused in runs", _guilty_share),
    number("by chance", lambda one: f"{one.expected:.2f}"),
    number("p", lambda one: probability(one.p_value).removeprefix("p = ").removeprefix("p ")),
    number("p, corrected", lambda one: probability(one.corrected_p_value).removeprefix("p = ").removeprefix("p ")),
    TableColumn("stands out", lambda one: "yes" if one.is_named else "no"),
    TableColumn("always held ranks", lambda one: rank_list(one.always_ranks) if one.always_ranks else "—"),
)


def _losses(fleet: Fleet, price: Price | None) -> Section | Missing:
    if not fleet.losses:
        why = "No run recorded a device: hours of jobs without GPUs are no GPU-hours."
        return Missing(why, "Record ProfilerActivity.CUDA (or the device's own activity).")
    text = (
        "Time above each run's own reference, by who owns it; each rank is taken to be one GPU. A day is one of the "
        "job, at the mean pace of its runs: a trace of some seconds does not show whether it goes on like this. Hours "
        "in all are known only of runs that were added with --hours. Less than nothing was lost where work was faster "
        "than usual."
    )
    columns = [
        TableColumn("job", lambda row: clean(row["job"], _NAME_COLUMNS), wide=True),
        TableColumn("mode", lambda row: mode_name(row["mode"])),
        TableColumn("cause", lambda row: spaced(row["cause"])),
        number("runs", lambda row: count(row["runs"])),
        number("share of the iteration", lambda row: percent(row["share"])),
        number("GPU-hours a day", lambda row: gpu_hours(row["lost_gpu_hours_per_day"])),
        number("GPU-hours in all", _in_all),
    ]
    if price is not None:
        paid = price
        columns.append(
            number("a day", lambda row: money(paid.per_gpu_hour * row["lost_gpu_hours_per_day"], paid.currency))
        )
    return Section([Paragraph(text), Table.of(list(fleet.losses), columns, _MOST_ROWS, queries=["lost_gpu_hours"])])


def _in_all(row: dict[str, object]) -> str:
    if row["lost_gpu_hours"] is None:
        return "not known"
    known = f" (of {row['runs_with_hours']} runs)" if row["runs_with_hours"] != row["runs"] else ""
    return f"{gpu_hours(float(str(row['lost_gpu_hours'])))}{known}"


def _verdicts(fleet: Fleet) -> Section:
    return Section([Table.of(list(fleet.verdicts), _VERDICT_COLUMNS, _MOST_ROWS, queries=["verdict_mix"])])


_VERDICT_COLUMNS = (
    TableColumn("job", lambda row: clean(row["job"], _NAME_COLUMNS), wide=True),
    TableColumn("verdict", lambda row: spaced(row["verdict"])),
    TableColumn("confidence", lambda row: row["confidence"] or "—"),
    number("runs", lambda row: count(row["runs"])),
)


def _appendix() -> Section:
    codes: Sequence[Block] = [Code(query_anchor(query.name), query.title, query.sql) for query in _queries()]
    licences = Code("licences", "Software contained in this file", asset("licences.txt"))
    return Section([Subheading("Queries as executed"), *codes, Subheading("Licences"), licences])
