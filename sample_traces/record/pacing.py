"""A rank's own pacing: bounded delay, as `traceforge replay` replays it, in a real training loop.

In:   when this rank and the others arrived at an all-reduce.
Out:  a sleep before the next step, ns.
Idea: each rank posts its arrivals on a board in shared memory, which all have done when the all-reduce is over. So a
      rank knows exactly how long it waited, and decides alone.
Not:  warm-up steps, which are never delayed; ranks of several machines, which share no clock.
"""

import os
import queue
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

import numpy as np
import torch
import torch.distributed as dist
from busy_wait import BusyWait

Future = torch.futures.Future[torch.Tensor]
Board = np.ndarray[tuple[int, int, int], np.dtype[np.int64]]
STEPS_POSTED = 4
"""Steps on the board; a rank is never a whole step ahead of another."""
MOST_BUCKETS = 16


@dataclass
class BoundedDelay:
    """The policy of one rank.

    Attributes:
        window: steps over which slack is averaged.
        threshold: slack above which it engages, a share of the mean step time.
        gain: delay over mean slack.
        max_delay: longest delay, a share of the mean step time; 0 never delays.
    """

    window: int = 4
    threshold: float = 0.02
    gain: float = 0.8
    max_delay: float = 0.0
    slack_ns: deque[float] = field(default_factory=deque)
    step_ns: list[int] = field(default_factory=list)
    delay_ns: int = 0

    def next_delay_ns(self) -> int:
        """Delay before the next step, from what this rank has seen."""
        self.delay_ns = 0
        if len(self.slack_ns) == self.window and self.max_delay:
            slack, step = fmean(self.slack_ns), fmean(self.step_ns)
            if slack > self.threshold * step:
                self.delay_ns = round(min(self.max_delay * step, self.gain * slack))
        return self.delay_ns

    def saw(self, wait_ns: float, step_ns: int) -> None:
        """Take in one step: its mean wait and how long it took, own delay included."""
        self.slack_ns.append(wait_ns + self.delay_ns)
        self.step_ns.append(step_ns)
        if len(self.slack_ns) > self.window:
            self.slack_ns.popleft()


class TimedAllReduce:
    """DDP's all-reduce with a clock; `begin` is the hook for `register_comm_hook`.

    A thread of its own waits for each all-reduce and hands the result on. A callback would run Python in gloo's
    real-time threads.
    """

    def __init__(self, rank: int, board: Board, busy_wait: BusyWait | None) -> None:
        """Say who waits, where arrivals are posted, and who spins meanwhile."""
        self.rank, self.board, self.busy_wait = rank, board, busy_wait
        self.step = 0
        self.under_way: queue.Queue[tuple[dist.Work, Future, torch.Tensor]] = queue.Queue()
        threading.Thread(target=self._watch, daemon=True).start()

    def begin(self, _: object, bucket: dist.GradBucket) -> Future:
        """Post the arrival at one bucket and begin it."""
        tensor, reduced = bucket.buffer().div_(self.board.shape[-1]), Future()
        self.board[self.step % STEPS_POSTED, bucket.index(), self.rank] = time.monotonic_ns()
        work = dist.all_reduce(tensor, async_op=True)
        self.under_way.put((work, reduced, tensor))
        if self.busy_wait and bucket.is_last():
            self.busy_wait.spin(is_on=True)
        return reduced

    def wait_ns(self) -> float:
        """Mean wait over the buckets of the step that ended, ns; ends the busy wait."""
        if self.busy_wait:
            self.busy_wait.spin(is_on=False)
        posted = self.board[self.step % STEPS_POSTED]
        arrived = posted[posted[:, self.rank] > 0]
        self.board[(self.step + 2) % STEPS_POSTED, :, self.rank] = 0
        self.step += 1
        return float((arrived.max(axis=1) - arrived[:, self.rank]).mean())

    def _watch(self) -> None:
        os.setpriority(os.PRIO_PROCESS, 0, -19)
        while True:
            work, reduced, tensor = self.under_way.get()
            work.wait()
            reduced.set_result(tensor)


def open_board(path: Path, ranks: int) -> Board:
    """Return the board of arrivals, shape (steps, buckets, ranks), monotonic ns; whoever comes first makes it."""
    with path.open("ab") as file:
        file.truncate(STEPS_POSTED * MOST_BUCKETS * ranks * 8)
    return np.memmap(path, dtype=np.int64, mode="r+", shape=(STEPS_POSTED, MOST_BUCKETS, ranks))


def parse(text: str) -> BoundedDelay:
    """Return the policy that `window=4,gain=0.8,…` writes down."""
    values = dict(item.split("=") for item in text.split(",") if item)
    return BoundedDelay(**{key: int(value) if key == "window" else float(value) for key, value in values.items()})
