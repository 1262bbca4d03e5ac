"""How long everything takes on every rank. In: a job and its random draws. Out: arrays that faults may change.

Axes: iterations (I), operations of a program (N), ranks (R). All random draws of a healthy job are made here, in a
fixed order, from a generator of their own, so that a run with a fault and one without get the same draws.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traceforge.synth.cluster import LINKS, Cluster
from traceforge.synth.program import ProgramOperation, Roles

Amounts = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Noise:
    """What varies in a healthy job.

    Attributes:
        kernel: standard deviation of the logarithm of a kernel's duration, kernel by kernel.
        iteration: the same for all kernels of a rank in an iteration together.
        lasting: correlation of that from one iteration to the next (AR(1)), 0 to below 1.
        device: the same for a device over the whole run.
        step: the same for all ranks in an iteration alike, as sequence lengths make it; transfers keep their size.
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
    step: float = 0.0
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
    """Durations, ns, shape (I, N, R), and stalls; N is the number of operations of the longest program.

    Attributes:
        host_ns: host, before the driver is called.
        call_ns: in the driver's call.
        device_ns: on the device; of collectives, the transfer, equal over a group.
        end_skew_ns: by how much each rank leaves communication late.
        stalls: of hosts.
        message_ns: by name, what a message takes once both sides are there, shape (I, ranks of a role).
        tokens: by layer, those that each rank sends to each member of its expert-parallel group, shape (I, R, members).
        latency_ns: from the driver's call to the kernel's start.
        clock_share: clock of each rank's device over its full one, shape (I, R).
        held_by: why it is lower, NVML's bits, shape (I, R).
    """

    host_ns: Amounts
    call_ns: Amounts
    device_ns: Amounts
    end_skew_ns: Amounts
    stalls: list[Stall] = field(default_factory=list)
    message_ns: dict[str, Amounts] = field(default_factory=dict)
    tokens: dict[int, NDArray[np.int64] | Amounts] = field(default_factory=dict)
    latency_ns: float = 3_000
    clock_share: Amounts = field(default_factory=lambda: np.ones((0, 0)))
    held_by: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))


def healthy_load(cluster: Cluster, roles: Roles, iterations: int, noise: Noise, rng: np.random.Generator) -> Load:
    """What an undisturbed job takes, noise included."""
    shape = (iterations, max(len(role.program) for role in roles), cluster.ranks)
    kernel = np.exp(noise.kernel * rng.standard_normal(shape))
    tail = rng.random(shape) < noise.tail_probability
    kernel += tail * noise.tail_share * (rng.pareto(2.0, shape) + 1)
    per_device = np.exp(noise.device * rng.standard_normal(cluster.ranks))
    device = _undisturbed(roles, shape[1:], "device_ns")[None] * kernel
    device *= per_device * _lasting(iterations, cluster.ranks, noise, rng)[:, None, :]
    if noise.step:
        device *= np.exp(noise.step * rng.standard_normal((iterations, 1, 1)))
    host = _undisturbed(roles, shape[1:], "host_ns")[None] * np.exp(noise.host * rng.standard_normal(shape))
    call = 6_000 * np.exp(noise.host * rng.standard_normal(shape))
    transfer_noise = np.exp(noise.transfer * rng.standard_normal(shape))
    for role in roles:
        ranks = list(role.ranks)
        for n, operation in enumerate(role.program):
            if operation.action == "collective":
                device[:, n, ranks] = _transfers(cluster, operation, transfer_noise[:, n])[:, ranks]
    skew = rng.exponential(max(noise.end_skew_ns, 1e-9), shape)
    messages = _messages(cluster, roles, iterations, noise, rng)
    by_rank = (iterations, cluster.ranks)
    return Load(
        np.rint(host), np.rint(call), np.rint(device), np.rint(skew), message_ns=messages,
        clock_share=np.ones(by_rank), held_by=np.zeros(by_rank, np.int64),
    )  # fmt: skip


def _undisturbed(roles: Roles, shape: tuple[int, ...], name: str) -> Amounts:
    """Times of operations, shape (N, R)."""
    times = np.zeros(shape)
    for role in roles:
        own = [getattr(operation, name) for operation in role.program]
        times[: len(own), list(role.ranks)] = np.array(own, dtype=float)[:, None]
    return times


def _messages(
    cluster: Cluster, roles: Roles, iterations: int, noise: Noise, rng: np.random.Generator
) -> dict[str, Amounts]:
    """What each message takes, whole ns."""
    found = {}
    for role in roles:
        for operation in role.program:
            for part in operation.parts:
                if part.sends:
                    pairs = zip(role.ranks, roles[part.peer].ranks, strict=True)
                    base = [LINKS[cluster.path(pair)].message_ns(operation.size_bytes) for pair in pairs]
                    factor = np.exp(noise.transfer * rng.standard_normal((iterations, len(base))))
                    found[part.message] = np.rint(np.array(base) * factor)
    return found


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
            base = LINKS[group.path].collective_ns(operation.collective, operation.size_bytes, len(ranks))
            result[:, ranks] = base * factors[:, ranks[:1]]
    return result
