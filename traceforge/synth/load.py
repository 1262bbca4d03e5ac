"""How long everything takes on every rank. In: a job and its random draws. Out: arrays that faults may change.

Axes: iterations (I), operations of the program (N), ranks (R). All random draws of a healthy job are made here, in a
fixed order, from a generator of their own, so that a run with a fault and one without get the same draws.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traceforge.synth.cluster import LINKS, Cluster
from traceforge.synth.program import Program, ProgramOperation

Amounts = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Noise:
    """What varies in a healthy job.

    Attributes:
        kernel: standard deviation of the logarithm of a kernel's duration, kernel by kernel.
        iteration: the same for all kernels of a rank in an iteration together.
        lasting: correlation of that from one iteration to the next (AR(1)), 0 to below 1.
        device: the same for a device over the whole run.
        host: of host times.
        transfer: of transfers.
        tail_probability: chance that a kernel takes a heavy-tailed extra (Pareto, index 2).
        tail_share: scale of that extra over the kernel's duration.
        end_skew_ns: mean by which ranks leave a collective late (exponential).
    """

    kernel: float = 0.02
    iteration: float = 0.003
    lasting: float = 0.5
    device: float = 0.002
    host: float = 0.1
    transfer: float = 0.03
    tail_probability: float = 0.0
    tail_share: float = 1.0
    end_skew_ns: float = 2_000


@dataclass(frozen=True, slots=True)
class Stall:
    """Time the host loses before an operation.

    Attributes:
        place: number of the operation.
        duration_ns: shape (I, R).
        name: the event that names it in the trace; empty where nothing does.
        category: the event's category.
        drains_device: whether the host first waits until the device has done all it was given.
    """

    place: int
    duration_ns: Amounts
    name: str = ""
    category: str = "user_annotation"
    drains_device: bool = False


@dataclass(slots=True)
class Load:
    """Durations, ns, shape (I, N, R), and stalls.

    Attributes:
        host_ns: host, before the driver is called.
        call_ns: in the driver's call.
        device_ns: on the device; of collectives, the transfer, equal over a group.
        end_skew_ns: by how much each rank leaves a collective late.
    """

    host_ns: Amounts
    call_ns: Amounts
    device_ns: Amounts
    end_skew_ns: Amounts
    stalls: list[Stall] = field(default_factory=list)


def healthy_load(cluster: Cluster, program: Program, iterations: int, noise: Noise, rng: np.random.Generator) -> Load:
    """What an undisturbed job takes, noise included."""
    shape = (iterations, len(program), cluster.ranks)
    kernel = np.exp(noise.kernel * rng.standard_normal(shape))
    tail = rng.random(shape) < noise.tail_probability
    kernel += tail * noise.tail_share * (rng.pareto(2.0, shape) + 1)
    per_device = np.exp(noise.device * rng.standard_normal(cluster.ranks))
    device = np.array([operation.device_ns for operation in program])[None, :, None] * kernel
    device *= per_device * _lasting(iterations, cluster.ranks, noise, rng)[:, None, :]
    host = np.array([operation.host_ns for operation in program])[None, :, None] * np.exp(
        noise.host * rng.standard_normal(shape)
    )
    call = 6_000 * np.exp(noise.host * rng.standard_normal(shape))
    transfer_noise = np.exp(noise.transfer * rng.standard_normal(shape))
    for n, operation in enumerate(program):
        if operation.action == "collective":
            device[:, n] = _transfers(cluster, operation, transfer_noise[:, n])
    skew = rng.exponential(max(noise.end_skew_ns, 1e-9), shape)
    return Load(np.rint(host), np.rint(call), np.rint(device), np.rint(skew))


def _lasting(iterations: int, ranks: int, noise: Noise, rng: np.random.Generator) -> Amounts:
    """Factor of each iteration and rank, shape (I, R)."""
    steps = rng.standard_normal((iterations, ranks))
    level = np.empty_like(steps)
    level[0] = steps[0]
    for i in range(1, iterations):
        level[i] = noise.lasting * level[i - 1] + np.sqrt(1 - noise.lasting**2) * steps[i]
    return np.exp(noise.iteration * level)


def _transfers(cluster: Cluster, operation: ProgramOperation, factors: Amounts) -> Amounts:
    """Transfer of a collective, shape (I, R); one draw a group."""
    result = np.zeros_like(factors)
    for group in cluster.groups():
        if group.kind == operation.group:
            ranks = list(group.ranks)
            base = LINKS[group.path].all_reduce_ns(operation.size_bytes, len(ranks))
            result[:, ranks] = base * factors[:, ranks[:1]]
    return result
