"""What is known of one log while it is read. In: what the readers of lines found. Out: the rows and summary at its end.

Idea: both ways of reading lines share these; counts are kept here, once. The rank of the file is what a launcher or
RCCL states of its only process. A rank in a communicator is not taken for a global rank, nor the largest communicator
for the job: that takes all files together. Not handled: logs of several ranks (they have no rank).
"""

from collections import Counter
from typing import TypeVar

from traceforge.records import SourceSummary
from traceforge.sources.nccl_log.calls import LoggedCalls
from traceforge.sources.nccl_log.communicators import Communicators
from traceforge.sources.nccl_log.interpreter import Interpreter
from traceforge.sources.nccl_log.issues import new_log
from traceforge.sources.nccl_log.neighbours import Neighbours
from traceforge.sources.nccl_log.prefixes import KnownPrefixes
from traceforge.sources.nccl_log.processes import Processes
from traceforge.sources.nccl_log.stream import LineStream
from traceforge.sources.nccl_log.tables import Tables
from traceforge.sources.nccl_log.templates import Templates

KIND = "nccl_log"
Kind = TypeVar("Kind", str, tuple[str, int])


class LogState:
    """Everything that outlives a line.

    Attributes:
        record_count: records so far.
        styles: how many records have each style of launcher's prefix.
        stamps: how many records have each form of time stamp, with its resolution in ns.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.communicators = Communicators()
        self.calls = LoggedCalls(tables, self.communicators)
        self.interpreter = Interpreter(tables, self.communicators, self.calls)
        self.neighbours = Neighbours(tables)
        self.processes = Processes()
        self.prefixes = KnownPrefixes()
        self.templates = Templates()
        self.issues = new_log()
        self.record_count = 0
        self.styles: Counter[str] = Counter()
        self.stamps: Counter[tuple[str, int]] = Counter()

    def finish(self, stream: LineStream) -> SourceSummary:
        """Hand on what is known at the end of the file."""
        self.neighbours.finish()
        for handle in self.communicators.take_rest(self.calls.implied):
            self.tables.add("communicator", handle.row())
        self.processes.store(self.tables)
        self.templates.store(self.tables)
        self.tables.add("file", self._file_row(stream))
        self.tables.flush()
        self._note_issues(stream)
        hosts = {process.host for process in self.processes.all}
        return SourceSummary(
            kind=KIND,
            rank=self._rank(),
            host=hosts.pop() if len(hosts) == 1 else None,
            world_size=None,
            event_count=self.record_count,
            stored_count=self.record_count,
            issues=tuple(self.issues),
        )

    def _file_row(self, stream: LineStream) -> dict[str, object]:
        form, resolution_ns = _most(self.stamps) or (None, None)
        return {
            "flavour": self.interpreter.flavour,
            "prefix_style": _most(self.styles) or "none",
            "stamp_format": form,
            "stamp_resolution_ns": resolution_ns,
            "line_count": stream.line_count,
            "record_count": self.record_count,
            "understood_count": self.record_count - self.templates.count,
            "torn_count": self.issues.count("torn_line") + self.processes.glued_count,
        }

    def _note_issues(self, stream: LineStream) -> None:
        self.issues.add("glued_host", self.processes.glued_count)
        self.issues.add("too_many_communicators", self.communicators.left_out_count)
        self.issues.add("unparsed_record", self.templates.count)
        self.issues.add("calls_stated_twice", int(len(self.calls.stated_by) > 1))
        self.issues.add("no_records", int(not self.record_count))
        self.issues.add("last_line_open", int(stream.is_cut), at=f"line {stream.line_count}")
        if stream.damage is not None:
            self.issues.add("damaged_compression", at=f"line {stream.line_count}")

    def _rank(self) -> int | None:
        """Global rank of the file's only process, where its launcher or RCCL states one."""
        if len(self.processes.all) != 1:
            return None
        ranks = set(self.processes.all[0].launcher_ranks) | self.calls.global_ranks
        return ranks.pop() if len(ranks) == 1 else None


def _most(counts: "Counter[Kind]") -> "Kind | None":
    """The most frequent of some kinds; of equally frequent ones the first by name."""
    return min(counts, key=lambda kind: (-counts[kind], kind), default=None)
