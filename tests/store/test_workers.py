"""Processes that work: whatever ends them, nobody waits for them for ever."""

import multiprocessing
import threading
import time
from collections.abc import Sequence

import pytest

from traceforge.store.workers import ReaderPool, results_in_order


def test_readers_that_are_killed_are_given_up_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    # given one reader, several tasks that wait behind the one it works on, and a thread that manages it
    said: list[object] = []
    monkeypatch.setattr(threading, "excepthook", said.append)
    done: list[float] = []

    def has_room(_ahead: Sequence[float], _task: float) -> bool:
        return True

    def instead(_task: float, error: Exception) -> None:
        raise error

    with ReaderPool(1) as pool:
        results = results_in_order(pool, time.sleep, [0, 60, 1, 2, 3, 4, 5], has_room, instead, lambda *one: None)
        done.append(next(results)[0])
        # when it is killed, as by a signal, and what it was to do is given up
        for reader in multiprocessing.active_children():
            reader.kill()
        results.close()

    # then all came to an end, and no thread failed
    assert (done, said) == ([0], [])
