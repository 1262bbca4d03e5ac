"""A rank's own pacing: bounded delay, as `traceforge replay` replays it, in a real training loop.

In:   how long each of this rank's all-reduces took; nothing of other ranks.
Out:  a sleep before the next step, ns, and a busy wait on another core where the scenario asks for one.
Idea: a rank cannot see when others arrive. Its wait is what an all-reduce took longer than the shortest one of the
      same bucket so far; the engine, which sees all ranks, takes the true wait.
Not:  warm-up steps, which are timed but never delayed.
"""

import os
import queue
import threading
import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from statistics import fmean

import torch
import torch.distributed as dist

Future = torch.futures.Future[torch.Tensor]


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


class BusyWait(threading.Thread):
    """A progress thread that spins on `core` while this rank awaits others, as polling drivers do."""

    def __init__(self, core: int) -> None:
        """Start it; it sleeps until told to spin."""
        super().__init__(daemon=True)
        self.core, self.spins = core, threading.Event()
        self.start()

    def run(self) -> None:
        """Spin while `spins` is set."""
        os.sched_setaffinity(0, {self.core})
        while True:
            self.spins.wait()
            while self.spins.is_set():
                pass


class TimedAllReduce:
    """DDP's all-reduce with a clock; `begin` is the hook for `register_comm_hook`.

    A thread of its own waits for each all-reduce, reads the clock and hands the result on. A callback would run Python
    in gloo's real-time threads.
    """

    def __init__(self, world_size: int, busy_wait: BusyWait | None) -> None:
        """Say how many ranks average, and who spins meanwhile."""
        self.world_size, self.busy_wait = world_size, busy_wait
        self.took_ns: dict[int, int] = {}
        self.shortest_ns: dict[int, int] = defaultdict(lambda: 2**62)
        self.under_way: queue.Queue[tuple[int, int, dist.Work, Future, torch.Tensor]] = queue.Queue()
        threading.Thread(target=self._watch, daemon=True).start()

    def begin(self, _: object, bucket: dist.GradBucket) -> Future:
        """Begin one bucket; its time is taken when it is over."""
        start_ns, tensor, reduced = time.monotonic_ns(), bucket.buffer().div_(self.world_size), Future()
        work = dist.all_reduce(tensor, async_op=True)
        self.under_way.put((bucket.index(), start_ns, work, reduced, tensor))
        if self.busy_wait and bucket.is_last():
            self.busy_wait.spins.set()
        return reduced

    def wait_ns(self) -> float:
        """Mean wait of the step that ended, ns; ends the busy wait."""
        if self.busy_wait:
            self.busy_wait.spins.clear()
        self.under_way.join()
        for index, took in self.took_ns.items():
            self.shortest_ns[index] = min(self.shortest_ns[index], took)
        return fmean(took - self.shortest_ns[index] for index, took in self.took_ns.items())

    def _watch(self) -> None:
        os.setpriority(os.PRIO_PROCESS, 0, -19)
        while True:
            index, start_ns, work, reduced, tensor = self.under_way.get()
            work.wait()
            self.took_ns[index] = time.monotonic_ns() - start_ns
            reduced.set_result(tensor)
            self.under_way.task_done()


def parse(text: str) -> BoundedDelay:
    """Return the policy that `window=4,gain=0.8,…` writes down."""
    values = dict(item.split("=") for item in text.split(",") if item)
    return BoundedDelay(**{key: int(value) if key == "window" else float(value) for key, value in values.items()})
