"""What a source said about one small file, in a form that tests can ask. In: batches and a summary. Out: rows."""

from dataclasses import dataclass
from typing import Any, Protocol

import polars as pl

from traceforge.records import Batch, Issue, SourceSummary


@dataclass(frozen=True)
class Reading:
    """All a source said about one file."""

    summary: SourceSummary
    batches: list[Batch]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Rows of a raw.* table, in the order in which they came."""
        frames = [batch.rows for batch in self.batches if batch.table == f"raw.{table}"]
        return pl.concat(frames).to_dicts() if frames else []

    @property
    def events(self) -> list[dict[str, Any]]:
        """Rows as raw.event shows them: what the event says, with what its kind says."""
        kinds = {kind.pop("kind_id"): kind for kind in self.rows("event_kind")}
        return [kinds[event.pop("kind_id")] | event for event in self.rows("occurrence")]

    @property
    def names(self) -> list[str | None]:
        return [event["name"] for event in self.events]

    @property
    def codes(self) -> list[str]:
        return [issue.code for issue in self.summary.issues]

    @property
    def all_said(self) -> object:
        """Rows of all tables in their order and the summary, to compare readers; issues count without an order."""
        summary = self.summary
        facts = (summary.rank, summary.host, summary.world_size, summary.event_count, summary.stored_count)
        tables = sorted({batch.table.removeprefix("raw.") for batch in self.batches})
        return facts, set(summary.issues), {table: self.rows(table) for table in tables}

    def issue(self, code: str) -> Issue:
        """The issue of a code, which must exist."""
        return next(issue for issue in self.summary.issues if issue.code == code)


class Read(Protocol):
    """Reads a trace given as bytes, as text, or as a value to be written as JSON."""

    def __call__(
        self,
        content: object,
        *,
        compress: bool = False,
        keep_all_args: bool = False,
        unit_bytes: int = 128 * 1024,
        batch_rows: int = 100_000,
    ) -> Reading: ...
