"""Small jobs and the folder databases that hold them."""

import json
from concurrent.futures import Executor
from pathlib import Path

from traceforge.api import sources
from traceforge.files import find_files
from traceforge.records import ReadOptions
from traceforge.store.database import Store
from traceforge.store.ingest import IngestResult, ingest_files


def write_trace(path: Path, rank: int, count: int = 20) -> Path:
    """A trace of some events, which differ from rank to rank."""
    events = [
        {"ph": "X", "cat": "cpu_op", "name": f"op {n % 7}", "pid": 1, "tid": 1, "ts": 10 * n + rank, "dur": 5}
        for n in range(count)
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"distributedInfo": {"rank": rank, "world_size": 4}, "traceEvents": events}))
    return path


def write_job(traces: Path, ranks: int) -> Path:
    """A folder of so many ranks, two of them of the same bytes, one that is cut, and a file that is no trace."""
    for rank in range(ranks):
        write_trace(traces / f"rank{rank}.json", rank)
    (traces / "copy.json").write_bytes((traces / "rank2.json").read_bytes())
    (traces / "rank9.json").write_text('{"traceEvents": [')
    (traces / "notes.txt").write_text("bring milk")
    return traces


def ingested(store: Store, traces: Path, executor: Executor | None = None) -> IngestResult:
    """Files below a folder as facts, no stage built."""
    files = find_files([traces])
    return ingest_files(store, files, sources(), run_name="night", options=ReadOptions(), executor=executor)


def parts(database: Path) -> list[Path]:
    """All files of partitions, by table, source and number."""
    return sorted(database.glob("facts/*/*/*.parquet"))
