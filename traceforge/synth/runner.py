"""One role at work. In: its program and a load. Out: its part of the events, as far as the others have got.

The host is a generator that stops where it must know when a task of the device ends; streams run what the host has
given them, in order.
"""

from collections import deque
from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from traceforge.synth.cluster import Cluster, Kind
from traceforge.synth.events import SimulatedEvents
from traceforge.synth.load import Load
from traceforge.synth.program import COMPUTE, ProgramOperation, Role, Workload
from traceforge.synth.task import Coupling, Meetings, StreamTask

Times = NDArray[np.float64]

_LAUNCH_QUEUE = 1_024


class Runner:
    """A role that runs."""

    def __init__(
        self,
        cluster: Cluster,
        workload: Workload,
        role: Role,
        load: Load,
        coupling: Coupling,
        events: SimulatedEvents,
        meetings: Meetings,
    ) -> None:
        self._cluster, self._workload, self._program = cluster, workload, role.program
        self._load, self._coupling, self._events, self._meetings = load, coupling, events, meetings
        self._ranks = np.array(role.ranks)
        self._now = np.zeros(len(role.ranks))
        self._i, self._moves = 0, 0
        self._host: Generator[None, None, None] | None = None
        self._streams: dict[str, deque[StreamTask]] = {}
        self._latest: dict[str, StreamTask] = {}
        self._tasks: dict[int, StreamTask] = {}
        self._launched: deque[StreamTask] = deque(maxlen=_LAUNCH_QUEUE)
        # Recent communication, of which compute may feel the effect.
        self._recent: deque[StreamTask] = deque(maxlen=4)
        self._groups: dict[Kind, NDArray[np.int64]] = {}

    def begin(self, i: int) -> None:
        """Begin an iteration."""
        self._i, self._host = i, self._issue(i)
        self._tasks.clear()

    @property
    def is_done(self) -> bool:
        """Whether the iteration is over, on the host and on all streams."""
        return self._host is None and not any(self._streams.values())

    def advance(self) -> bool:
        """Go as far as possible; whether that was any further."""
        before = self._moves
        if self._host is not None:
            try:
                next(self._host)
            except StopIteration:
                self._host = None
        while any(self._run(stream) for stream in self._in_order()):
            self._moves += 1
        return self._moves > before

    def _in_order(self) -> list[str]:
        """Streams that have something to do, by the place of their first task in the program."""
        busy = [stream for stream, tasks in self._streams.items() if tasks]
        return sorted(busy, key=lambda stream: self._streams[stream][0].place)

    def _issue(self, i: int) -> Generator[None, None, None]:
        events, ranks = self._events, self._ranks
        events.step_start_ns[i, ranks] = self._now
        for n, operation in enumerate(self._program):
            yield from self._stall(i, n)
            events.host_start_ns[i, n, ranks] = self._now
            self._now = self._now + self._load.host_ns[i, n, ranks]
            events.call_start_ns[i, n, ranks] = self._now
            yield from self._perform(i, n, operation)
            events.call_end_ns[i, n, ranks] = self._now
            self._moves += 1
        self._now = self._now + 5_000
        events.step_end_ns[i, ranks] = self._now

    def _perform(self, i: int, n: int, operation: ProgramOperation) -> Generator[None, None, None]:
        call_ns = self._load.call_ns[i, n, self._ranks]
        match operation.action:
            case "input":
                return
            case "await":
                self._give(n, operation, np.zeros_like(self._now))
                self._now = self._now + call_ns
            case "free":
                yield from self._drain()
                self._now = np.maximum(self._now, self._drained()) + call_ns
            case "synchronise":
                every = self._workload.reads_loss_every
                if every and (i + 1) % every == 0:
                    yield from self._read(n, operation, call_ns)
            case "read":
                yield from self._read(n, operation, call_ns)
            case _:
                yield from self._launch(n, operation, call_ns)

    def _stall(self, i: int, n: int) -> Generator[None, None, None]:
        for number, stall in enumerate(self._load.stalls):
            if stall.place == n:
                duration = stall.duration_ns[i, self._ranks]
                self._events.stall_start_ns[number, i, self._ranks] = self._now
                if stall.drains_device and duration.any():
                    yield from self._drain()
                    self._now = np.where(duration > 0, np.maximum(self._now, self._drained()), self._now)
                self._now = self._now + duration

    def _launch(self, n: int, operation: ProgramOperation, call_ns: Times) -> Generator[None, None, None]:
        if len(self._launched) == _LAUNCH_QUEUE:
            room = yield from self._end_of(self._launched[0])
            self._now = np.maximum(self._now, room)
        self._now = self._now + call_ns
        self._launched.append(self._give(n, operation, self._now + self._load.latency_ns))

    def _read(self, n: int, operation: ProgramOperation, call_ns: Times) -> Generator[None, None, None]:
        yield from self._launch(n, operation, call_ns)
        end = yield from self._end_of(self._tasks[n])
        self._now = np.maximum(self._now, end)

    def _give(self, n: int, operation: ProgramOperation, issued: Times) -> StreamTask:
        """Give a task to its stream, behind what it holds and behind what compute has been given so far."""
        stream = operation.runs_on
        before = [self._latest[name] for name in {stream, COMPUTE} if name in self._latest]
        task = StreamTask(n, operation, issued, (*before, *(self._tasks[number] for number in operation.awaited)))
        self._streams.setdefault(stream, deque()).append(task)
        self._latest[stream] = self._tasks[n] = task
        if operation.action in ("collective", "message"):
            self._recent.append(task)
        else:
            task.beside = tuple(self._recent)
        return task

    def _end_of(self, task: StreamTask) -> Generator[None, None, Times]:
        while task.end is None:
            yield
        return task.end

    def _drain(self) -> Generator[None, None, None]:
        for task in [*self._latest.values()]:
            yield from self._end_of(task)

    def _drained(self) -> Times:
        ends = [task.end for task in self._latest.values() if task.end is not None]
        return np.stack(ends).max(axis=0) if ends else self._now

    def _run(self, stream: str) -> bool:
        """Run the first task of a stream; whether it has ended."""
        task = self._streams[stream][0]
        if task.begin():
            self._proceed(task)
        if task.start is None or task.end is None:
            return False
        self._streams[stream].popleft()
        task.beside = ()
        if task.operation.action != "await":
            self._events.device_start_ns[self._i, task.place, self._ranks] = task.start
            self._events.device_end_ns[self._i, task.place, self._ranks] = task.end
        return True

    def _proceed(self, task: StreamTask) -> None:
        match task.operation.action:
            case "await":
                task.end = task.start
            case "collective":
                self._collect(task)
            case "message":
                self._exchange(task)
            case _:
                self._compute(task)

    def _compute(self, task: StreamTask) -> None:
        assert task.start is not None  # noqa: S101  # begun
        duration = self._load.device_ns[self._i, task.place, self._ranks]
        task.end = np.rint(self._coupling.end_of_compute(task.start, duration, task.beside))

    def _collect(self, task: StreamTask) -> None:
        assert task.start is not None  # noqa: S101  # begun
        kind, meeting = task.operation.group or "data_parallel", task.operation.meeting
        # Where other roles take part, `arrivals` and `group` are those of all ranks; `own` are this role.
        arrivals = self._meetings.gather(meeting, self._ranks, task.start) if meeting else task.start
        if arrivals is None:
            return
        group = self._cluster.group_numbers(kind) if meeting else self._group_of(kind)
        own = self._ranks if meeting else np.arange(len(self._ranks))
        last = np.full(group.max() + 1, -np.inf)
        np.maximum.at(last, group, arrivals)
        waited = np.bincount(group, last[group] - arrivals) / np.bincount(group)
        task.last_arrival = last[group][own]
        place = (self._i, task.place, self._ranks)
        transfer = self._load.device_ns[place] + np.rint(self._coupling.kappa * waited[group][own])
        task.end = task.last_arrival + transfer + self._load.end_skew_ns[place]

    def _exchange(self, task: StreamTask) -> None:
        assert task.start is not None  # noqa: S101  # begun
        arrivals, ends = [], []
        for part in task.operation.parts:
            self._meetings.arrive(part.message, task.start, sends=part.sends)
        for part in task.operation.parts:
            there = self._meetings.last_arrival(part.message)
            if there is None:
                return
            arrivals.append(there)
            ends.append(there + self._meetings.transfer_ns(self._i, part.message))
        task.last_arrival = np.max(arrivals, axis=0)
        task.end = np.max(ends, axis=0) + self._load.end_skew_ns[self._i, task.place, self._ranks]

    def _group_of(self, kind: Kind) -> NDArray[np.int64]:
        """Number of each rank's group, counted among those of this role."""
        if kind not in self._groups:
            numbers = self._cluster.group_numbers(kind)[self._ranks]
            self._groups[kind] = np.unique(numbers, return_inverse=True)[1]
        return self._groups[kind]
