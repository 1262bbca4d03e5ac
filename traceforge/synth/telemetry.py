"""What tools would measure of the devices. In: a job that was run. Out: readings of every device, before any format.

The clock is the full one but where a fault holds it down, and idle where nothing runs before and after the job. Power,
like the counters of the driver, is a mean over the time since the last reading: high while the device computes, low
while it waits in communication. Not drawn: clocks that waver by themselves, ECC errors.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.errors import UsageError
from traceforge.synth.cluster import Cluster
from traceforge.synth.scenario import SimulatedJob

Amounts = NDArray[np.float64]
Int64s = NDArray[np.int64]

FULL_MHZ, STEP_MHZ, IDLE_MHZ = 1_755, 15, 345
POWER_CAP, HEAT, NOTHING_RUNS = 0x4, 0x20, 0x1
_LIMIT_W, _IDLE_W, _COMPUTE_W, _WAIT_W = 700.0, 110.0, 540.0, 180.0
_COOL_C, _WARM_C, _HOT_C = 34.0, 62.0, 88.0


@dataclass(frozen=True, slots=True)
class DeviceReadings:
    """All readings of one rank's device; arrays of shape (readings,).

    Attributes:
        true_ns: when they were taken, true time.
        sent_bytes: by the device's NIC since some time before the job.
    """

    rank: int
    true_ns: Amounts
    clock_mhz: Int64s
    power_w: Amounts
    power_limit_w: float
    temperature_c: Int64s
    busy_share: Amounts
    throttle_reasons: Int64s
    sent_bytes: Int64s


def uuid_of(cluster: Cluster, rank: int) -> str:
    """UUID of the device of a rank."""
    return f"GPU-{0x7ACEF0 + rank:08x}-0000-4000-8000-{cluster.node_of(rank):012x}"


def readings_of(job: SimulatedJob) -> Iterator[DeviceReadings]:
    """The readings of every rank's device, in order of ranks.

    Raises:
        UsageError: readings are to be taken at no distance.
    """
    telemetry = job.scenario.telemetry
    if telemetry.interval_ns < 1:
        raise UsageError("telemetry needs an interval of 1 ns or more")
    rng = np.random.default_rng([job.scenario.seed, 3])
    ends = job.events.iteration_ends_ns()
    for rank in range(job.scenario.cluster.ranks):
        phase = rng.random() * telemetry.interval_ns
        at = np.arange(phase - telemetry.around_ns, float(ends[-1]) + telemetry.around_ns, telemetry.interval_ns)
        yield _device(job, rank, at, rng)


def _device(job: SimulatedJob, rank: int, at: Amounts, rng: np.random.Generator) -> DeviceReadings:
    interval = float(job.scenario.telemetry.interval_ns)
    computed = _share(job, rank, at, interval, lambda action: action == "compute")
    busy = _share(job, rank, at, interval, lambda action: action in ("compute", "collective", "message", "copy"))
    ends = job.events.iteration_ends_ns()
    iteration = np.clip(np.searchsorted(ends, at), 0, len(ends) - 1)
    is_on = (at >= 0) & (at <= ends[-1])
    held = np.where(is_on, job.load.held_by[iteration, rank], NOTHING_RUNS)
    share = job.load.clock_share[iteration, rank]
    clock = np.where(is_on, np.rint(FULL_MHZ * share / STEP_MHZ) * STEP_MHZ, IDLE_MHZ)
    # A cap is a lower limit, which the device reaches as long as it computes.
    capped = job.load.held_by[:, rank] & POWER_CAP > 0
    limit = _LIMIT_W * float(job.load.clock_share[capped, rank].min()) if capped.any() else _LIMIT_W
    power = _IDLE_W + _COMPUTE_W * share * computed + _WAIT_W * np.clip(busy - computed, 0, 1)
    power = np.minimum(power + 4 * rng.standard_normal(len(at)), limit)
    warmth = np.where(is_on, np.where(held & HEAT, _HOT_C, _WARM_C), _COOL_C)
    return DeviceReadings(
        rank, at, clock.astype(np.int64), power, limit, np.rint(warmth + rng.standard_normal(len(at))).astype(np.int64),
        busy, held.astype(np.int64), _sent(job, rank, at),
    )  # fmt: skip


def _share(job: SimulatedJob, rank: int, at: Amounts, interval: float, counts: Callable[[str], bool]) -> Amounts:
    """Share of the time before each reading in which operations of some actions run on the device."""
    program = job.program_of(rank)
    own = [n for n, operation in enumerate(program) if counts(operation.action)]
    starts = job.events.device_start_ns[:, own, rank].ravel()
    ends = job.events.device_end_ns[:, own, rank].ravel()
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    # What overlaps counts once.
    begins = np.maximum(starts, np.concatenate([[-np.inf], ends[:-1]]))
    lasts = np.maximum(ends - begins, 0)
    edges = np.stack([np.minimum(begins, ends), ends], axis=1).ravel()
    spent = np.cumsum(np.stack([np.zeros(len(lasts)), lasts], axis=1).ravel())
    share: Amounts = (np.interp(at, edges, spent) - np.interp(at - interval, edges, spent)) / interval
    return share


def _sent(job: SimulatedJob, rank: int, at: Amounts) -> Int64s:
    """Bytes that collectives across hosts have moved out of a rank by each reading."""
    cluster = job.scenario.cluster
    crossing = {group.kind for group in cluster.groups() if rank in group.ranks and group.path != "node"}
    program = job.program_of(rank)
    own = [n for n, operation in enumerate(program) if operation.collective and operation.group in crossing]
    own = [n for n in own if program[n].action == "collective"]
    ends = job.events.device_end_ns[:, own, rank].ravel()
    sizes = np.tile(np.array([program[n].size_bytes for n in own], dtype=np.int64), len(job.events.device_end_ns))
    order = np.argsort(ends, kind="stable")
    total = np.concatenate([[0], np.cumsum(sizes[order])])
    sent: Int64s = 10_000_000_000 + total[np.searchsorted(ends[order], at, side="right")]
    return sent
