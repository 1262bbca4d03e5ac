"""The next step of a finding whose devices telemetry was read of. In: findings, finding_device. Out: these findings.

Idea: what holds a device's clock down is looked for where it is: at its power, its cooling or its settings. A clock
like the peers' rules the device out, and readings that cannot tell are worth repeating. Where an operation says that a
rank has more to do, that stays the first thing to look at, and the clock is named beside it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from traceforge.store.database import Store

_DEVICES = """
SELECT run_id, finding_id, status, sm_clock_mhz, peer_sm_clock_mhz, power_limit_w, temperature_c, held_by
FROM attribute.finding_device
"""
_HELD_BY_POWER = frozenset({"power cap", "power at its limit", "power brake"})
_READ_FASTER = "read it every 100 ms (nvidia-smi --query-gpu … -lms 100)"
_NOT_TOLD = {
    "too_coarse": f"Telemetry is too coarse to tell whether its device was slowed down: {_READ_FASTER}.",
    "elsewhere": "The telemetry is of another time: record it while the job is traced.",
    "no_clock": "The telemetry holds no clock: record clocks.sm as well.",
}


def steps_of_clocks(store: Store) -> Callable[[Mapping[str, Any]], str]:
    """The next step of a finding, which follows what telemetry says of its devices."""
    devices = {(row["run_id"], row["finding_id"]): row for row in store.records(_DEVICES)}
    return lambda finding: _next_step(finding, devices.get((finding["run_id"], finding["finding_id"])))


def _next_step(finding: Mapping[str, Any], device: Mapping[str, Any] | None) -> str:
    step, usual = str(finding["next_step"]), str(finding["usual_step"])
    if device is None:
        return step
    if device["status"] == "slower_clock":
        clocks = f"{device['sm_clock_mhz']:,.0f} against {device['peer_sm_clock_mhz']:,.0f} MHz"
        if usual in step:
            return step.replace(usual, _of_slow_clock(finding, device, clocks))
        return f"{step} Then see why its device clocks at {clocks}{_because(device)}."
    if device["status"] == "as_peers":
        work = "Its device clocks like its peers': compare the work it was given (batch, sequence lengths, experts)"
        return step.replace(usual, f"{work}, then look for other programs on its device and its host.")
    return f"{step} {_NOT_TOLD[device['status']]}" if device["status"] in _NOT_TOLD else step


def _because(device: Mapping[str, Any]) -> str:
    return f" ({device['held_by']})" if device["held_by"] else ""


def _of_slow_clock(finding: Mapping[str, Any], device: Mapping[str, Any], clocks: str) -> str:
    """Where to look for what holds a clock down."""
    kind, subject = finding["subject_kind"], finding["subject"]
    whose = {"rank": f"rank {subject}", "ranks": f"ranks {subject}"}.get(kind, str(subject))
    place = f" on {finding['host']}" if finding["host"] and kind != "host" else ""
    held_by = device["held_by"]
    if held_by in _HELD_BY_POWER:
        limit = f" ({device['power_limit_w']:,.0f} W)" if device["power_limit_w"] else ""
        where = f"compare its power limit{limit} with its peers' (nvidia-smi -q -d POWER), then the host's power supply"
    elif held_by == "heat":
        degrees = f" ({device['temperature_c']:.0f} °C)" if device["temperature_c"] else ""
        where = f"have its cooling looked at{degrees}: airflow, fans, coolant, its neighbours in the rack"
    elif held_by == "a clock setting":
        where = "reset its clocks (nvidia-smi -rgc, -rac), and find out who set them"
    else:
        where = "ask the driver what holds it (nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE,CLOCK)"
    return f"The device of {whose}{place} clocks at {clocks}{_because(device)}: {where}."
