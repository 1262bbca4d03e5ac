"""The simulation. In: a program, a load and couplings. Out: when everything happens on every rank, in true time.

All ranks run the same program, so each operation is worked out for all of them at once, in the order of the program:
a host calls the driver when it gets there, a stream starts a kernel when it is free, a collective ends a transfer
after its last arrival. Hosts run ahead until they synchronise or the launch queue is full.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.synth.cluster import Cluster
from traceforge.synth.load import Load
from traceforge.synth.program import Program, ProgramOperation, Workload

Times = NDArray[np.float64]

_COMPUTE = "compute"
# From the driver's call to the kernel's start, ns.
_LAUNCH_LATENCY_NS = 3_000
_LAUNCH_QUEUE = 1_024


@dataclass(frozen=True, slots=True)
class Coupling:
    """How waiting slows other work down.

    Attributes:
        kappa: extra transfer over the mean wait of a collective's ranks.
        eta_wait: extra time of compute while a collective of the same device waits, over its time alone.
        eta_transfer: the same while it transfers.
    """

    kappa: float = 0.0
    eta_wait: float = 0.0
    eta_transfer: float = 0.0


@dataclass(frozen=True, slots=True)
class SimulatedEvents:
    """When everything happens; true time, ns, shape (I, N, R) unless stated otherwise.

    Attributes:
        step_start_ns: start of the iteration on the host, shape (I, R).
        step_end_ns: its end on the host, shape (I, R).
        host_start_ns: start of the host operation.
        call_start_ns: start of the driver's call.
        call_end_ns: its end.
        device_start_ns: start on the device (arrival, of a collective); 0 where the operation has no device part.
        device_end_ns: end on the device.
        stall_start_ns: start of each stall of the load, shape (stalls, I, R).
    """

    step_start_ns: Times
    step_end_ns: Times
    host_start_ns: Times
    call_start_ns: Times
    call_end_ns: Times
    device_start_ns: Times
    device_end_ns: Times
    stall_start_ns: Times

    def iteration_ends_ns(self) -> Times:
        """When the last rank has done each iteration, shape (I,)."""
        ends: Times = np.maximum(self.step_end_ns, self.device_end_ns.max(axis=1)).max(axis=1)
        return ends


def simulate(cluster: Cluster, workload: Workload, program: Program, load: Load, coupling: Coupling) -> SimulatedEvents:
    """Run all iterations."""
    run = _Simulation(cluster, workload, program, load, coupling)
    for i in range(len(load.host_ns)):
        run.iteration(i)
    return run.events


class _Simulation:
    def __init__(
        self,
        cluster: Cluster,
        workload: Workload,
        program: Program,
        load: Load,
        coupling: Coupling,
    ) -> None:
        self._workload, self._program, self._load, self._coupling = workload, program, load, coupling
        self._groups = {kind: cluster.group_numbers(kind) for kind in ("tensor_parallel", "data_parallel")}
        iterations, _, ranks = shape = load.host_ns.shape
        step_start, step_end = np.zeros((iterations, ranks)), np.zeros((iterations, ranks))
        host_start, call_start, call_end, device_start, device_end = (np.zeros(shape) for _ in range(5))
        stall_start = np.zeros((len(load.stalls), iterations, ranks))
        self.events = SimulatedEvents(
            step_start, step_end, host_start, call_start, call_end, device_start, device_end, stall_start
        )
        self._host = np.zeros(ranks)
        self._free: dict[str, Times] = {}
        self._queue: list[Times] = []
        # Recent communication as (arrival, last arrival, end), of which compute may feel the effect.
        self._recent: list[tuple[Times, Times, Times]] = []

    def iteration(self, i: int) -> None:
        self.events.step_start_ns[i] = self._host
        for n, operation in enumerate(self._program):
            self._stall(i, n)
            self.events.host_start_ns[i, n] = self._host
            self._host = self._host + self._load.host_ns[i, n]
            self.events.call_start_ns[i, n] = self._host
            self._perform(i, n, operation)
            self.events.call_end_ns[i, n] = self._host
        self._host = self._host + 5_000
        self.events.step_end_ns[i] = self._host

    def _perform(self, i: int, n: int, operation: ProgramOperation) -> None:
        match operation.action:
            case "input":
                return
            case "await":
                reached = np.stack([self.events.device_end_ns[i, awaited] for awaited in operation.awaited])
                self._occupy(_COMPUTE, np.maximum(self._free_at(_COMPUTE), reached.max(axis=0)))
                self._host = self._host + self._load.call_ns[i, n]
            case "free":
                self._host = np.maximum(self._host, self._drained()) + self._load.call_ns[i, n]
            case "collective":
                self._launch(i, n)
                self._collective(i, n, operation)
            case "synchronise":
                every = self._workload.reads_loss_every
                if every and (i + 1) % every == 0:
                    self._launch(i, n)
                    self._kernel(i, n)
                    self._host = np.maximum(self._host, self.events.device_end_ns[i, n])
            case _:
                self._launch(i, n)
                self._kernel(i, n)

    def _stall(self, i: int, n: int) -> None:
        for number, stall in enumerate(self._load.stalls):
            if stall.place == n:
                duration = stall.duration_ns[i]
                self.events.stall_start_ns[number, i] = self._host
                if stall.drains_device:
                    self._host = np.where(duration > 0, np.maximum(self._host, self._drained()), self._host)
                self._host = self._host + duration

    def _launch(self, i: int, n: int) -> None:
        if len(self._queue) >= _LAUNCH_QUEUE:
            self._host = np.maximum(self._host, self._queue[-_LAUNCH_QUEUE])
        self._host = self._host + self._load.call_ns[i, n]

    def _kernel(self, i: int, n: int) -> None:
        start = np.maximum(self._host + _LAUNCH_LATENCY_NS, self._free_at(_COMPUTE))
        end = np.rint(self._slowed(start, self._load.device_ns[i, n]))
        self._record(i, n, start, end)
        self._occupy(_COMPUTE, end)

    def _collective(self, i: int, n: int, operation: ProgramOperation) -> None:
        kind = operation.group or "data_parallel"
        ready = np.maximum(self._free_at(kind), self._free_at(_COMPUTE))
        arrival = np.maximum(self._host + _LAUNCH_LATENCY_NS, ready)
        group = self._groups[kind]
        last = np.full(group.max() + 1, -np.inf)
        np.maximum.at(last, group, arrival)
        waited = np.bincount(group, last[group] - arrival) / np.bincount(group)
        transfer = self._load.device_ns[i, n] + np.rint(self._coupling.kappa * waited[group])
        end = last[group] + transfer + self._load.end_skew_ns[i, n]
        self._record(i, n, arrival, end)
        self._occupy(kind, end)
        self._recent = [*self._recent[-3:], (arrival, last[group], end)]

    def _record(self, i: int, n: int, start: Times, end: Times) -> None:
        self.events.device_start_ns[i, n], self.events.device_end_ns[i, n] = start, end
        self._queue.append(end)

    def _slowed(self, start: Times, duration: Times) -> Times:
        """End of compute that starts at `start`, slower while communication runs beside it."""
        if not (self._coupling.eta_wait or self._coupling.eta_transfer):
            return start + duration
        now, remaining = start, duration
        pace = (1.0, 1 / (1 + self._coupling.eta_wait), 1 / (1 + self._coupling.eta_transfer))
        for bounds in self._recent:
            for bound, rate in zip(bounds, pace, strict=True):
                done = np.minimum(remaining, np.maximum(0, bound - now) * rate)
                now, remaining = now + done / rate, remaining - done
        return now + remaining

    def _free_at(self, stream: str) -> Times:
        return self._free.get(stream, np.zeros_like(self._host))

    def _occupy(self, stream: str, until: Times) -> None:
        self._free[stream] = until

    def _drained(self) -> Times:
        return np.stack(list(self._free.values())).max(axis=0) if self._free else self._host
