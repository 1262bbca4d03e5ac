"""What each rank's clock shows. In: true times. Out: the times a rank writes down, whole ns.

Hosts are off by an offset and run apart (drift); on top of that each rank is off by a constant of its own, as the
conversion of device timestamps is.
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
    """

    offset_ns: float = 1_000_000
    drift_ppb: float = 5_000
    bias_ns: float = 20_000


@dataclass(frozen=True, slots=True)
class Clocks:
    """Clocks of a run; offset and drift by rank, shape (R,)."""

    offset_ns: NDArray[np.float64]
    drift: NDArray[np.float64]

    def read(self, true_ns: NDArray[np.float64]) -> NDArray[np.int64]:
        """Readings, for times whose last axis is the rank."""
        return np.rint(true_ns * (1 + self.drift) + self.offset_ns).astype(np.int64)


def draw_clocks(cluster: Cluster, errors: ClockErrors, rng: np.random.Generator) -> Clocks:
    """Clocks of a run."""
    node = np.arange(cluster.ranks) // cluster.devices
    offset = errors.offset_ns * rng.standard_normal(cluster.nodes)
    drift = errors.drift_ppb * 1e-9 * rng.standard_normal(cluster.nodes)
    return Clocks(offset[node] + errors.bias_ns * rng.standard_normal(cluster.ranks), drift[node])
