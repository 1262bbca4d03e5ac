"""Processes that work. In: how many, or tasks for an executor. Out: an executor whose processes never outlive the one
that asked; results in the order of tasks.

Idea: a process that is killed cannot end its workers, so each worker watches whether its parent is still there. One
that crashes breaks its pool, and a new pool takes the place of that one.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import ParamSpec, TypeVar

from traceforge.files import size_bytes
from traceforge.store.allocator import give_back_large_arrays

_PAUSE_S = 0.5
# On disk; to read so much takes about as long as to start a process that reads.
_WORTH_PROCESSES_BYTES = 4_000_000


Arguments = ParamSpec("Arguments")
Item = TypeVar("Item")
Result = TypeVar("Result")


class ReaderPool(Executor):
    """An executor of processes of its own that takes work again after one of them crashed.

    Args:
        workers: how many.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool = _pool(workers)
        self._alone: ProcessPoolExecutor | None = None

    def submit(
        self, work: Callable[Arguments, Result], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Future[Result]:
        """See `Executor.submit`; what was submitted before a crash ends with BrokenExecutor."""
        try:
            return self._pool.submit(work, *args, **kwargs)
        except BrokenExecutor:
            self._pool.shutdown(wait=False)
            self._pool = _pool(self._workers)
            return self._pool.submit(work, *args, **kwargs)

    def run_alone(
        self, work: Callable[Arguments, Result], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """The result of work in a process that does nothing else.

        Raises:
            BrokenExecutor: that process crashed.
        """
        self._alone = self._alone or _pool(1)
        try:
            return self._alone.submit(work, *args, **kwargs).result()
        except BrokenExecutor:
            self._alone.shutdown(wait=False)
            self._alone = None
            raise

    def cancel_waiting(self) -> None:
        """Cancel what was submitted and is not being worked on.

        The thread that manages the processes does it: where these are killed meanwhile, it fails on what another
        thread has cancelled (CPython before 3.12.1), and nothing that is under way would ever end.
        """
        pool, self._pool = self._pool, _pool(self._workers)
        pool.shutdown(wait=False, cancel_futures=True)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See `Executor.shutdown`."""
        for pool in filter(None, (self._pool, self._alone)):
            pool.shutdown(wait, cancel_futures=cancel_futures)


@contextmanager
def readers(given: Executor | None, jobs: int | None, files: Sequence[Path]) -> Iterator[Executor | None]:
    """What reads files and makes tables in parts; None where this process does."""
    if given is not None:
        yield given
        return
    with processes(worker_count(jobs, list(map(size_bytes, files)))) as pool:
        yield pool


def worker_count(jobs: int | None, sizes_bytes: Sequence[int]) -> int:
    """How many processes work on files of these sizes.

    Args:
        jobs: at most so many; when None as many as there are cores, or one where the files are read sooner than
            processes start.
    """
    if jobs is None:
        jobs = 1 if sum(sizes_bytes) < _WORTH_PROCESSES_BYTES else os.cpu_count() or 1
    return min(jobs, len(sizes_bytes))


@contextmanager
def processes(workers: int) -> Iterator[Executor | None]:
    """So many processes that work; None where one would be alone."""
    if workers <= 1:
        yield None
        return
    with ReaderPool(workers) as pool:
        yield pool


def results_in_order(
    executor: Executor,
    work: Callable[[Item], Result],
    tasks: Sequence[Item],
    has_room: Callable[[Sequence[Item], Item], bool],
    instead: Callable[[Item, Exception], Result],
    on_done: Callable[[Item, Result], None],
) -> Generator[tuple[Item, Result], None, None]:
    """Each task with its result, in order, whichever finished first.

    Args:
        work: what a worker does with a task.
        has_room: whether one more task may be given out beside those that are ahead of the one handed over.
        instead: the result of a task that failed; it may raise, which ends all.
        on_done: called as soon as a result is there.
    """
    todo, ahead = deque(enumerate(tasks)), deque[tuple[int, Item]]()
    jobs: dict[Future[Result], tuple[int, Item]] = {}
    done: dict[int, Result] = {}
    ended: SimpleQueue[Future[Result]] = SimpleQueue()
    try:
        while todo or jobs or ahead:
            while todo and has_room([task for _, task in ahead], todo[0][1]):
                number, task = todo.popleft()
                job = executor.submit(work, task)
                jobs[job] = number, task
                job.add_done_callback(ended.put)
                ahead.append((number, task))
            for future in _some_ended(ended):
                number, task = jobs.pop(future)
                try:
                    done[number] = future.result()
                except Exception as error:  # noqa: BLE001 - whatever a worker raised; `instead` judges it
                    done[number] = instead(task, error)
                on_done(task, done[number])
            while ahead and ahead[0][0] in done:
                number, task = ahead.popleft()
                yield task, done.pop(number)
    finally:
        # After an interruption nobody wants the rest; what is being worked on ends before its folder goes.
        if jobs:
            _cancel(executor, list(jobs))
        while not all(job.done() for job in jobs):
            _some_ended(ended)


def _cancel(executor: Executor, jobs: "Sequence[Future[Result]]") -> None:
    if isinstance(executor, ReaderPool):
        executor.cancel_waiting()
        return
    for job in jobs:
        job.cancel()


def _some_ended(ended: "SimpleQueue[Future[Result]]") -> "list[Future[Result]]":
    """Those that have. Waits in short steps: a signal that comes while processes start wakes no sleeper."""
    with suppress(Empty):
        return [ended.get(timeout=_PAUSE_S), *(ended.get() for _ in range(ended.qsize()))]
    return []


def _pool(workers: int) -> ProcessPoolExecutor:
    """Processes that share no memory; threads of polars do not survive a fork."""
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin, initargs=(os.getpid(),))


def _begin(parent: int) -> None:
    give_back_large_arrays()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PAUSE_S)
    os._exit(1)
