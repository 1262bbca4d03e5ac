"""What the source of NCCL logs said about a small log, in a form that tests can ask. In: text. Out: rows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from traceforge.records import Batch, ReadOptions, SourceSummary
from traceforge.sources.nccl_log.reader import read_file

HEAD = "node-1:4711:4720 [0] NCCL INFO "


@dataclass(frozen=True)
class LogReading:
    """All the source said about one log."""

    summary: SourceSummary
    batches: list[Batch]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Rows of a raw.nccl_* table, in the order of their records where they have one."""
        frames = [batch.rows for batch in self.batches if batch.table == f"raw.nccl_{table}"]
        if not frames:
            return []
        rows = pl.concat(frames)
        return (rows.sort("record_id", maintain_order=True) if "record_id" in rows.columns else rows).to_dicts()

    def row(self, table: str) -> dict[str, Any]:
        """The only row of a table."""
        (row,) = self.rows(table)
        return row

    @property
    def file(self) -> dict[str, Any]:
        return self.row("file")

    @property
    def rules(self) -> list[str]:
        return [record["rule"] for record in self.rows("record")]

    @property
    def codes(self) -> list[str]:
        return [issue.code for issue in self.summary.issues]


def read_path(path: Path, *, block_bytes: int = 4 * 1024 * 1024) -> LogReading:
    """A log that lies on disk."""
    batches: list[Batch] = []
    summary = read_file(path, batches.append, ReadOptions(), block_bytes=block_bytes)
    return LogReading(summary, batches)


def call(
    *,
    host: str = "node-1",
    pid: int = 4711,
    op: str = "AllReduce",
    op_count: int = 0,
    elements: int = 1024,
    comm: int = 0xA0,
    prefix: str = "",
    ranks: int = 2,
) -> str:
    """A line of subsystem COLL, as NCCL 2.4 to 2.30 print it."""
    return (
        f"{prefix}{host}:{pid}:{pid + 9} [0] NCCL INFO {op}: opCount {op_count:x} sendbuff 0x7f00 recvbuff 0x7f80 "
        f"count {elements} datatype 7 op 0 root 0 comm {comm:#x} [nranks={ranks}] stream 0x55"
    )


def init(*, host: str = "node-1", pid: int = 4711, comm: int = 0xA0, rank: int = 0, ranks: int = 2) -> str:
    """The line that ends a communicator's init, as NCCL 2.21 and later print it."""
    return (
        f"{host}:{pid}:{pid} [0] NCCL INFO ncclCommInitRank comm {comm:#x} rank {rank} nranks {ranks} cudaDev {rank} "
        f"nvmlDev {rank} busId {0x10000 * (rank + 1):x} commId 0xfeed - Init COMPLETE"
    )
