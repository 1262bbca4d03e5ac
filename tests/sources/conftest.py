"""Reading small traces that stand in the tests themselves."""

import gzip
import json
from pathlib import Path

import pytest

from tests.sources.reading import Read, Reading
from traceforge.records import Batch, ReadOptions
from traceforge.sources.kineto.reader import read_file


@pytest.fixture(scope="session")
def read_kineto(tmp_path_factory: pytest.TempPathFactory) -> Read:
    path = tmp_path_factory.mktemp("kineto") / "trace.json"

    def read(
        content: object,
        *,
        compress: bool = False,
        keep_all_args: bool = False,
        unit_bytes: int = 128 * 1024,
        batch_rows: int = 100_000,
    ) -> Reading:
        text = content if isinstance(content, bytes | str) else json.dumps(content)
        data = text.encode() if isinstance(text, str) else text
        path.write_bytes(gzip.compress(data, mtime=0) if compress else data)
        return read_path(path, keep_all_args, unit_bytes, batch_rows)

    return read


def read_path(path: Path, keep_all_args: bool, unit_bytes: int, batch_rows: int) -> Reading:
    batches: list[Batch] = []
    options = ReadOptions(keep_all_args=keep_all_args)
    summary = read_file(path, batches.append, options, unit_bytes=unit_bytes, batch_rows=batch_rows)
    return Reading(summary, batches)
