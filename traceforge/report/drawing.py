"""Figures and findings outside of the page, for notebooks. In: a context. Out: HTML fragments that execute nothing.

A figure becomes a picture: SVG made by vl_convert without a browser, embedded as an image, in which no script runs
whatever its texts say. Texts are escaped by the templates' own engine. Colours are those of the light page, hatches
plain. Not handled: interaction; the report has it.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from traceforge.errors import UsageError
from traceforge.report.blocks import Block, Figure, Missing, Panel
from traceforge.report.charts.parts import theme, unvalidated
from traceforge.report.context import Context
from traceforge.report.diagnosis import Diagnosis, Finding
from traceforge.report.formatting import percent, spaced
from traceforge.report.palette import LIGHT
from traceforge.report.sections import section_plugins

_WIDTH = {"wide": 760, "narrow": 300}
_COLOUR = re.compile(r"var\(--([\w-]+)\)|url\(#hatch-([\w-]+)\)")


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure of the report: its finding in words and its pictures as SVG.

    A notebook shows it by `_repr_html_`; `svgs` are texts to be written to files.
    """

    name: str
    caption: str
    svgs: Sequence[str] = field(repr=False)

    def _repr_html_(self) -> str:
        pictures = Markup("").join(
            Markup('<img alt="{}" src="data:image/svg+xml;base64,{}" style="background:#fff">').format(
                self.caption, base64.b64encode(svg.encode()).decode("ascii")
            )
            for svg in self.svgs
        )
        return str(Markup("<figure><figcaption>{}</figcaption>{}</figure>").format(self.caption, pictures))


def chart_names(context: Context) -> list[str]:
    """Names of the figures that this run's report has."""
    return list(_figures(context))


def draw(context: Context, name: str) -> Chart:
    """A figure of the report by name.

    Raises:
        UsageError: the report of this run has no such figure; the hint lists those it has.
    """
    figures = _figures(context)
    if name not in figures:
        raise UsageError(f"there is no chart `{name}` of this run", hint=f"charts: {', '.join(figures) or 'none'}")
    figure = figures[name]
    return Chart(name, figure.caption, [_svg(panel) for panel in figure.panels])


def _figures(context: Context) -> dict[str, Figure]:
    with unvalidated():
        built = [plugin.build(context) for name, plugin in section_plugins().items() if name != "appendix"]
    blocks: list[Block] = [block for part in built if part and not isinstance(part, Missing) for block in part.blocks]
    return {block.name: block for block in blocks if isinstance(block, Figure)}


def _svg(panel: Panel) -> str:
    import altair
    import vl_convert

    spec = _coloured({**panel.spec, "config": theme()})
    if spec.get("width") == "container":
        spec["width"] = _WIDTH[panel.weight]
    spec["datasets"] = {
        name: [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        for name, table in panel.data.items()
    }
    major, minor = altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2]
    return str(vl_convert.vegalite_to_svg(json.loads(json.dumps(spec)), vl_version=f"{major}.{minor}"))


def _coloured(value: Any) -> Any:
    """A specification with the light page's colours in the place of its variables."""
    if isinstance(value, Mapping):
        return {key: _coloured(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_coloured(part) for part in value]
    if isinstance(value, str):
        return _COLOUR.sub(lambda match: LIGHT.get(match[1] or match[2], "#888888"), value)
    return value


def verdict_html(diagnosis: Diagnosis) -> str:
    """The verdict as a fragment."""
    if diagnosis.verdict is None:
        return "<p><strong>Nothing can be said about this run.</strong></p>"
    return diagnosis.verdict._repr_html_()


def findings_html(diagnosis: Diagnosis) -> str:
    """The findings as a table; a sentence where there are none."""
    if not diagnosis.findings:
        return "<p>No finding.</p>"
    head = ("finding", "concerns", "lost per iteration", "share", "confidence", "next")
    rows = [
        (finding.summary, _who(finding), finding.cost, percent(finding.share), finding.confidence, finding.next_step)
        for finding in diagnosis.findings
    ]
    return table_html(head, rows)


def _who(finding: Finding) -> str:
    return "the whole job" if finding.subject_kind == "job" else f"{spaced(finding.subject_kind)} {finding.subject}"


def table_html(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts, each escaped."""
    titles = Markup("").join(Markup("<th>{}</th>").format(title) for title in head)
    lines = Markup("").join(
        Markup("<tr>{}</tr>").format(Markup("").join(Markup("<td>{}</td>").format(cell) for cell in row))
        for row in rows
    )
    return str(Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(titles, lines))
