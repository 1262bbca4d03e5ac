"""Debug logs as a story tells them. In: lines of NCCL by process. Out: a store in memory with stage fabric built."""

import pickle
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.given import add_facts, built
from traceforge.records import ReadOptions
from traceforge.sources.flight_recorder import SOURCE as RECORDER
from traceforge.sources.nccl_log import SOURCE
from traceforge.store.database import Store
from traceforge.store.ingest import ingest_files


class Process:
    """What one process printed. Every method adds lines and returns the process, so that stories chain."""

    def __init__(self, rank: int, *, host: str = "a", device: int = 0, prefix: str = "") -> None:
        self.rank, self.host, self.device = rank, host, device
        self.head = f"{prefix}{host}:{1000 + rank}:{1000 + rank} [{device}] NCCL INFO "
        self.lines: list[str] = []

    def says(self, *messages: str) -> "Process":
        self.lines += [self.head + message for message in messages]
        return self

    def init(
        self, rank: int | None = None, size: int = 2, *, comm: int = 0xA0, comm_hash: str | None = "0xfeed"
    ) -> "Process":
        """The line that ends the init of a communicator."""
        own = self.rank if rank is None else rank
        named = "" if comm_hash is None else f" commId {comm_hash}"
        bus = 0x10000 * (self.device + 1)
        return self.says(
            f"comm {comm:#x} rank {own} nranks {size} cudaDev {self.device} busId {bus:x}{named} - Init COMPLETE"
        )

    def sends(self, to: int, via: str, *, channel: int = 0, rank: int | None = None) -> "Process":
        own = self.rank if rank is None else rank
        word = " [send]" if via.startswith("NET") else ""
        return self.says(f"Channel {channel:02}/0 : {own}[0] -> {to}[0]{word} via {via}")

    def receives(self, sender: int, via: str, *, channel: int = 0) -> "Process":
        return self.says(f"Channel {channel:02}/0 : {sender}[0] -> {self.rank}[0] [receive] via {via}")

    def calls(self, op: str = "AllReduce", elements: int = 256, *, comm: int = 0xA0, size: int = 2) -> "Process":
        return self.says(
            f"{op}: opCount 0 sendbuff 0x7f recvbuff 0x7f count {elements} datatype 7 op 0 root 0 comm {comm:#x} "
            f"[nranks={size}] stream 0x55"
        )


def store_of_logs(*files: list[Process]) -> Store:
    """A store with one log a list of processes; its only run has number 0."""
    store = Store(None, threads=1, is_kept=False)
    add_logs(store, *files, run_name="job")
    return store


def add_logs(store: Store, *files: list[Process], run_name: str = "story") -> None:
    """Logs added to a store, to the run that `tests.given` makes unless another is named."""
    with TemporaryDirectory() as folder:
        paths = []
        for number, processes in enumerate(files):
            path = Path(folder, f"nccl{number}.log")
            path.write_text("".join(f"{line}\n" for process in processes for line in process.lines))
            paths.append(path)
        ingest_files(
            store,
            paths,
            {"nccl_log": SOURCE},
            run_name=run_name,
            executor=None,
            options=ReadOptions(),
            shown=lambda path: path.name,
        )


def fabric_of(*files: list[Process], asked: str = "fabric") -> Store:
    """The same with stage fabric built, or the tables of it that are asked for (`fabric.nic fabric.job`)."""
    return built(store_of_logs(*files), *asked.split())


def fabric_of_folder(folder: Path, *, asked: str = "fabric") -> Store:
    """The files of a folder in a store, built as by `fabric_of`."""
    store = Store(None, threads=1, is_kept=False)
    add_facts(store, folder)
    return built(store, *asked.split())


def add_dumps(store: Store, *dumps: dict[str, object], run_name: str = "job") -> None:
    """Flight recorder dumps of ranks 0, 1, ... added to a run of a store."""
    with TemporaryDirectory() as folder:
        paths = []
        for rank, dump in enumerate(dumps):
            path = Path(folder, f"nccl_trace_rank_{rank}")
            path.write_bytes(pickle.dumps(dump, protocol=2))
            paths.append(path)
        ingest_files(
            store,
            paths,
            {"flight_recorder": RECORDER},
            run_name=run_name,
            executor=None,
            options=ReadOptions(),
        )
