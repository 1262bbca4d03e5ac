"""What a simulation writes down. In: nothing. Out: the type that holds when everything happened."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SimulatedEvents:
    """When everything happens; true time, ns, shape (I, N, R) unless stated otherwise.

    N is the number of operations of the longest program; what lies behind the end of a rank's own program is 0.

    Attributes:
        step_start_ns: start of the iteration on the host, shape (I, R).
        step_end_ns: its end on the host, shape (I, R).
        host_start_ns: start of the host operation.
        call_start_ns: start of the driver's call.
        call_end_ns: its end.
        device_start_ns: start on the device (arrival, of communication); 0 where the operation has no device part.
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


def no_events(shape: tuple[int, int, int], stalls: int) -> SimulatedEvents:
    """All zero; the shape is (I, N, R)."""
    iterations, _, ranks = shape
    step_start, step_end = np.zeros((iterations, ranks)), np.zeros((iterations, ranks))
    host_start, call_start, call_end, device_start, device_end = (np.zeros(shape) for _ in range(5))
    return SimulatedEvents(
        step_start, step_end, host_start, call_start, call_end, device_start, device_end,
        np.zeros((stalls, iterations, ranks)),
    )  # fmt: skip
