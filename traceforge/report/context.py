"""What a section may ask. In: a store and a run. Out: rows of named queries, and the record of what was executed.

A query is a `.sql` file: `job` names `queries/job.sql`, `sections/trust` a file beside its section. `$run_id` and
other whole numbers are written into the text before it is executed, so that what the appendix shows is, letter by
letter, what the database was asked. Only whole numbers are ever written in; names from traces never are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any

from traceforge.compare import Comparison
from traceforge.redaction import Redaction
from traceforge.report.cost import DailyCost, Price, read_costs
from traceforge.report.diagnosis import Diagnosis, read_diagnosis
from traceforge.report.job import JobOverview, read_job
from traceforge.report.trust import Trust, read_trust
from traceforge.store.database import Store

if TYPE_CHECKING:
    import polars as pl

Row = dict[str, Any]
Number = int | Sequence[int]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a page may hold.

    Attributes:
        marks: areas, lines and points a chart.
        heat_rows, heat_columns: cells of the lateness chart along ranks and iterations.
        table_rows: rows of a table behind a figure.
        bars: rows of a chart with one row a rank.
        pictures: iterations of the timeline, where it cannot hold them all.
        runs: intervals of all its ranks and iterations together.
    """

    marks: int = 9_000
    heat_rows: int = 120
    heat_columns: int = 256
    table_rows: int = 200
    bars: int = 128
    pictures: int = 60
    runs: int = 300_000


@dataclass(frozen=True, slots=True)
class Query:
    """An executed query: its name, the first sentence of its comment, and its text."""

    name: str
    title: str
    sql: str


@dataclass
class Context:
    """A run of a store, with the numbers many sections share. `comparison` is None where no baseline was given."""

    store: Store
    run_id: int
    versions: Mapping[str, str]
    command: str | None
    limits: Limits = field(default_factory=Limits)
    price: Price | None = None
    redaction: Redaction | None = None
    executed: dict[str, Query] = field(default_factory=dict)
    comparison: Comparison | None = None

    def rows(self, name: str, **numbers: Number) -> list[Row]:
        """The rows of a named query; `numbers` fill its placeholders, lists of them separated by commas."""
        if self.redaction:
            return self.frame(name, **numbers).to_dicts()
        return self.store.records(self._recorded(name, _text(name), numbers))

    def frame(self, name: str, **numbers: Number) -> "pl.DataFrame":
        """The same as a frame, for queries of many rows."""
        return self.ask(name, _text(name), **numbers)

    def ask(self, name: str, sql: str, **numbers: Number) -> "pl.DataFrame":
        """The rows of a query whose text stands in the code; its first line is a comment, its title."""
        found = self.store.query(self._recorded(name, sql, numbers))
        return self.redaction.frame(found) if self.redaction else found

    def _recorded(self, name: str, sql: str, numbers: Mapping[str, Number]) -> str:
        filled = _filled(sql, {"run_id": self.run_id, **numbers})
        self.record(name, filled)
        return filled

    def record(self, name: str, sql: str) -> None:
        """Show a query that was executed in the appendix."""
        self.executed[name] = Query(name, _title(sql), sql)

    @cached_property
    def job(self) -> JobOverview:
        """Ranks, hosts, files and iterations."""
        return read_job(self.rows, self.run_id)

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """Verdict and findings."""
        return read_diagnosis(self.rows)

    @cached_property
    def costs(self) -> Mapping[int, DailyCost]:
        """What each finding costs a day, by its identifier."""
        return read_costs(self.rows, self.price)

    @cached_property
    def pace_ns(self) -> float | None:
        """What an iteration takes of the job's time, ns; None where none was judged."""
        (pace,) = self.rows("pace")
        found: float | None = pace["pace_ns"]
        return found

    @cached_property
    def trust(self) -> Trust:
        """Clocks, matched collectives, issues and what stays unexplained."""
        return read_trust(self.rows)


def query_anchor(name: str) -> str:
    """A query's name as the identifier of an element of the page."""
    return "query-" + name.replace("/", "-")


def _text(name: str) -> str:
    folder, _, stem = name.rpartition("/")
    path = resources.files("traceforge.report") / (folder or "queries") / f"{stem}.sql"
    return path.read_text(encoding="utf-8").strip().rstrip(";")


def _filled(sql: str, numbers: Mapping[str, Number]) -> str:
    return Template(sql).substitute({name: _literal(value) for name, value in numbers.items()})


def _literal(value: Number) -> str:
    values = [value] if isinstance(value, int) else value
    return ", ".join(str(int(number)) for number in values) or "NULL"


def _title(sql: str) -> str:
    return sql.splitlines()[0].removeprefix("--").strip()
