"""The page, put together. In: a store and a run. Out: `Report`. Writes no file and reads no clock.

Sections are plug-ins; the page asks each for blocks and hands those to the templates, which escape every text. The
same tables give the same bytes. Should a page exceed the cap, it is built again with tighter limits, and says so.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from traceforge.compare import Comparison
from traceforge.redaction import Redaction
from traceforge.report.blocks import DrillDown, Figure, TimelineFigure
from traceforge.report.bundle import content_security_policy, page_script, page_style, timeline_script, vega_script
from traceforge.report.charts.parts import theme, unvalidated
from traceforge.report.context import Context, Limits, Query, query_anchor
from traceforge.report.cost import Price
from traceforge.report.embedded_data import compressed_json, embedded_json, packed
from traceforge.report.fragment import own_names, scoped_style
from traceforge.report.glossary import meaning
from traceforge.report.layout import Layout, Placed, laid_out
from traceforge.report.line_breaks import breakable, options_apart, unbroken
from traceforge.report.markdown import markdown
from traceforge.report.page_header import PageHeader, page_header
from traceforge.report.palette import MODES
from traceforge.report.sections import section_plugins
from traceforge.report.summary import summarise
from traceforge.report.terminal import verdict_lines
from traceforge.store.database import Store

if TYPE_CHECKING:
    from jinja2 import Environment

_LARGEST_PAGE_BYTES = 5_000_000
_LIMITS = (
    Limits(),
    Limits(4_000, heat_rows=60, heat_columns=128, table_rows=60, bars=64, pictures=24, runs=60_000),
    Limits(1_000, heat_rows=24, heat_columns=40, table_rows=20, bars=24, pictures=6, runs=4_000),
)


@dataclass(frozen=True, slots=True)
class Report:
    """A finished report.

    Attributes:
        html: the page, one file that opens from disk.
        summary: what a machine compares between runs; JSON values only, numbers rounded.
        verdict_lines: the verdict as at most 15 lines of plain text.
        markdown: the first screen as Markdown.
        verdict_state: `finding`, `nothing_significant`, `unsure` or `cannot_be_known`.
    """

    html: str = field(repr=False)
    summary: dict[str, object] = field(repr=False)
    verdict_lines: list[str]
    verdict_state: str
    markdown: str = field(repr=False)


def build_report(
    store: Store,
    *,
    run_id: int,
    versions: Mapping[str, str],
    command: str | None,
    comparison: Comparison | None = None,
    price: Price | None = None,
    redaction: Redaction | None = None,
    as_fragment: bool = False,
) -> Report:
    """The report of a run.

    Args:
        store: the stages must have run; their tables may be empty.
        versions: what made it, by name, as the appendix shows it.
        command: the command that asked for it, or None.
        comparison: what changed since a baseline, shown in a section of its own; None where none was given.
        price: what a GPU costs; without it costs are in GPU-hours only.
        redaction: replaces the names of hosts, files, users and the job, in everything that is returned.
        as_fragment: return HTML for another page to hold: without head, scripts and charts, its style its own.

    Raises:
        UsageError: the store holds no such run.
    """
    report = None
    if redaction:
        command = redaction.text(command) if command else None
        comparison = _redacted(comparison, redaction) if comparison else None
    for limits in _LIMITS:
        context = Context(store, run_id, versions, command, limits, price, redaction, comparison=comparison)
        html, text = _render(context, as_fragment=as_fragment)
        report = Report(html, summarise(context), verdict_lines(context), context.diagnosis.state, text)
        if len(report.html.encode("utf-8")) <= _LARGEST_PAGE_BYTES:
            break
    assert report is not None  # noqa: S101  # there is at least one entry in _LIMITS
    return report


def build_summary(store: Store, *, run_id: int) -> dict[str, object]:
    """The summary of a run alone, as the report of it has it."""
    return summarise(Context(store, run_id, {}, None))


def _redacted(comparison: Comparison, redaction: Redaction) -> Comparison:
    """The comparison without the names of its runs, and of hosts that findings of either name."""
    before, after = (
        replace(job, run_name=redaction.name("job", job.run_name)) for job in (comparison.before, comparison.after)
    )
    for one in comparison.findings:
        if one.subject_kind == "host":
            redaction.name("host", one.subject)  # the baseline may have run on hosts that this run has not
    findings = [
        replace(one, subject=redaction.text(one.subject), summary=redaction.text(one.summary))
        for one in comparison.findings
    ]
    return replace(comparison, before=before, after=after, findings=findings)


def _render(context: Context, *, as_fragment: bool) -> tuple[str, str]:
    """The page, or its fragment, and the first screen as Markdown."""
    with unvalidated():
        built = [(name, plugin, plugin.build(context)) for name, plugin in section_plugins().items()]
    layout = laid_out([Placed(name, plugin, content) for name, plugin, content in built if content is not None])
    header = page_header(context, is_thinned=context.limits != _LIMITS[0])
    text = markdown(header, layout)
    shown = _shown(header, layout, context.executed.values(), is_static=as_fragment)
    return (_fragment(shown) if as_fragment else _page(shown, layout, text)), text


def _fragment(shown: Mapping[str, object]) -> str:
    style = Markup(scoped_style(page_style()))  # noqa: S704  # our own file
    return own_names(_environment().get_template("fragment.html.j2").render(**shown, embedded={}, style=style))


def other_page(header: PageHeader, layout: Layout, queries: Sequence[Query]) -> tuple[str, str]:
    """A page of the report's look that is not about one run, and its first screen as Markdown.

    Args:
        queries: what the appendix shows; blocks name them.
    """
    text = markdown(header, layout)
    return _page(_shown(header, layout, queries, is_static=False), layout, text), text


def _shown(header: PageHeader, layout: Layout, queries: Iterable[Query], *, is_static: bool) -> dict[str, object]:
    """What templates show."""
    return {
        "header": header,
        "first": layout.first,
        "tabs": layout.tabs,
        "absent": layout.absent,
        "query_titles": {query.name: query.title for query in queries},
        "is_static": is_static,
    }


def _page(shown: Mapping[str, object], layout: Layout, text: str) -> str:
    blocks = [block for part in layout.present for block in part.content.blocks]
    figures = [block for block in blocks if isinstance(block, Figure)]
    timelines = [block for block in blocks if isinstance(block, TimelineFigure)]
    scripts = [
        *([vega_script()] if figures else []), page_script(), *([timeline_script()] if timelines else [])
    ]  # fmt: skip
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            **shown,
            embedded={figure.name: embedded_json(_figure_data(figure)) for figure in figures}
            | {timeline.name: compressed_json(timeline.data) for timeline in timelines},
            theme=embedded_json(theme()),
            markdown=embedded_json(text),
            policy=Markup(content_security_policy(scripts, page_style())),  # noqa: S704  # hashes and keywords only
            style=Markup(page_style()),  # noqa: S704  # our own file
            scripts=[Markup(script) for script in scripts],  # noqa: S704  # checked for what would end the element
        )
    )


def _figure_data(figure: Figure) -> dict[str, object]:
    """What the page's script needs to draw a figure."""
    return {
        "panels": [
            {
                "spec": {**panel.spec, "description": panel.description},
                "data": {name: packed(data) for name, data in panel.data.items()},
            }
            for panel in figure.panels
        ],
        "drill_down": _drill_down_data(figure.drill_down) if figure.drill_down else None,
    }


def _drill_down_data(drill_down: DrillDown) -> dict[str, object]:
    return {name: getattr(drill_down, name) for name in ("table", "value", "rows", "columns", "ranks", "iterations")}


def _exact(value: float) -> str:
    """A number for machines: whole, or to twelve digits."""
    return str(value) if isinstance(value, int) else f"{value:.12g}"


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("traceforge.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["anchor"] = query_anchor
    environment.filters["meaning"] = meaning
    environment.filters["unbroken"] = unbroken
    environment.filters["breakable"] = breakable
    environment.filters["options_apart"] = options_apart
    environment.filters["number"] = _exact
    environment.globals["modes"] = MODES
    return environment
