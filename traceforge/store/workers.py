"""Processes that read files. In: how many. Out: an executor whose processes never outlive the one that asked.

Idea: a process that is killed cannot end its readers, so each reader watches whether its parent is still there. One
that crashes breaks its pool, and a new pool takes the place of that one.
"""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

_PAUSE_S = 0.5


Arguments = ParamSpec("Arguments")
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

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See `Executor.shutdown`."""
        for pool in filter(None, (self._pool, self._alone)):
            pool.shutdown(wait, cancel_futures=cancel_futures)


def _pool(workers: int) -> ProcessPoolExecutor:
    """Processes that share no memory; threads of polars do not survive a fork."""
    return ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_watch_parent, initargs=(os.getpid(),)
    )


def _watch_parent(parent: int) -> None:
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PAUSE_S)
    os._exit(1)
