"""Where jobs of `capture.py` run: on this machine's cores over gloo, or all on its one GPU over NCCL.

In: a rank's number. Out: a process made ready for it, and when its steps ended on the machine's clock.
Idea: NCCL refuses two ranks on one device of one host, so that each rank is told to be a host of its own; they then
reach one another through sockets, as over a network. Steps of a device end by its own events, read after the run.
"""

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol

import torch
from torch.profiler import ProfilerActivity

_ANCHORS = 20


@dataclass(frozen=True)
class Slowed:
    """A part of the network that is slow.

    Attributes:
        cable: of which host, as `node2`, or `uplink`; both directions.
        share: of its usual rate that is left.
    """

    cable: str
    share: float


class Place(NamedTuple):
    """Where a rank runs."""

    rank: int
    host: int
    hosts: int


class Machine(Protocol):
    """What a rank computes on.

    Attributes:
        values: of each layer's weight.
        rows: of a batch.
    """

    backend: str
    activities: tuple[ProfilerActivity, ...]
    values: int
    rows: int

    def settle(self, place: Place) -> None:
        """Make this process ready, before its job is made."""

    def work(self) -> None:
        """Clean steps of a scenario begin."""

    def end_step(self, awaited: bool) -> Any:
        """Mark the end of a step, and wait for it if `awaited`, as a loop does that reads its loss."""

    def ends_ns(self, marks: list[Any]) -> list[int]:
        """When the marked steps ended, on the machine's monotonic clock."""

    def set_network(self, slowed: Slowed | None) -> None:
        """Make a part of the network slow from now on, or all of it as it was."""

    def rest(self) -> None:
        """All steps have been made: what comes must not hold up other ranks."""


class Cores:
    """This machine's cores."""

    backend = "gloo"
    activities = (ProfilerActivity.CPU,)
    values, rows = 64, 4

    def settle(self, _place: Place) -> None:
        """Threads that libraries start are to run before what else the machine does, as `work` has it."""
        torch.set_num_threads(1)
        self.work()

    def work(self) -> None:
        """Ranks mostly sleep; what else runs on the machine must not be their noise."""
        _schedule(os.SCHED_RR, 10)

    def end_step(self, _awaited: bool) -> int:
        """All is done when the host is."""
        return time.monotonic_ns()

    def ends_ns(self, marks: list[int]) -> list[int]:
        """As marked."""
        return marks

    def set_network(self, slowed: Slowed | None) -> None:
        """There is none."""
        _needs_no_network(slowed)

    def rest(self) -> None:
        """Run as others do."""
        _schedule(os.SCHED_OTHER, 0)


class OneGpu:
    """The machine's one GPU, shared by all ranks."""

    backend = "nccl"
    activities = (ProfilerActivity.CPU, ProfilerActivity.CUDA)
    values, rows = 64, 4

    def settle(self, place: Place) -> None:
        """Be a host to NCCL, and make tensors on the device."""
        os.environ.update(NCCL_HOSTID=f"node{place.rank}", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1")
        torch.set_num_threads(1)
        torch.set_default_device("cuda:0")
        torch.cuda.synchronize()

    def work(self) -> None:
        """The device's ranks do not share cores."""

    def end_step(self, awaited: bool) -> torch.cuda.Event:
        """An event behind all that the step asked the device for."""
        mark = torch.cuda.Event(enable_timing=True)
        mark.record()
        if awaited:
            mark.synchronize()
        return mark

    def ends_ns(self, marks: list[torch.cuda.Event]) -> list[int]:
        """Counted back from events whose time on the host's clock is known, best of some."""
        torch.cuda.synchronize()
        anchors = []
        for _ in range(_ANCHORS):
            event, before_ns = torch.cuda.Event(enable_timing=True), time.monotonic_ns()
            event.record()
            event.synchronize()
            anchors.append((time.monotonic_ns() - before_ns, before_ns, event))
        lasted_ns, before_ns, anchor = min(anchors, key=lambda one: one[0])
        return [before_ns + lasted_ns // 2 - round(mark.elapsed_time(anchor) * 1e6) for mark in marks]

    def set_network(self, slowed: Slowed | None) -> None:
        """There is none."""
        _needs_no_network(slowed)

    def rest(self) -> None:
        """The device's ranks do not share cores."""


def _needs_no_network(slowed: Slowed | None) -> None:
    if slowed:
        raise ValueError(f"{slowed.cable} is a cable; faults of the network need --machine network")


def compute(rows: torch.Tensor, seconds: float) -> None:
    """Take a time where `rows` are: on the device without a core, on the host asleep."""
    if rows.is_cuda:
        torch.cuda._sleep(round(seconds * _cycles_per_second()))
    else:
        time.sleep(seconds)


@cache
def _cycles_per_second() -> float:
    # Counted once, after a first try: a device's clock under load hardly changes from step to step.
    for cycles in (10_000_000, 100_000_000):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        torch.cuda._sleep(cycles)
        end.record()
        end.synchronize()
    return cycles / start.elapsed_time(end) * 1e3


def _schedule(policy: int, priority: int) -> None:
    with suppress(OSError):
        os.sched_setscheduler(0, policy, os.sched_param(priority))
