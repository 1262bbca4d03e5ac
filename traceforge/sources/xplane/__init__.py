"""XPlane files (`*.xplane.pb`) of JAX, XLA and TensorFlow. In: a file a host. Out: rows of raw.profile and raw.event.

Idea: a file is one XSpace of protobuf; each device that did something is read as what a rank is elsewhere.
Seen: JAX 0.8 on MI300X, XLA on TPU v6e. Not handled: `trace.json.gz` beside it (a lossy copy), HLO modules.
"""

from collections.abc import Callable
from pathlib import Path

from traceforge.records import Batch, ReadOptions, Source, SourceSummary

_MARKS = (b"/device:", b"/host:CPU", b"/host:metadata", b"Task Environment")
_FIRST_FIELD = b"\x0a"  # planes come first


class XplaneSource:
    """The source `xplane`."""

    name = "xplane"

    def recognises(self, head: bytes) -> bool:
        """Whether the first bytes begin a message that holds a plane with one of the profiler's names."""
        return head.startswith(_FIRST_FIELD) and any(mark in head[:4096] for mark in _MARKS)

    def may_recognise(self, start: bytes) -> bool:
        """Whether the file may be one of ours, by its first bytes."""
        return start.startswith(_FIRST_FIELD)

    def parts(self, path: Path) -> list[str]:
        """Names of the devices that did something.

        Raises:
            InputUnusableError: the file is damaged or too large.
        """
        from traceforge.sources.xplane.reader import part_names

        return part_names(path)

    def read(self, path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
        """Read one device of a file: the one that the options name, or its only one.

        Raises:
            InputUnusableError: the file is damaged or too large.
        """
        from traceforge.sources.xplane.reader import read_part

        return read_part(path, options.part, emit, options)


SOURCE: Source = XplaneSource()
