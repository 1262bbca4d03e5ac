"""What a section is made of. In: nothing. Out: plain data that the templates draw; no HTML, no numbers to round.

Each kind of block is drawn by the template of its own name, `templates/blocks/<template>.html.j2`. All texts are
escaped there. A section that cannot be built says with `Missing` what is absent and how to record it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from traceforge.report.answer_blocks import Assurances, BarLists, BarStrip, VerdictPanel
from traceforge.report.embedded_data import Dataset
from traceforge.report.table import Table as Table  # noqa: PLC0414  # sections take all from here
from traceforge.report.table import TableColumn as TableColumn  # noqa: PLC0414
from traceforge.report.table import number as number  # noqa: PLC0414


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    template: ClassVar[str] = "paragraph"
    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """An aside: something was thinned, guessed or left out."""

    template: ClassVar[str] = "note"
    text: str


@dataclass(frozen=True, slots=True)
class Subheading:
    """A heading inside a section."""

    template: ClassVar[str] = "subheading"
    text: str


@dataclass(frozen=True, slots=True)
class Tile:
    """A number with its meaning. `state` is `good`, `caution`, `bad` or `plain`; it is said in words as well."""

    value: str
    label: str
    detail: str = ""
    state: str = "plain"


@dataclass(frozen=True, slots=True)
class Tiles:
    """Numbers side by side; `queries` are the names of the queries behind them."""

    template: ClassVar[str] = "tiles"
    tiles: Sequence[Tile]
    queries: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Card:
    """One finding.

    Attributes:
        name: identifier on the page; empty where nothing links to it.
        moment: address of its moment in the timeline; empty where there is none.
        kicker: what kind of finding it is.
        confidence: `high`, `medium`, `low`, or an empty text.
        facts: pairs of label and value.
        mode: the failure mode, which colours the card's edge.
        is_folded: shown as one line until it is opened, as those of low confidence are.
    """

    title: str
    kicker: str
    text: str
    confidence: str
    facts: Sequence[tuple[str, str]]
    evidence_for: Sequence[str]
    evidence_against: Sequence[str]
    next_step: str
    mode: str = ""
    name: str = ""
    moment: str = ""
    is_folded: bool = False


@dataclass(frozen=True, slots=True)
class Cards:
    """Findings, one below the other; `queries` are the names of the queries behind them."""

    template: ClassVar[str] = "cards"
    cards: Sequence[Card]
    queries: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Brief:
    """A finding in one line, with a link to its evidence.

    Attributes:
        target: identifier of the element that holds the evidence; empty where it is not on this page.
        moment: address of its moment in the timeline; empty where there is none.
    """

    text: str
    cost: str
    confidence: str
    mode: str
    target: str = ""
    moment: str = ""


@dataclass(frozen=True, slots=True)
class Briefs:
    """Findings in one line each."""

    template: ClassVar[str] = "briefs"
    title: str
    briefs: Sequence[Brief]
    queries: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart: a Vega-Lite specification and the tables it names, by column.

    Attributes:
        description: what the chart shows, for those who hear the page.
        title: a short line above the chart, where a figure has several.
        weight: its share of the figure's width, `wide` or `narrow`.
    """

    spec: Mapping[str, object]
    data: Mapping[str, Dataset]
    description: str
    title: str = ""
    weight: str = "wide"


@dataclass(frozen=True, slots=True)
class DrillDown:
    """What a cell of a figure's first panel opens: an iteration and a rank of the timeline.

    Attributes:
        table, value: the table of the cells, and the column that is read out on a keyboard, ms.
        rows, columns: names of the ranks and iterations of the cells, in order.
        ranks, iterations: what a row and a column open.
    """

    table: str
    value: str
    rows: Sequence[str]
    columns: Sequence[str]
    ranks: Sequence[int]
    iterations: Sequence[int]


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A colour and what it means; `swatch` is a phase, a mode or a step of the diverging scale."""

    swatch: str
    label: str


@dataclass(frozen=True, slots=True)
class Figure:
    """Charts with the finding in words above and the numbers below.

    Attributes:
        name: identifier on the page.
        caption: the finding in words, computed from the data.
        queries: names of the queries behind it, as executed.
        drill_down: what its cells open; None where they open nothing.
    """

    template: ClassVar[str] = "figure"
    name: str
    caption: str
    panels: Sequence[Panel]
    table: Table
    queries: Sequence[str]
    legend: Sequence[LegendEntry] = ()
    notes: Sequence[str] = ()
    drill_down: DrillDown | None = None


@dataclass(frozen=True, slots=True)
class TimelineFigure:
    """The timeline of the whole run, which the page's script draws.

    Attributes:
        data: what it draws (`timeline.payload`).
        legend: phases that occur, in their order.
        iterations, ranks: what can be chosen: value and text of each.
        lanes: by what ranks can be grouped beside hosts: value and text of each.
        shown: the iteration that the caption speaks of; None where it speaks of none.
        notes: what was thinned or left out.
    """

    template: ClassVar[str] = "timeline"
    name: str
    caption: str
    shown: int | None
    data: Mapping[str, object]
    table: Table
    queries: Sequence[str]
    legend: Sequence[LegendEntry]
    iterations: Sequence[tuple[int, str]]
    ranks: Sequence[tuple[int, str]]
    lanes: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class TableFigure:
    """A table that is itself the figure."""

    template: ClassVar[str] = "table_figure"
    name: str
    caption: str
    table: Table
    queries: Sequence[str]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Code:
    """Text of a program behind a fold; `name` is its identifier on the page."""

    template: ClassVar[str] = "code"
    name: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Definitions:
    """Words and what they mean."""

    template: ClassVar[str] = "definitions"
    entries: Sequence[tuple[str, str]]


Block = (
    Paragraph
    | Note
    | Subheading
    | Table
    | Tiles
    | Cards
    | Briefs
    | VerdictPanel
    | BarStrip
    | BarLists
    | Assurances
    | Figure
    | TimelineFigure
    | TableFigure
    | Code
    | Definitions
)


@dataclass(frozen=True, slots=True)
class Section:
    """A built section; `count` is how many of its kind were found, shown beside its tab, None for no number."""

    blocks: Sequence[Block]
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """A section that cannot be built.

    Attributes:
        why: what is absent, one sentence or two.
        how: the setting that would record it.
    """

    why: str
    how: str
    blocks: Sequence[Block] = field(default=())
