"""Where sections stand: first screen, a tab, or among what is not available. In: built sections. Out: `Layout`.

A section with a short title begins a tab; those without belong to the one above. The first begins the first screen.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from traceforge.report.blocks import Missing, Section
from traceforge.report.plugin import Plugin


@dataclass(frozen=True, slots=True)
class Placed:
    """A built section with its name and headings, as the template takes it."""

    name: str
    plugin: Plugin
    content: Section | Missing


@dataclass(frozen=True, slots=True)
class Tab:
    """Sections shown together; `count` is how many things of the first one's kind were found, None for no number."""

    title: str
    sections: Sequence[Placed]

    @property
    def count(self) -> int | None:
        """What stands beside the title."""
        content = self.sections[0].content
        return content.count if isinstance(content, Section) else None


@dataclass(frozen=True, slots=True)
class Layout:
    """The page: the first screen, the tabs in their order, and sections that could not be built."""

    first: Sequence[Placed]
    tabs: Sequence[Tab]
    absent: Sequence[Placed]

    @property
    def present(self) -> list[Placed]:
        """All sections that hold something, in the order of the page."""
        return [*self.first, *(section for tab in self.tabs for section in tab.sections)]


def laid_out(sections: Sequence[Placed]) -> Layout:
    """The layout of sections in the order of their places."""
    groups: list[tuple[str, list[Placed]]] = []
    absent = []
    for section in sections:
        if section.plugin.short_title or not groups:
            groups.append((section.plugin.short_title, []))
        if isinstance(section.content, Missing):
            absent.append(section)
        else:
            groups[-1][1].append(section)
    tabs = [Tab(title, members) for title, members in groups[1:] if members]
    return Layout(groups[0][1] if groups else [], tabs, absent)
