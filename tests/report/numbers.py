"""The numbers of a page with the SQL printed beside them. In: HTML. Out: rows of numbers, each with its queries.

Reads the page as a stranger would: no part of the report's own code is used. Numbers that stand in one row of a table,
one tile or one list of facts belong together; the links to queries that follow them name their SQL.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from html.parser import HTMLParser

_ROWS = {"tr", "dl"}
_UNITS_NS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
_UNITS_BYTES = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}


@dataclass(frozen=True)
class Number:
    """A number as shown, and the number it was rounded from."""

    shown: str
    value: float
    unit: str


@dataclass
class Row:
    """Numbers that belong together, and the names of the queries printed beside them."""

    section: str
    numbers: list[Number] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.section = ""
        self.rows: list[Row] = []
        self.waiting: list[Row] = []
        self.sql: dict[str, str] = {}
        self.link: str | None = None
        self.query: str | None = None
        self.open: tuple[str, float, str, list[str]] | None = None
        self.in_sources = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        classes = found.get("class", "").split()
        if tag == "section":
            self.section = found["id"]
            self.rows += self.waiting
            self.waiting = []
        if tag in _ROWS or "tile" in classes:
            self.waiting.append(Row(self.section))
        if "sources" in classes:
            self.in_sources = True
        if self.in_sources and found.get("href", "").startswith("#query-"):
            for row in self.waiting:
                row.queries.append(found["href"].removeprefix("#query-"))
        if tag == "details" and found.get("id", "").startswith("query-"):
            self.query = found["id"].removeprefix("query-")
        if "data-unit" in found:
            value = found.get("data-value", found.get("value", ""))
            self.open = (tag, float(value), found["data-unit"], [])

    def handle_data(self, data: str) -> None:
        if self.open:
            self.open[3].append(data)
        if self.query and self.lasttag == "code":
            self.sql[self.query] = self.sql.get(self.query, "") + data

    def handle_endtag(self, tag: str) -> None:
        if self.open and tag == self.open[0]:
            _, value, unit, texts = self.open
            self.waiting[-1].numbers.append(Number("".join(texts).strip(), value, unit))
            self.open = None
        if tag == "details" and self.in_sources:
            self.in_sources = False
            self.rows += self.waiting
            self.waiting = []
        if tag == "details":
            self.query = None


@lru_cache(maxsize=2)
def read_numbers(html: str) -> tuple[list[Row], dict[str, str]]:
    """Rows of numbers in the order of the page, and the SQL of each query by its name."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return [row for row in [*reader.rows, *reader.waiting] if row.numbers], reader.sql


def said(number: Number) -> tuple[float, float]:
    """The number that the text alone tells, in the unit of the tables, and half a unit of its last digit."""
    text = re.sub("[\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}]", " ", number.shown).replace("\N{MINUS SIGN}", "-")
    found = re.search(r"([+±-]?)(\d[\d ]*(?:\.(\d+))?)\s*(.*)$", text)
    assert found is not None, number
    size = float(found[2].replace(" ", ""))
    half = 0.5 * 10.0 ** -len(found[3] or "")
    scale = {**_UNITS_NS, **_UNITS_BYTES, "%": 0.01}.get(found[4].removesuffix("/s"), 1.0)
    value = (-size if found[1] == "-" else size) * scale
    return (1 + value if number.unit == "ratio" else value), max(half * scale, 0.0051 * abs(value))
