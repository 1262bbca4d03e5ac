"""Recordings of `traceforge.live`. In: a file a rank. Out: rows of raw.profile, raw.event and raw.collective.

Idea: the file knows what a thread did and which collectives it met, for days: the innermost name of the training
thread at each instant becomes an annotation, a collective a host event on a track of its own.
Seen: format 1. Not handled: kernels, which are not recorded.
"""

from collections.abc import Callable
from pathlib import Path

from traceforge.records import Batch, ReadOptions, Source, SourceSummary

_MAGIC = b"traceforge live "


class LiveLogSource:
    """The source `live_log`."""

    name = "live_log"

    def recognises(self, head: bytes) -> bool:
        """Whether the first line is that of the format."""
        return head.startswith(_MAGIC)

    def read(self, path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
        """Read a whole file.

        Raises:
            InputUnusableError: it is of another version, or its first frame is damaged.
        """
        from traceforge.sources.live_log.reader import read_log

        return read_log(path, emit, options)


SOURCE: Source = LiveLogSource()
