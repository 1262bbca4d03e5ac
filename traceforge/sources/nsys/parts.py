"""Whose events an export holds. In: its tables. Out: its processes with a device, each of which is one rank's.

Idea: a report of Nsight Systems covers all processes that ran under it, often all ranks of a host. In training a
process is a rank, whatever number of devices it uses. An export that does not say which process a kernel is of
(they are made by hand) is divided by device. Where each process was shown one GPU and calls it 0, the export says which
of the host's it is. A rank is stated by MPI (`MPI_RANKS`, or the name of the process's thread), by the launcher's
environment (see `launcher`) where the report is of one process alone, or by NCCL's own ranges (see `nccl_calls`).
Rows that name no process have no launch where several processes called CUDA: it might be another's.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from traceforge.reading.table_file import TableFile
from traceforge.sources.nsys.launcher import launched

DEVICE_TABLES = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
)
HOST_TABLES = ("CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS")
THREAD_BITS, MACHINE_BITS = 24, 48
_THREAD_MASK = (1 << THREAD_BITS) - 1
THREAD_NAME_EVENT = 39
GPUS_SEEN = "TARGET_INFO_CUDA_DEVICE"
_PID_MASK = 0xFFFFFF
_MOST_GPUS = 65_536
_MPI_RANKS, _MPI_COMMUNICATORS = "MPI_RANKS", "MPI_COMMUNICATORS"
_MPI_RANK = re.compile(r"MPI Rank (\d{1,6})\b")


@dataclass(frozen=True, slots=True)
class ReportPart:
    """The events of one process, or of one device where processes are not stated.

    Attributes:
        name: as shown behind the file's name.
        process: `globalPid` of its rows; None where the export states none.
        device: CUDA's number of its device, where it is divided by device or has only one; else None.
        gpus: number of a GPU among those of the host by CUDA's number of it, where the export tells it.
        has_host: whether calls and ranges of threads are its own; not where they may be of several processes.
    """

    name: str
    process: int | None
    device: int | None
    gpus: Mapping[int, int] = field(default_factory=dict)
    has_host: bool = True

    @property
    def threads(self) -> tuple[int, int]:
        """First and last number that its threads can have (`globalTid`); of process 0 where none is known."""
        first = self.process or 0
        return first, min(first + _THREAD_MASK, 2**63 - 1)

    @property
    def pid(self) -> int | None:
        """The system's number of the process."""
        return None if self.process is None else (self.process >> THREAD_BITS) & _PID_MASK

    @property
    def machine(self) -> int | None:
        """Number of the machine, or virtual machine, of the process in the report."""
        return None if self.process is None else self.process >> MACHINE_BITS

    @property
    def gpu(self) -> int | None:
        """Number of its device among those of the host; CUDA's number of it where that is not known."""
        return None if self.device is None else self.gpus.get(self.device, self.device)


def parts_of(database: TableFile) -> list[ReportPart]:
    """The parts of an export in order of device and process; one without a device if none of its tables holds rows."""
    used: dict[int | None, set[int]] = {}
    unsaid: set[int] = set()
    for table in DEVICE_TABLES:
        if database.has(table):
            process, device = database.integer(table, "globalPid"), database.integer(table, "deviceId")
            for one, number in database.rows(f"SELECT DISTINCT {process}, {device} FROM {table}"):
                numbers = unsaid if not database.has(table, "globalPid") else used.setdefault(one, set())
                numbers.update([] if number is None else [number])
    # A table that says nothing of processes is of the one that used the device by the others, where only one did.
    users = [number for one, numbers in used.items() if one is not None and len(numbers) == 1 for number in numbers]
    if left := {number for number in unsaid if users.count(number) != 1}:
        used.setdefault(None, set()).update(left)
    found: list[ReportPart] = []
    seen = _gpus(database)
    for one, numbers in used.items():
        if one is None:
            callers = _callers(database)
            has_host = not callers or (len(used) == 1 and len(callers) == 1)
            found += [ReportPart(f"device {number}", None, number, has_host=has_host) for number in sorted(numbers)]
        else:
            found.append(_process(one, sorted(numbers), seen))
    found.sort(key=lambda part: (part.gpu is None, part.gpu or 0, part.process or 0))
    return _with_own_names(found) or [ReportPart("process", None, None)]


def _with_own_names(parts: Sequence[ReportPart]) -> list[ReportPart]:
    """The parts, with the machine in the name of processes that have one number on several."""
    for said in ("machine {machine}", "{place}"):
        times = Counter(part.name for part in parts)
        parts = [
            part
            if times[part.name] == 1
            else replace(part, name=f"{part.name}, {said.format(machine=part.machine, place=place)}")
            for place, part in enumerate(parts)
        ]
    return list(parts)


def _callers(database: TableFile) -> set[int]:
    """Processes whose calls to CUDA, or ranges where there are no calls, the export holds."""
    for table in HOST_TABLES:
        if database.has(table, "globalTid"):
            thread = database.integer(table, "globalTid")
            found = database.rows(f"SELECT DISTINCT {thread} >> {THREAD_BITS} FROM {table} LIMIT 65536")
            if callers := {process for (process,) in found if process is not None}:
                return callers
    return set()


def _process(process: int, devices: Sequence[int], seen: Mapping[int, Mapping[int, int]]) -> ReportPart:
    gpus = seen.get((process >> THREAD_BITS) & _PID_MASK, {})
    part = ReportPart("", process, devices[0] if len(devices) == 1 else None, gpus)
    shown = f"device {part.gpu}, process {part.pid}" if part.gpu is not None else f"process {part.pid}"
    return replace(part, name=shown)


def _gpus(database: TableFile) -> dict[int, dict[int, int]]:
    """By process, the host's number of each GPU that it saw, by CUDA's number of it; none that is said in two ways."""
    columns = ("pid", "cudaId", "gpuId")
    if not database.has(GPUS_SEEN, *columns):
        return {}
    said: dict[tuple[int, int], set[int]] = {}
    listed = ", ".join(database.integer(GPUS_SEEN, name) for name in columns)
    for pid, number, gpu in database.rows(f"SELECT DISTINCT {listed} FROM {GPUS_SEEN} LIMIT 65536"):
        if None not in (pid, number, gpu) and 0 <= gpu < _MOST_GPUS:
            said.setdefault((pid, number), set()).add(gpu)
    found: dict[int, dict[int, int]] = {}
    for (pid, number), gpus in said.items():
        if len(gpus) == 1:
            found.setdefault(pid & _PID_MASK, {})[number] = gpus.pop()
    return found


def stated_rank(database: TableFile, part: ReportPart, *, is_alone: bool) -> tuple[int | None, int | None]:
    """Rank and number of ranks that the export states for a part; None where it states none.

    Args:
        is_alone: whether the report is of this process only, so that the launcher's environment is its own.
    """
    named = _mpi_ranks(database, part, is_alone=is_alone)
    if not named:
        named = {int(match[1]) for name in _thread_names(database, part) if (match := _MPI_RANK.search(name))}
    launched_rank, launched_size = launched(database) if is_alone else (None, None)
    rank = named.pop() if len(named) == 1 else launched_rank
    size = _world_size(database) if rank is not None else None
    return rank, size or launched_size


def _mpi_ranks(database: TableFile, part: ReportPart, *, is_alone: bool) -> set[int]:
    """Ranks that MPI gave to the process; several where it was initialised anew in another world."""
    if not database.has(_MPI_RANKS, "globalTid", "rank") or (part.process is None and not is_alone):
        return set()
    thread, rank = database.integer(_MPI_RANKS, "globalTid"), database.integer(_MPI_RANKS, "rank")
    where, parameters = (f" WHERE {thread} BETWEEN ? AND ?", part.threads) if part.process is not None else ("", ())
    found = database.rows(f"SELECT DISTINCT {rank} FROM {_MPI_RANKS}{where} LIMIT 1024", parameters)
    return {number for (number,) in found if number is not None and number >= 0}


def _world_size(database: TableFile) -> int | None:
    """Ranks of the largest communicator of MPI, which is that of all of them; None where none is recorded."""
    size = database.integer(_MPI_COMMUNICATORS, "size")
    if not database.has(_MPI_COMMUNICATORS, "size"):
        return None
    ((largest,),) = database.rows(f"SELECT MAX({size}) FROM {_MPI_COMMUNICATORS}")
    return largest if largest is not None and 0 < largest < 2**31 else None


def _thread_names(database: TableFile, part: ReportPart) -> list[str]:
    if part.process is None or not database.has("NVTX_EVENTS", "eventType", "text", "globalTid"):
        return []
    kind, thread = database.integer("NVTX_EVENTS", "eventType"), database.integer("NVTX_EVENTS", "globalTid")
    rows = database.rows(
        f"SELECT {database.text('NVTX_EVENTS', 'text')} FROM NVTX_EVENTS WHERE {kind} = ? AND {thread} BETWEEN ? AND ?",
        [THREAD_NAME_EVENT, *part.threads],
    )
    return [text for (text,) in rows if text is not None]
