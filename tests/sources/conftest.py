"""Reading small traces that stand in the tests themselves."""

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from traceforge.records import Batch, Issue, ReadOptions, SourceSummary


@dataclass(frozen=True)
class Reading:
    """All a source said about one file."""

    summary: SourceSummary
    batches: list[Batch]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Rows of a raw.kineto_* table, in the order in which they came."""
        frames = [batch.rows for batch in self.batches if batch.table == f"raw.kineto_{table}"]
        return pl.concat(frames).to_dicts() if frames else []

    @property
    def events(self) -> list[dict[str, Any]]:
        return self.rows("event")

    @property
    def names(self) -> list[str | None]:
        return [event["name"] for event in self.events]

    def issue(self, code: str) -> Issue:
        """The issue of a code, which must exist."""
        return next(issue for issue in self.summary.issues if issue.code == code)

    @property
    def codes(self) -> list[str]:
        return [issue.code for issue in self.summary.issues]


Read = Callable[..., Reading]


@pytest.fixture(scope="session")
def read_kineto(tmp_path_factory: pytest.TempPathFactory) -> Read:
    """Read a trace given as bytes, text, or a value to be written as JSON."""
    folder = tmp_path_factory.mktemp("kineto")

    def read(
        content: object, *, compress: bool = False, keep_all_args: bool = False, unit_bytes: int = 128 * 1024, batch_rows: int = 100_000
    ) -> Reading:
        from traceforge.sources.kineto.reader import read_file

        text = content if isinstance(content, bytes | str) else json.dumps(content)
        data = text.encode() if isinstance(text, str) else text
        path = Path(folder, "trace.json")
        path.write_bytes(gzip.compress(data, mtime=0) if compress else data)
        batches: list[Batch] = []
        options = ReadOptions(keep_all_args=keep_all_args)
        summary = read_file(path, batches.append, options, unit_bytes=unit_bytes, batch_rows=batch_rows)
        return Reading(summary, batches)

    return read
