"""Dumps of PyTorch's flight recorder. In: a pickle or JSON file. Out: raw.flight_recorder_* rows.

Idea: a dump is one object of plain lists, dicts, texts and numbers; a pickle that asks for anything else is refused
before anything happens. Seen: versions 2.0 to 2.10 of the format (PyTorch 2.4 to 2.9). By the writer's source code:
PyTorch 2.2 (a bare list of calls) and version 1 (2.3), which name no groups but state the process's number of each.
Not handled: what the ranks' dumps say together (fabric.finding compares them).
"""

from collections.abc import Callable
from pathlib import Path

from traceforge.records import Batch, ReadOptions, Source, SourceSummary

_OF_A_BARE_LIST = (b"pg_id", b"seq_id", b"profiling_name", b"time_created_us")


class FlightRecorderSource:
    """The source `flight_recorder`."""

    name = "flight_recorder"

    def recognises(self, head: bytes) -> bool:
        """Whether the first bytes name what only a dump has, in a pickle or an object of JSON.

        Where nothing was under way, JSON has no list of entries.
        """
        text = head.lstrip()
        if text[:1] == b"{":
            others = (b'"collective_seq_id"' in text or b'"pg_config"' in text) and b'"entries"' in text
            return others or (b'"pg_config"' in text and b'"pg_status"' in text)
        names = (b"collective_seq_id", b"pg_config", b"time_created_ns")
        is_named = b"entries" in head and any(name in head for name in names)
        return head[:1] == b"\x80" and (is_named or all(name in head for name in _OF_A_BARE_LIST))

    def read(self, path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
        """Read a whole dump.

        Raises:
            InputUnusableError: it is damaged, too large, or asks for more than plain containers.
        """
        from traceforge.sources.flight_recorder.dump import read_dump

        return read_dump(path, emit, options)


SOURCE: Source = FlightRecorderSource()
