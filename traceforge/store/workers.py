"""Processes that read files. In: how many. Out: an executor whose processes never outlive the one that asked.

Idea: a process that is killed cannot end its readers, so each reader watches whether its parent is still there.
"""

import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

_PAUSE_S = 0.5


def reader_pool(workers: int) -> ProcessPoolExecutor:
    """An executor of processes of their own; threads of polars do not survive a fork."""
    return ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_watch_parent, initargs=(os.getpid(),)
    )


def _watch_parent(parent: int) -> None:
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PAUSE_S)
    os._exit(1)
