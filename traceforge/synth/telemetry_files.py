"""Files of telemetry as nvidia-smi, dcgmi or Prometheus write them. In: a job that was run. Out: name and text of each.

nvidia-smi and dcgmi write a file a host, Prometheus one for all hosts, with counters of NICs. Times are those of the
host's clock, later by the lag of the scenario; dcgmi prints none.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from traceforge.errors import UsageError
from traceforge.synth.scenario import SimulatedJob
from traceforge.synth.telemetry import DeviceReadings, readings_of, uuid_of
from traceforge.synth.wiring import Wiring

_BASE_NS = 1_735_689_600_000_000_000 + 10_000_000_000
_FULL_MHZ = 1_755
_MODEL = "NVIDIA H100 80GB HBM3"
_HEADER = (
    "timestamp, index, uuid, pci.bus_id, name, clocks.current.sm [MHz], clocks.max.sm [MHz], power.draw [W], "
    "enforced.power.limit [W], temperature.gpu, utilization.gpu [%], clocks_event_reasons.active, "
    "ecc.errors.uncorrected.volatile.total"
)
_HEADER_EVERY = 14  # rows, as the tool repeats it

Files = Iterator[tuple[str, str]]


def telemetry_files(job: SimulatedJob) -> Files:
    """Name and text of each file; none where the scenario asks for none.

    Raises:
        UsageError: there is no such tool.
    """
    tool = job.scenario.telemetry.tool
    if not tool:
        return iter(())
    if tool not in TOOLS:
        raise UsageError(f"no telemetry of {tool!r}", hint=f"use {', '.join(TOOLS)}")
    return TOOLS[tool](job, list(readings_of(job)))


def telemetry_truth(job: SimulatedJob) -> dict[str, Any]:
    """What is true of the devices: their clock and what held it, iteration by iteration, by rank."""
    telemetry = job.scenario.telemetry
    if not telemetry.tool:
        return {}
    clock = np.rint(job.load.clock_share.T * _FULL_MHZ).astype(int).tolist()
    told = {"tool": telemetry.tool, "interval_ns": telemetry.interval_ns, "lag_ns": telemetry.lag_ns}
    return {"telemetry": {**told, "clock_mhz": clock, "held_by": job.load.held_by.T.astype(int).tolist()}}


def _hosts(job: SimulatedJob, every: Sequence[DeviceReadings]) -> dict[str, list[DeviceReadings]]:
    hosts: dict[str, list[DeviceReadings]] = {}
    for one in every:
        hosts.setdefault(job.scenario.cluster.host_of(one.rank), []).append(one)
    return hosts


def _stamps_ns(job: SimulatedJob, one: DeviceReadings) -> list[int]:
    """When readings were taken by the tool's clock, to the ms: the host's clock and the lag."""
    first = job.scenario.cluster.ranks_of(job.scenario.cluster.node_of(one.rank))[0]
    true = np.repeat(one.true_ns[:, None], job.scenario.cluster.ranks, axis=1)
    shown = job.clocks.read(true, first) + _BASE_NS + job.scenario.telemetry.lag_ns
    return [int(ns) for ns in np.rint(shown / 1_000_000).astype(np.int64) * 1_000_000]


def _bus(job: SimulatedJob, rank: int) -> str:
    """PCI address of the device of a rank, the one that NCCL's logs state."""
    cluster = job.scenario.cluster
    return f"00000000:{Wiring(cluster).gpu_bus(rank % cluster.devices) >> 12:02X}:00.0"


def _nvidia_smi(job: SimulatedJob, every: Sequence[DeviceReadings]) -> Files:
    for host, devices in _hosts(job, every).items():
        rows = []
        for one in devices:
            number = one.rank % job.scenario.cluster.devices
            head = f"{number}, {uuid_of(job.scenario.cluster, one.rank)}, {_bus(job, one.rank)}, {_MODEL}"
            for n, at in enumerate(_stamps_ns(job, one)):
                when = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=at // 1000)
                rows.append(
                    f"{when:%Y/%m/%d %H:%M:%S}.{at // 1_000_000 % 1000:03d}, {head}, {one.clock_mhz[n]} MHz, "
                    f"{_FULL_MHZ} MHz, {one.power_w[n]:.2f} W, {one.power_limit_w:.2f} W, {one.temperature_c[n]}, "
                    f"{100 * one.busy_share[n]:.0f} %, 0x{one.throttle_reasons[n]:016x}, 0"
                )
        yield f"nvidia-smi.{host}.csv", "\n".join([_HEADER, *sorted(rows)]) + "\n"


def _dcgmi(job: SimulatedJob, every: Sequence[DeviceReadings]) -> Files:
    header = "#Entity   SMCLK  DVCCTR                POWER       TMPTR  GPUTL\nID\n"
    for host, devices in _hosts(job, every).items():
        lines = [header]
        for n in range(min(len(one.true_ns) for one in devices)):
            lines += [header] if n and n % _HEADER_EVERY == 0 else []
            lines += [
                f"GPU {one.rank % job.scenario.cluster.devices}     {one.clock_mhz[n]:<7}{one.throttle_reasons[n]:<22}"
                f"{one.power_w[n]:<12.3f}{one.temperature_c[n]:<7}{100 * one.busy_share[n]:<7.0f}\n"
                for one in devices
            ]
        yield f"dcgmi.{host}.txt", "".join(lines)


def _prometheus(job: SimulatedJob, every: Sequence[DeviceReadings]) -> Files:
    result: list[dict[str, Any]] = []
    for one in every:
        host, stamps = job.scenario.cluster.host_of(one.rank), _stamps_ns(job, one)
        number = one.rank % job.scenario.cluster.devices
        labels = {
            "gpu": str(number), "UUID": uuid_of(job.scenario.cluster, one.rank), "pci_bus_id": _bus(job, one.rank),
            "device": f"nvidia{number}", "modelName": _MODEL, "Hostname": host, "instance": f"{host}:9400",
        }  # fmt: skip
        measured = {
            "DCGM_FI_DEV_SM_CLOCK": one.clock_mhz, "DCGM_FI_DEV_POWER_USAGE": one.power_w,
            "DCGM_FI_DEV_GPU_TEMP": one.temperature_c, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": one.throttle_reasons,
        }  # fmt: skip
        result += [_series({"__name__": name, **labels}, stamps, values) for name, values in measured.items()]
        nic = {"device": f"mlx5_{number}", "port": "1", "instance": f"{host}:9100"}
        name = "node_infiniband_port_data_transmitted_bytes_total"
        result.append(_series({"__name__": name, **nic}, stamps, one.sent_bytes))
    yield "prometheus.json", json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def _series(labels: Mapping[str, str], stamps: Sequence[int], values: Any) -> dict[str, Any]:
    return {"metric": dict(labels), "values": [[at / 1e9, f"{value:g}" if isinstance(value, float) else str(value)]
                                               for at, value in zip(stamps, values.tolist(), strict=True)]}  # fmt: skip


TOOLS: Mapping[str, Callable[[SimulatedJob, Sequence[DeviceReadings]], Files]] = {
    "nvidia_smi": _nvidia_smi,
    "dcgmi": _dcgmi,
    "prometheus": _prometheus,
}
"""Who writes files of telemetry, by name."""
