"""What a section is. In: nothing. Out: `Plugin`, the one object that a file of `sections/` exposes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from traceforge.report.blocks import Missing, Section
from traceforge.report.context import Context


@dataclass(frozen=True, slots=True)
class Plugin:
    """A section: one file in `traceforge/report/sections/` exposing `SECTION`.

    Attributes:
        place: where it stands on the page, ascending; sections of one place are in alphabetical order.
        title: its heading.
        short_title: the name of its tab; empty for one that stands on the tab of the section above it. The first
            section of all begins the first screen instead of a tab.
        build: reads tables, returns what to draw; None for a section that was not asked for.
        summarise: what it adds to the summary for machines, by key; JSON values only. None for nothing.
    """

    place: int
    title: str
    short_title: str
    build: Callable[[Context], Section | Missing | None]
    summarise: Callable[[Context], Mapping[str, object]] | None = None
