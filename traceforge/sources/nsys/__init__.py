"""Exports of Nsight Systems. In: SQLite, or a folder of Parquet files. Out: rows of raw.profile and raw.event.

Idea: kernels, copies, CUDA calls and NVTX ranges become the events that Kineto would have written of the same work,
each process on its own as the rank that it is. Seen: schemas 2.9 (2022) to 3.25 (2026) and hand-made excerpts.
Sizes and communicators of collectives stand in the payloads of NCCL's own ranges, which exports hold when asked to.
Not handled: `.nsys-rep` itself (export it); without those payloads collectives are matched by their order.
"""

from collections.abc import Callable
from pathlib import Path

from traceforge.files import TABLE_LIST
from traceforge.records import Batch, ReadOptions, Source, SourceSummary

_MAGIC = b"SQLite format 3\0"
_OWN_TABLES = (b"CUPTI_ACTIVITY_KIND_", b"NVTX_EVENTS", b"StringIds", b"META_DATA_EXPORT", b"EXPORT_META_DATA")


class NsysSource:
    """The source `nsys`."""

    name = "nsys"

    def recognises(self, head: bytes) -> bool:
        """Whether SQLite, or a folder of Parquet files, names tables that Nsight Systems writes."""
        return head.startswith((_MAGIC, TABLE_LIST)) and sum(table in head for table in _OWN_TABLES) > 1

    def may_recognise(self, start: bytes) -> bool:
        """Whether the file may be one of ours, by its first bytes."""
        return start.startswith((_MAGIC, TABLE_LIST))

    def read(self, path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
        """Read one part of an export: the one that the options name, or its only one.

        Raises:
            InputUnusableError: it is damaged.
        """
        from traceforge.sources.nsys.reader import read_part

        return read_part(path, options.part, emit, options)

    def parts(self, path: Path) -> list[str]:
        """Names of what in a file is one rank's each.

        Raises:
            InputUnusableError: it is damaged.
        """
        from traceforge.sources.nsys.reader import part_names

        return part_names(path)


SOURCE: Source = NsysSource()
