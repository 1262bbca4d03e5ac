"""What each rank's clock shows. In: true times. Out: the times a rank writes down, whole ns.

Hosts are off by an offset and run apart (drift); on top of that each rank is off by a constant of its own, as the
conversion of device timestamps is. One host's clock may be set in the middle of the run: it jumps forward, or stands
still until as much time has passed as it was ahead.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.synth.cluster import Cluster


@dataclass(frozen=True, slots=True)
class ClockErrors:
    """How far clocks are off; standard deviations of normal draws.

    Attributes:
        offset_ns: of hosts.
        drift_ppb: of hosts, parts per billion.
        bias_ns: of ranks.
        step_ns: by how much the clock of one host is set, forward or (negative) back; 0: it is not.
        step_node: which host's.
        step_at: when, as a share of the run.
    """

    offset_ns: float = 1_000_000
    drift_ppb: float = 5_000
    bias_ns: float = 20_000
    step_ns: float = 0
    step_node: int = 0
    step_at: float = 0.5


@dataclass(frozen=True, slots=True)
class Clocks:
    """Clocks of a run; offset, drift and step by rank, shape (R,)."""

    offset_ns: NDArray[np.float64]
    drift: NDArray[np.float64]
    step_ns: NDArray[np.float64]
    step_at_ns: float

    def read(self, true_ns: NDArray[np.float64], ranks: slice | int = slice(None)) -> NDArray[np.int64]:
        """Readings, for times whose last axis is the rank: those of all ranks, or of the one that is named."""
        true_ns, step_ns = true_ns[..., ranks], self.step_ns[ranks]
        stepped_ns = np.where(true_ns < self.step_at_ns, true_ns, true_ns + step_ns)
        # A clock that was set back shows the time at which that happened, until it is past it.
        shown_ns = np.where(true_ns < self.step_at_ns, stepped_ns, np.maximum(stepped_ns, self.step_at_ns))
        result: NDArray[np.int64] = np.rint(shown_ns * (1 + self.drift[ranks]) + self.offset_ns[ranks]).astype(np.int64)
        return result


def draw_clocks(cluster: Cluster, errors: ClockErrors, rng: np.random.Generator, duration_ns: float) -> Clocks:
    """Clocks of a run that lasts `duration_ns`."""
    node = np.arange(cluster.ranks) // cluster.devices
    offset = errors.offset_ns * rng.standard_normal(cluster.nodes)
    drift = errors.drift_ppb * 1e-9 * rng.standard_normal(cluster.nodes)
    bias = errors.bias_ns * rng.standard_normal(cluster.ranks)
    step = np.where(node == errors.step_node, errors.step_ns, 0.0)
    return Clocks(offset[node] + bias, drift[node], step, errors.step_at * duration_ns)
