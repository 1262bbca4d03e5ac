"""Workers on the machines of a Dask cluster. In: the address of its scheduler. Out: an executor for `api.ingest`.

Idea: a task names files and a folder that all machines share, and its answer is small, so the scheduler moves no rows.
Each attempt at a task writes into a folder of its own, and only the one that the scheduler takes for done counts: a
worker that was given up and still writes disturbs nobody. What would meet every file (another version, a folder that
is not shared, a full disk) ends the ingest and names the worker; files that were added before that are kept.
Not handled: a network that others may reach. Whoever reaches a Dask scheduler can run programs on its workers.
"""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, InvalidStateError
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

from traceforge import api
from traceforge.errors import ClusterError, TraceforgeError, UsageError
from traceforge.store.folder import part_name
from traceforge.store.ingest import size_of
from traceforge.store.part_task import MadePart, PartTask, make_part
from traceforge.store.part_workers import crashed
from traceforge.store.partition_writer import PartitionedFile
from traceforge.store.spool import Examined, Task, crashed_reader, read_task

if TYPE_CHECKING:
    from distributed import Client

_CONNECT_S = 20.0
_FIRST_WORKER_S = 60.0
_NO_WORKER_S = 300.0
_FETCH_S = 30.0  # for some hundred bytes
_SEEN_S = 60.0  # file systems of clusters show the files of other machines late
_PAUSE_S = 0.5
_INSTALL = "install the same version there, and start it again"
_MOST_SUBMITS = 2  # the scheduler itself gives up a task when four workers died of it

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
_Given = Task | PartTask


@contextmanager
def readers_at(address: str) -> "Iterator[ClusterReaders]":
    """Readers on the workers of the cluster at `dask://HOST:PORT`, or of `dask:///path/of/scheduler.json`.

    Raises:
        UsageError: this is no such address, or Dask is not installed.
        ClusterError: no scheduler answers, there is no worker, or workers read with other versions.
    """
    place = _place_of(address)
    try:
        from distributed import Client
    except ImportError as error:
        hint = "pip install 'traceforge[cluster]', here and on the workers"
        raise UsageError("--executor dask://… needs the extra `cluster`", hint=hint) from error
    try:
        client = Client(**place, timeout=_CONNECT_S, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        hint = "start one with `dask scheduler`, and name the address that it prints"
        raise ClusterError(f"no scheduler answers: {error}", where=address, hint=hint) from error
    with client, ClusterReaders(client, address) as readers:
        yield readers


class ClusterReaders(Executor):
    """An executor on all workers of a cluster, those that come later too: they read files and make tables in parts.

    Args:
        client: connected.
        address: how messages call the cluster.

    Attributes:
        client: the same.

    Raises:
        ClusterError: there is no worker, or some read with other versions.
    """

    def __init__(self, client: "Client", address: str) -> None:
        self.client = client
        self._address = address
        self._running: set[Future[Any]] = set()
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._check_workers()
        threading.Thread(target=self._watch, daemon=True).start()

    def submit(
        self, work: Callable[Arguments, Result], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Future[Result]:
        """Have a worker do a task; see `Executor.submit`. Takes `read_task` or `make_part` with its task alone."""
        (task,) = args
        if work is read_task and isinstance(task, Task):
            given: _Given = replace(task, path=task.path.absolute())
        elif work is make_part and isinstance(task, PartTask):
            given = task
        else:
            raise TypeError("workers of a cluster run nothing but `read_task` and `make_part`")
        answer: Future[Any] = Future()
        with self._lock:
            self._running.add(answer)
        answer.add_done_callback(self._forget)
        self._send(answer, given, submits=1)
        return answer

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ask for nothing more; the cluster itself goes on."""
        self._done.set()

    def workers(self) -> dict[str, str]:
        """Which version each worker reads with, by its address; those that just died are left out.

        Raises:
            ClusterError: one cannot run traceforge at all.
        """
        found = self.client.run(_version_here, on_error="return")
        for worker, answer in sorted(found.items()):
            if isinstance(answer, Exception) and not isinstance(answer, OSError):
                raise ClusterError(f"it cannot run traceforge: {answer}", where=f"worker {worker}", hint=_INSTALL)
        return {worker: answer for worker, answer in found.items() if isinstance(answer, str)}

    def _check_workers(self) -> None:
        with suppress(TimeoutError):
            self.client.wait_for_workers(1, timeout=_FIRST_WORKER_S)
        found = self.workers()
        if not found:
            hint = "start some with `dask worker`, on machines that see the traces and the database"
            raise ClusterError("the cluster has no workers", where=self._address, hint=hint)
        for worker, version in sorted(found.items()):
            if version != api.worker_version():
                raise _other_version(worker, version, api.worker_version())

    def _send(self, answer: Future[Any], task: _Given, submits: int) -> None:
        try:
            asked = self.client.submit(_work_on_worker, task, api.worker_version(), pure=False)
        except Exception as error:  # noqa: BLE001 - whatever Dask says of a cluster that is gone
            _set_error(answer, self._lost(error))
            return
        take = partial(self._take, answer, task, submits)
        asked.add_done_callback(take)  # type: ignore[no-untyped-call]

    def _take(self, answer: Future[Any], task: _Given, submits: int, asked: Any) -> None:
        """Hand over what became of a task, once it is seen here."""
        from distributed import KilledWorker

        try:
            worker, found = asked.result(timeout=_FETCH_S)
            _wait_until_seen(worker, found, answer)
        except KilledWorker:
            if submits < _MOST_SUBMITS:
                self._send(answer, task, submits + 1)
                return
            if isinstance(task, PartTask):
                _set_error(answer, crashed(task))
            else:
                _set_result(answer, crashed_reader(task))
            return
        except Exception as error:  # noqa: BLE001 - the error of a task, or of a cluster that is gone
            is_lost = asked.cancelled() or isinstance(error, TimeoutError)
            _set_error(answer, self._lost(error) if is_lost else error)
        else:
            _set_result(answer, found)

    def _watch(self) -> None:
        """End all that waits once the scheduler is lost, or the last worker is for long."""
        seen = time.monotonic()
        while not self._done.wait(_PAUSE_S):
            is_lost = self.client.status not in ("running", "connecting")
            if not is_lost and self.client.scheduler_info(n_workers=1).get("workers"):
                seen = time.monotonic()
            if is_lost or time.monotonic() - seen > _NO_WORKER_S:
                why = "its scheduler is gone" if is_lost else f"it had no worker for {_NO_WORKER_S:.0f} s"
                with self._lock:
                    waiting = list(self._running)
                for answer in waiting:
                    _set_error(answer, self._lost(why))

    def _lost(self, why: object) -> ClusterError:
        hint = "files that were added are kept: run the same command again to read the others"
        return ClusterError(f"the cluster is lost: {why}", where=self._address, hint=hint)

    def _forget(self, answer: Future[Any]) -> None:
        with self._lock:
            self._running.discard(answer)


def _version_here() -> str:
    return api.worker_version()


def _work_on_worker(task: _Given, version: str) -> tuple[str, Examined | MadePart]:
    """Do a task in a folder of this attempt. Runs in a worker.

    Raises:
        ClusterError: this worker cannot do any task of the job.
    """
    from distributed import get_worker

    worker = f"{get_worker().name} ({get_worker().address})"
    if api.worker_version() != version:
        raise _other_version(worker, api.worker_version(), version)
    for path, is_seen in _needed(task):
        if not is_seen:
            hint = "traces and database must lie in folders that all machines share, under the same path"
            raise ClusterError("it does not see this", where=f"worker {worker}: {path}", hint=hint)
    folder = task.folder.with_name(f"{task.folder.name}-{token_hex(8)}")
    try:
        if isinstance(task, Task):
            return worker, read_task(replace(task, folder=folder))
        return worker, make_part(replace(task, folder=folder))
    except TraceforgeError:
        raise
    except Exception as error:  # what would meet any other task as well: see `store.failures`
        hint = "make room there, then run the same command again: files that were added are kept"
        raise ClusterError(f"it cannot write: {error}", where=f"worker {worker}", hint=hint) from error


def _needed(task: _Given) -> Iterator[tuple[Path, bool]]:
    """What a worker has to see for a task, and whether it does; what was just written it may see late."""
    yield task.folder.parent, task.folder.parent.is_dir()
    if isinstance(task, Task):
        yield task.path, task.size_bytes == 0 or size_of(task.path) > 0
        return
    end = time.monotonic() + _SEEN_S
    for path in task.files:
        while not (is_seen := path.is_file()) and time.monotonic() < end:
            time.sleep(_PAUSE_S)
        yield path, is_seen


def _wait_until_seen(worker: str, found: Examined | MadePart, answer: Future[Any]) -> None:
    """Wait until this machine sees the rows that a worker wrote, or nobody waits for them any more.

    Raises:
        ClusterError: it does not.
    """
    end = time.monotonic() + _SEEN_S
    for paths, size_bytes in _written(found):
        while not answer.done() and sum(map(_size_bytes, paths)) != size_bytes:
            if time.monotonic() > end:
                hint = "the database must lie in a folder that all machines share, under the same path"
                what = f"this machine does not see what worker {worker} wrote"
                raise ClusterError(what, where=str(paths[0]), hint=hint)
            time.sleep(_PAUSE_S)


def _written(found: Examined | MadePart) -> Iterator[tuple[list[Path], int]]:
    """Files that a worker wrote, and the size of them together."""
    if isinstance(found, MadePart):
        yield from (([path], found.sizes_bytes[name]) for name, path in found.files.items())
    elif isinstance(found.rows, PartitionedFile):
        for one in found.rows.partitions:
            names = [part_name(one.mark, number) for number in range(one.part_count)]
            yield [found.rows.folder / one.table / name for name in names], one.size_bytes


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _other_version(worker: str, version: str, wanted: str) -> ClusterError:
    what = f"it reads with traceforge {version}, and this is {wanted}"
    return ClusterError(what, where=f"worker {worker}", hint=_INSTALL)


def _place_of(address: str) -> dict[str, str]:
    """What a client takes for an address."""
    with suppress(ValueError):
        parts = urlsplit(address)
        if parts.scheme == "dask" and parts.hostname and parts.port and not parts.path.strip("/"):
            return {"address": f"tcp://{parts.netloc}"}
        if parts.scheme == "dask" and not parts.netloc and parts.path.endswith(".json"):
            return {"scheduler_file": parts.path}
    hint = "dask://HOST:PORT, or dask:///path/of/scheduler.json"
    raise UsageError(f"--executor names no cluster: {address}", hint=hint)


def _set_result(answer: Future[Any], found: Examined) -> None:
    with suppress(InvalidStateError):  # nobody waits for it any more
        answer.set_result(found)


def _set_error(answer: Future[Any], error: Exception) -> None:
    with suppress(InvalidStateError):
        answer.set_exception(error)
