"""Reading small traces that stand in the tests themselves."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sources.nccl_logs import LogReading
from tests.sources.nccl_logs import read_path as read_log_path
from tests.sources.nsys_exports import export  # noqa: F401  # a fixture
from tests.sources.reading import Read, Reading
from traceforge.records import Batch, ReadOptions
from traceforge.sources.kineto.native import Scanner
from traceforge.sources.kineto.reader import read_file

READERS = ["python"] if Scanner is None else ["scanner", "python"]


@pytest.fixture(scope="session", params=READERS)
def read_kineto(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Read:
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
        return read_path(
            path,
            keep_all_args=keep_all_args,
            unit_bytes=unit_bytes,
            batch_rows=batch_rows,
            native=request.param == "scanner",
        )

    return read


def read_path(
    path: Path,
    *,
    keep_all_args: bool = False,
    unit_bytes: int = 128 * 1024,
    batch_rows: int = 100_000,
    native: bool = True,
) -> Reading:
    batches: list[Batch] = []
    options = ReadOptions(keep_all_args=keep_all_args)
    summary = read_file(path, batches.append, options, unit_bytes=unit_bytes, batch_rows=batch_rows, native=native)
    return Reading(summary, batches)


@pytest.fixture(scope="session")
def read_log(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., LogReading]:
    path = tmp_path_factory.mktemp("nccl") / "nccl.log"

    def read(*lines: str | bytes, block_bytes: int = 4 * 1024 * 1024) -> LogReading:
        path.write_bytes(b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines))
        return read_log_path(path, block_bytes=block_bytes)

    return read
