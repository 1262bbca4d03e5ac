"""JSON files of rocprofv3 (AMD's ROCprofiler SDK). In: a file. Out: rows of raw.profile and raw.event.

Idea: what the file keeps of an event (numbers of kernels, agents and operations, nested) is decoded into typed structs
and put under the names that its own tables give them; so dispatches, copies and API calls become the events that Kineto
would have written. Times are of the node's boot clock, one for all processes of a node, without an epoch.
Seen: one file of rocprofv3 1.0 (kernel dispatches alone); the other records by the SDK's documentation.
Not handled: CSV and OTF2 output; counters; a file above 512 MiB of text, as it is decoded whole.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from traceforge.errors import InputUnusableError
from traceforge.records import Batch, ReadOptions, Source, SourceSummary

if TYPE_CHECKING:
    from traceforge.sources.rocprof.layout import FileHead, RocprofFile

_KEY = b'"rocprofiler-sdk-tool"'
_MOST_BYTES = 512 * 1024**2
_Layout = TypeVar("_Layout", bound="FileHead | RocprofFile")


class RocprofSource:
    """The source `rocprof`."""

    name = "rocprof"

    def recognises(self, head: bytes) -> bool:
        """Whether the first bytes begin an object whose first key is rocprofv3's."""
        return _begins(head)

    def may_recognise(self, start: bytes) -> bool:
        """Whether the file may be one of ours, by its first bytes."""
        return _begins(start)

    def parts(self, path: Path) -> list[str]:
        """Names of the processes of a file.

        Raises:
            InputUnusableError: it is damaged or too large.
        """
        from traceforge.sources.rocprof.layout import FileHead

        text = _text(path, lambda _count: None)
        return _names([head.metadata.pid for head in _decoded(text, FileHead, path)[0].processes])

    def read(self, path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
        """Read one process of a file: the one that the options name, or its only one.

        Raises:
            InputUnusableError: the file is damaged or too large.
        """
        from traceforge.sources.rocprof.layout import RocprofFile
        from traceforge.sources.rocprof.process import ProcessReading

        file, repairs = _decoded(_text(path, options.report_progress), RocprofFile, path)
        found = file.processes
        names = _names([one.metadata.pid for one in found])
        process = next((one for name, one in zip(names, found, strict=True) if options.part in (None, name)), None)
        if process is None:
            raise InputUnusableError("the file names no process", where=str(path))
        return ProcessReading(process, emit, repairs).run()


SOURCE: Source = RocprofSource()


def _begins(head: bytes) -> bool:
    text = head.lstrip()
    return text[:1] == b"{" and text[1:].lstrip().startswith(_KEY)


def _names(pids: list[int]) -> list[str]:
    """Names of processes, no two alike: processes of several containers may have one number."""
    times: Counter[int] = Counter()
    names = []
    for pid in pids:
        times[pid] += 1
        names.append(f"process {pid}" + (f" #{times[pid]}" if times[pid] > 1 else ""))
    return names


def _text(path: Path, report_progress: Callable[[int], None]) -> bytes:
    from traceforge.reading.stream import read_whole

    return read_whole(path, _MOST_BYTES, report_progress)


def _decoded(text: bytes, layout: type[_Layout], path: Path) -> tuple[_Layout, Mapping[str, int]]:
    """A decoded file, and how often it had to be repaired, by code: its writer does not escape what it is given."""
    import msgspec

    from traceforge.reading.json_repair import repair_text
    from traceforge.reading.json_values import UNDECODABLE

    try:
        return msgspec.json.decode(text, type=layout), {}
    except UNDECODABLE:
        repaired = repair_text(text)
    try:
        return msgspec.json.decode(repaired.text, type=layout), repaired.counts
    except UNDECODABLE as error:
        raise InputUnusableError(f"the file is damaged: {error}", where=str(path)) from error
