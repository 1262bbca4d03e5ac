"""Processes of a log. In: heads of records. Out: small numbers, and raw.nccl_process.

Idea: host and pid name a process. Text that was glued in front of a host name (torn lines) is cut off where the rest is
a known host: one with the same pid, or any, where other text stands before the record. Memory is bounded: records of
processes beyond `MOST_PROCESSES` are kept without theirs.
Not handled: a process whose first record is torn so counts as another one where its host is not known yet.
"""

from collections import Counter
from dataclasses import dataclass, field

from traceforge.sources.nccl_log.tables import Tables

MOST_PROCESSES = 131_072


@dataclass(slots=True)
class Process:
    """A process that wrote records.

    Attributes:
        process_id: small integer, in order of appearance.
        host: host name.
        pid: operating system's process id.
        record_count: its records so far.
        launcher_ranks: how many of them carry each rank in the launcher's prefix.
    """

    process_id: int
    host: str
    pid: int
    record_count: int = 0
    launcher_ranks: Counter[int] = field(default_factory=Counter)

    def count(self, records: int, launcher_rank: int | None) -> None:
        """Count records, and the rank in their launcher's prefix."""
        self.record_count += records
        if launcher_rank is not None:
            self.launcher_ranks[launcher_rank] += records

    @property
    def launcher_rank(self) -> int | None:
        """Rank in the launcher's prefix on most of its records."""
        return (
            max(self.launcher_ranks.items(), key=lambda item: (item[1], -item[0]))[0] if self.launcher_ranks else None
        )


class Processes:
    """The processes of one file.

    Attributes:
        all: processes by number.
        glued_count: records whose host name had text glued to its front.
    """

    def __init__(self) -> None:
        self.all: list[Process] = []
        self.glued_count = 0
        self._by_name: dict[tuple[str, int], Process] = {}
        self._by_pid: dict[int, list[Process]] = {}
        self._hosts: set[str] = set()

    def of(self, host: str, pid: int, *, is_doubtful: bool = False) -> Process | None:
        """The process of a host name and pid as printed; None where there are too many already.

        Args:
            host: the name.
            pid: the number.
            is_doubtful: whether other text stands before it, which may go on in the name.
        """
        process = self._by_name.get((host, pid))
        if process is not None:
            return process
        if glued := self.glued_bytes(host, pid, is_doubtful=is_doubtful):
            self.glued_count += 1
            return self.of(host[glued:], pid)
        if len(self.all) >= MOST_PROCESSES:
            return None
        process = Process(len(self.all), host, pid)
        if not is_doubtful:
            self._hosts.add(host)
        self.all.append(process)
        self._by_name[host, pid] = process
        self._by_pid.setdefault(pid, []).append(process)
        return process

    def glued_bytes(self, host: str, pid: int, *, is_doubtful: bool = True) -> int:
        """How much of a host name was glued to its front, as processes seen so far show; see `of`."""
        known = (process.host for process in self._by_pid.get(pid, ()) if host.endswith(process.host))
        if (same := next(known, None)) is not None:
            return len(host) - len(same)
        if not is_doubtful or host in self._hosts:
            return 0
        return next((cut for cut in range(1, len(host)) if host[cut:] in self._hosts), 0)

    def store(self, tables: Tables) -> None:
        """Hand on one row a process."""
        for process in self.all:
            row = {
                "process_id": process.process_id,
                "host": process.host,
                "pid": process.pid,
                "launcher_rank": process.launcher_rank,
                "record_count": process.record_count,
            }
            tables.add("process", row)
