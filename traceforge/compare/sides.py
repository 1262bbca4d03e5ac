"""One side of a comparison. In: a store, a run, the name of a query. Out: its rows, and its text as executed.

Queries are the `.sql` files of `queries/`; only the number of the run is ever written into them.
"""

from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import Any

from traceforge.store.database import Store

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Side:
    """One run of one database."""

    store: Store
    run_id: int

    def rows(self, name: str) -> list[Row]:
        """The rows of a query."""
        return self.store.records(query_text(name, self.run_id))


def query_text(name: str, run_id: int) -> str:
    """A query as it is executed for a run."""
    file = resources.files("traceforge.compare") / "queries" / f"{name}.sql"
    return Template(file.read_text(encoding="utf-8").strip()).substitute(run_id=int(run_id))
