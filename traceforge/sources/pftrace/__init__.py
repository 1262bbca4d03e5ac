"""Perfetto traces (`.pftrace`) of PyTorch's CUPTI observer. In: a file a rank. Out: rows of raw.profile and raw.event.

Idea: by the writer's source (`cuspy_pftrace.cpp`, August 2026) slices of the host are begins and then ends of equal
order, and the device's work is one render stage each; so the same events as in the JSON of the run come out. No public
file is known: what is read here was checked with files of our own writer by that source only.
Not handled: other Perfetto traces; counters other than clocks, power, heat and load (counted); `export perfetto`, which
is ours to write and not to read.
"""

from collections.abc import Callable
from pathlib import Path

from traceforge.records import Batch, ReadOptions, Source, SourceSummary


class PftraceSource:
    """The source `pftrace`."""

    name = "pftrace"

    def recognises(self, head: bytes) -> bool:
        """Whether the first packet ties two clocks to one instant, as PyTorch's writer does."""
        if not head.startswith(b"\x0a"):
            return False
        from traceforge.sources.pftrace.packets import begins_with_equal_clocks

        return begins_with_equal_clocks(head)

    def read(self, path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
        """Read a whole file.

        Raises:
            InputUnusableError: it cannot be opened, or is too large.
        """
        from traceforge.sources.pftrace.reader import read_trace

        return read_trace(path, emit, options)


SOURCE: Source = PftraceSource()
