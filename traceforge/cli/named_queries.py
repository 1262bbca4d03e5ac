"""Named queries, one `.sql` file each in `queries/`, whose first line says what it answers. In: names. Out: texts.

A query belongs to the last stage whose tables it reads, so that a list of them is in the order of the pipeline.
"""

import re
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from traceforge.errors import UsageError

_ORDER = (
    "raw",
    "meta",
    "align",
    "timeline",
    "operation",
    "fabric",
    "graph",
    "replay",
    "attribute",
    "forecast",
    "history",
)
_TABLE = re.compile(rf"\b({'|'.join(_ORDER)})\.\w+")


class NamedQuery(NamedTuple):
    """A query, the stage that it asks, and what it answers."""

    stage: str
    name: str
    purpose: str
    text: str


def named_queries(about: str = "") -> list[NamedQuery]:
    """All queries by stage; `about` keeps those with this word in their name, purpose or tables."""
    folder = Path(str(resources.files("traceforge.cli") / "queries"))
    found = [_read(path) for path in sorted(folder.glob("*.sql"))]
    word = about.casefold()
    kept = [query for query in found if word in query.name or word in query.text.casefold()]
    return sorted(kept, key=lambda query: _ORDER.index(query.stage))


def query_text(name: str) -> str:
    """The text of a query.

    Raises:
        UsageError: there is none of this name.
    """
    known = named_queries()
    text = next((query.text for query in known if query.name == name), None)
    if text is None:
        names = ", ".join(sorted(query.name for query in known))
        raise UsageError(f"there is no named query `{name}`", hint=f"named queries: {names}")
    return text


def _read(path: Path) -> NamedQuery:
    text = path.read_text("utf-8")
    stage = max(_TABLE.findall(text), key=_ORDER.index)
    return NamedQuery(stage, path.stem, text.splitlines()[0].removeprefix("--").strip(), text)
