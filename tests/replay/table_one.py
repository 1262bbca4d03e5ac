"""Jobs whose collectives get slower where arrivals spread, in two sets of parameters that both fit a published table.

The table gives throughput (samples/s) and coefficient of variation at 4 to 64 nodes, without and with coordinated
pacing. That these models reproduce it shows that such numbers are possible and makes a test of the replay engine; it
does not show that any real cluster behaves so, and promises nothing to anybody's job.

Times are in units of the mean baseline step at 4 nodes. Nothing here uses the engine: pacing is written down once more.
"""

from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

from tests.replay.models import lockstep_plan, model_of
from traceforge.replay.model import StepModel

Amounts = NDArray[np.float64]

SAMPLES_PER_NODE = 256
UNIT_NS = 1_000_000_000


@dataclass(frozen=True)
class Point:
    """Throughput, samples/s, and coefficient of variation of the step."""

    throughput: float
    cv: float


BASELINE = {
    4: Point(1024, 0.02), 8: Point(1980, 0.04), 16: Point(3600, 0.09), 32: Point(5800, 0.15), 64: Point(8200, 0.22),
}  # fmt: skip
COORDINATED = {
    4: Point(1018, 0.02), 8: Point(1995, 0.03), 16: Point(3720, 0.05), 32: Point(6250, 0.07), 64: Point(9100, 0.09),
}  # fmt: skip


@dataclass(frozen=True)
class ClosedForm:
    """Slowest-arrival excess of mean `r s` and standard deviation s, on top of a cost that grows with the nodes.

    Each unit of excess costs kappa further units of collective time, which perfect pacing takes away.
    """

    c0: float = 0.9678
    b: float = 0.7094
    g: float = 1.399
    s4: float = 0.0180
    p: float = 0.792
    r: float = 0.749
    k: float = 0.430
    delta: float = 0.0007

    def excess(self, nodes: int) -> float:
        """Standard deviation of the excess."""
        return self.s4 * (nodes / 4) ** self.p

    def cost(self, nodes: int) -> float:
        """Computation and communication that do not vary."""
        return self.c0 + self.b * (nodes / 64) ** self.g

    def kappa(self, nodes: int) -> float:
        """Extra collective time per unit of excess."""
        return self.k * log2(nodes / 4)

    def baseline(self, nodes: int) -> Point:
        """The job as it is."""
        s, kappa = self.excess(nodes), self.kappa(nodes)
        mean = self.cost(nodes) + (1 + kappa) * self.r * s
        return Point(SAMPLES_PER_NODE * nodes / mean, (1 + kappa) * s / mean)

    def coordinated(self, nodes: int) -> Point:
        """The job under perfect pacing."""
        s = self.excess(nodes)
        mean = self.cost(nodes) + self.r * s + self.delta
        return Point(SAMPLES_PER_NODE * nodes / mean, s / mean)


@dataclass(frozen=True)
class Pacing:
    """Bounded delay with a window of waits plus own delay, as in the engine but written down independently."""

    window: int = 3
    threshold: float = 0.0241
    gain: float = 0.785
    max_delay: float = 0.114

    @property
    def text(self) -> str:
        """The same policy on the command line."""
        given = f"window={self.window},threshold={self.threshold},gain={self.gain},max_delay={self.max_delay}"
        return f"bounded_delay:{given}"


@dataclass(frozen=True)
class EventJob:
    """Nodes with correlated jitter and rare slow episodes; transfer = B(N) + kappa x mean wait.

    Attributes:
        share: of iterations that a node spends in episodes; like `size`, fitted to the table by hand.
        length: mean iterations of an episode.
        kappa_at_64: extra collective time per mean wait at 64 nodes.
    """

    c0: float = 0.9658
    jitter: float = 0.0053
    correlation: float = 0.884
    share: float = 0.030
    size: float = 0.042
    length: float = 22.5
    transfer_at_64: float = 0.591
    transfer_power: float = 1.315
    kappa_at_64: float = 8.0
    kappa_power: float = 0.879

    def transfer(self, nodes: int) -> float:
        """B(N)."""
        return self.transfer_at_64 * (nodes / 64) ** self.transfer_power

    def kappa(self, nodes: int) -> float:
        """Extra collective time per mean wait."""
        return self.kappa_at_64 * (nodes / 64) ** self.kappa_power

    def work(self, nodes: int, iterations: int, runs: int, seed: int) -> Amounts:
        """Own work of each node, shape (iterations, runs, nodes)."""
        draws = np.random.default_rng(seed)
        shape = (iterations, runs, nodes)
        noise, begins = draws.standard_normal(shape), draws.random(shape) < self.share / self.length
        lengths, sizes = draws.geometric(1 / self.length, shape), draws.exponential(self.size, shape)
        jitter, excess = np.zeros(shape), np.zeros(shape)
        level = noise[0]
        left = np.where(draws.random(shape[1:]) < self.share, lengths[0], 0)
        current = sizes[0]
        for t in range(iterations):
            level = self.correlation * level + np.sqrt(1 - self.correlation**2) * noise[t]
            begin = begins[t] & (left == 0)
            left, current = np.where(begin, lengths[t], left), np.where(begin, sizes[t], current)
            jitter[t], excess[t] = level, np.where(left > 0, current, 0.0)
            left = np.maximum(left - 1, 0)
        return self.c0 * np.exp(self.jitter * jitter) + excess

    def run(
        self, work: Amounts, pacing: Pacing | None = None, *, noise: Amounts | float = 0.0
    ) -> tuple[Amounts, Amounts]:
        """Steps and transfers, each of shape (iterations, runs); `noise` of that shape is added to transfers."""
        iterations, runs, nodes = work.shape
        noise = np.broadcast_to(noise, (iterations, runs))
        steps, transfers = np.zeros((iterations, runs)), np.zeros((iterations, runs))
        slack = np.zeros((1 if pacing is None else pacing.window, runs, nodes))
        delay, mean_step = np.zeros((runs, nodes)), np.zeros(runs)
        for t in range(iterations):
            if pacing is not None and t >= pacing.window:
                mean, step = slack.mean(axis=0), mean_step[:, None]
                bounded = np.minimum(pacing.max_delay * step, pacing.gain * mean)
                delay = np.where(mean > pacing.threshold * step, bounded, 0.0)
            arrival = work[t] + delay
            last = arrival.max(axis=1, keepdims=True)
            transfers[t] = self.transfer(nodes) + self.kappa(nodes) * (last - arrival).mean(axis=1) + noise[t]
            steps[t] = last[:, 0] + transfers[t]
            mean_step += (steps[t] - mean_step) / (t + 1)
            slack[t % len(slack)] = last - arrival + delay
        return steps, transfers


def point_of(steps: Amounts, nodes: int) -> Point:
    """Samples over elapsed time, and variation over the mean; never the mean of rates, which flatters varying steps."""
    return Point(SAMPLES_PER_NODE * nodes / float(steps.mean()), float(steps.std() / steps.mean()))


def trace_of(work: Amounts, transfer: Amounts) -> StepModel:
    """One run as its traces would tell it: work (iterations, nodes), transfers (iterations,)."""
    work_ns = np.rint(work * UNIT_NS).astype(np.int64)[:, None, :]
    return model_of_large(work_ns, np.rint(transfer * UNIT_NS).astype(np.int64))


def model_of_large(work_ns: NDArray[np.int64], transfer_ns: NDArray[np.int64]) -> StepModel:
    """As `lockstep_model` with one place, timed all at once."""
    small = model_of(lockstep_plan(work_ns[:1], transfer_ns=0))
    iterations, _, nodes = work_ns.shape
    ends = np.cumsum(work_ns[:, 0].max(axis=1) + transfer_ns)
    end = np.repeat(ends[:, None], nodes, axis=1)
    shape = (iterations, 1, nodes)
    return StepModel(
        iterations=np.arange(iterations),
        ranks=small.ranks,
        start_ns=np.concatenate([np.zeros((1, nodes), dtype=np.int64), end[:-1]]),
        end_ns=end,
        calls=np.ones(iterations, dtype=np.int64),
        group=np.zeros(shape, dtype=np.int64),
        transfer_ns=np.broadcast_to(transfer_ns[:, None, None], shape),
        awaited=np.zeros(shape, dtype=np.int64),
        kinds=small.kinds,
        before_arrival_ns=np.concatenate([work_ns, np.zeros_like(work_ns)], axis=1)[..., None],
        before_wait_ns=np.zeros((*shape, 1), dtype=np.int64),
    )
