"""Tables of a job's operations, as its own timers measured them. In: Parquet. Out: rows of raw.profile and raw.event.

Idea: large training frameworks time each pass of a micro-batch and each message by themselves, and keep one row an
operation, of all ranks on one clock. The columns are those in which ByteDance published such jobs (StragglerAnalysis,
OSDI 2025): `dp_rank`, `stage`, `rank`, `step`, `optype`, `seq_id`, `start_ts` and `duration`, s since the step began.
Each rank is read as a file of its own.
Not handled: the Chrome timelines beside such tables, which hold the same; what runs within an operation.
"""

from collections.abc import Callable
from pathlib import Path

from traceforge.records import Batch, ReadOptions, Source, SourceSummary

COLUMNS = frozenset({"dp_rank", "stage", "rank", "step", "optype", "seq_id", "start_ts", "duration"})
"""What a table must have."""
_MAGIC = b"PAR1"


class OperationTableSource:
    """The source `operation_table`."""

    name = "operation_table"

    def recognises(self, head: bytes) -> bool:
        """Whether a Parquet file has the columns, whose names stand behind its first bytes."""
        return head.startswith(_MAGIC) and {line.decode("utf-8", "replace") for line in head.split(b"\n")} >= COLUMNS

    def may_recognise(self, start: bytes) -> bool:
        """Whether the file may be one of ours, by its first bytes."""
        return start.startswith(_MAGIC)

    def parts(self, path: Path) -> list[str]:
        """Names of the ranks in a table.

        Raises:
            InputUnusableError: it is damaged.
        """
        from traceforge.sources.operation_table.reader import part_names

        return part_names(path)

    def read(self, path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
        """Read one rank of a table: the one that the options name, or its only one.

        Raises:
            InputUnusableError: it is damaged, or holds no rank.
        """
        from traceforge.sources.operation_table.reader import read_part

        return read_part(path, options.part, emit, options)


SOURCE: Source = OperationTableSource()
