"""What the first screen is made of. In: nothing. Out: plain data that the templates draw, without a script.

Blocks of one kind with those of `blocks.py`, which lists them all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from traceforge.report.table import Table


@dataclass(frozen=True, slots=True)
class Advice:
    """Something to do next; `command` is what does it, to be copied, empty where no command does."""

    text: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class VerdictPanel:
    """The answer, in words.

    Attributes:
        state: `finding`, `small_finding`, `nothing_significant`, `unsure` or `cannot_be_known`.
        label: the state in a few words.
        places: where, when and in which operation, a few words each.
        bound: what bounds the job, whatever was found; empty where that is not known.
        steps: what to do next.
        since: what changed since the baseline; empty where none was given.
        further: where the whole evidence stands; empty where this is all of it.
        moment: address in the timeline of what it states; empty where there is none.
        is_comparable: whether there are iterations without it, to compare with.
    """

    template: ClassVar[str] = "verdict"
    state: str
    label: str
    headline: str
    explanation: str
    steps: Sequence[Advice]
    places: Sequence[str] = ()
    bound: str = ""
    since: str = ""
    further: str = ""
    moment: str = ""
    is_comparable: bool = False
    queries: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class StripBar:
    """An iteration, or several, of a strip: the heights of its parts in per cent of the strip, from the ground up.

    Attributes:
        parts: swatch, shade (1 full to 4 pale), and height.
        href: what it opens; empty where it opens nothing.
    """

    title: str
    parts: Sequence[tuple[str, int, float]]
    href: str = ""


@dataclass(frozen=True, slots=True)
class BarStrip:
    """Bars side by side, drawn without a script; `top` is what the full height means, `ends` the first and last."""

    template: ClassVar[str] = "bar_strip"
    name: str
    caption: str
    bars: Sequence[StripBar]
    legend: Sequence[tuple[str, int, str]]
    top: str
    ends: tuple[str, str]
    table: Table
    notes: Sequence[str] = ()
    queries: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Assurances:
    """Short texts side by side, each under a word; `target` is where more stands."""

    template: ClassVar[str] = "assurances"
    entries: Sequence[tuple[str, str]]
    target: str
    link: str
    queries: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ListedBar:
    """A row of a list of bars: `length` in per cent of the longest; `share` may be empty."""

    label: str
    size: str
    share: str
    length: float
    swatch: str


@dataclass(frozen=True, slots=True)
class BarList:
    """Bars below one another, the longest first."""

    title: str
    bars: Sequence[ListedBar]
    queries: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class BarLists:
    """Lists of bars side by side, drawn without a script."""

    template: ClassVar[str] = "bar_lists"
    lists: Sequence[BarList]
