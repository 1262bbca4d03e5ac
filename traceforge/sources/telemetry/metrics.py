"""What tools call the quantities. In: the word of a tool. Out: our metric, and the factor to its unit.

Names: `nvidia-smi --help-query-gpu`; short names in DCGM's `dcgm_fields.cpp`; metrics of dcgm-exporter and of
node_exporter. Not handled: quantities that nothing here asks for; they are counted by name.
"""

import re
from typing import NamedTuple


class TelemetryMetric(NamedTuple):
    """A quantity.

    Attributes:
        name: as in raw.telemetry_series.metric.
        factor: from the tool's unit to ours.
        place: of several columns with one metric, the lowest is read.
    """

    name: str
    factor: float = 1.0
    place: int = 0


_PERCENT = 0.01

_SMI = {
    "clocks.current.sm": TelemetryMetric("sm_clock_mhz"),
    "clocks.sm": TelemetryMetric("sm_clock_mhz", place=1),
    # On all devices of today one clock drives both.
    "clocks.current.graphics": TelemetryMetric("sm_clock_mhz", place=2),
    "clocks.gr": TelemetryMetric("sm_clock_mhz", place=3),
    "clocks.current.memory": TelemetryMetric("memory_clock_mhz"),
    "clocks.mem": TelemetryMetric("memory_clock_mhz", place=1),
    "clocks.max.sm": TelemetryMetric("sm_clock_max_mhz"),
    "power.draw.instant": TelemetryMetric("power_w"),
    "power.draw": TelemetryMetric("power_w", place=1),
    "power.draw.average": TelemetryMetric("power_w", place=2),
    "enforced.power.limit": TelemetryMetric("power_limit_w"),
    "power.limit": TelemetryMetric("power_limit_w", place=1),
    "temperature.gpu": TelemetryMetric("temperature_c"),
    "temperature.memory": TelemetryMetric("memory_temperature_c"),
    "utilization.gpu": TelemetryMetric("busy_share", _PERCENT),
    "clocks_event_reasons.active": TelemetryMetric("throttle_reasons"),
    "clocks_throttle_reasons.active": TelemetryMetric("throttle_reasons", place=1),
    "ecc.errors.corrected.volatile.total": TelemetryMetric("ecc_corrected"),
    "ecc.errors.uncorrected.volatile.total": TelemetryMetric("ecc_uncorrected"),
}
# Columns that say of one reason each whether it holds; its bit in the column of all of them (nvml.h).
_REASONS = {
    "gpu_idle": 0x1, "applications_clocks_setting": 0x2, "sw_power_cap": 0x4, "hw_slowdown": 0x8, "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20, "hw_thermal_slowdown": 0x40, "hw_power_brake_slowdown": 0x80,
}  # fmt: skip
_REASON = re.compile(r"^clocks_(?:throttle|event)_reasons\.(\w+)$")
_DMON = {
    "SMCLK": TelemetryMetric("sm_clock_mhz"),
    "MMCLK": TelemetryMetric("memory_clock_mhz"),
    "SMMAX": TelemetryMetric("sm_clock_max_mhz"),
    "POWER": TelemetryMetric("power_w"),
    "EPLMT": TelemetryMetric("power_limit_w"),
    "PMLMT": TelemetryMetric("power_limit_w", place=1),
    "TMPTR": TelemetryMetric("temperature_c"),
    "MMTMP": TelemetryMetric("memory_temperature_c"),
    "GPUTL": TelemetryMetric("busy_share", _PERCENT),
    "SMACT": TelemetryMetric("sm_active_share"),
    "DVCCTR": TelemetryMetric("throttle_reasons"),
    "ESVTL": TelemetryMetric("ecc_corrected"),
    "EDVTL": TelemetryMetric("ecc_uncorrected"),
}
_EXPORTED = {
    "DCGM_FI_DEV_SM_CLOCK": TelemetryMetric("sm_clock_mhz"),
    "DCGM_FI_DEV_MEM_CLOCK": TelemetryMetric("memory_clock_mhz"),
    "DCGM_FI_DEV_MAX_SM_CLOCK": TelemetryMetric("sm_clock_max_mhz"),
    "DCGM_FI_DEV_POWER_USAGE": TelemetryMetric("power_w"),
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": TelemetryMetric("power_limit_w"),
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": TelemetryMetric("power_limit_w", place=1),
    "DCGM_FI_DEV_GPU_TEMP": TelemetryMetric("temperature_c"),
    "DCGM_FI_DEV_MEMORY_TEMP": TelemetryMetric("memory_temperature_c"),
    "DCGM_FI_DEV_GPU_UTIL": TelemetryMetric("busy_share", _PERCENT),
    "DCGM_FI_PROF_SM_ACTIVE": TelemetryMetric("sm_active_share"),
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": TelemetryMetric("throttle_reasons"),
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": TelemetryMetric("throttle_reasons", place=1),
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": TelemetryMetric("ecc_corrected"),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": TelemetryMetric("ecc_uncorrected"),
    "node_infiniband_port_data_received_bytes_total": TelemetryMetric("nic_received_bytes"),
    "node_infiniband_port_data_transmitted_bytes_total": TelemetryMetric("nic_sent_bytes"),
    "node_infiniband_port_errors_received_total": TelemetryMetric("nic_errors"),
    "node_network_receive_bytes_total": TelemetryMetric("nic_received_bytes"),
    "node_network_transmit_bytes_total": TelemetryMetric("nic_sent_bytes"),
    "node_network_receive_errs_total": TelemetryMetric("nic_errors"),
}
_UNIT = re.compile(r"\s*\[[^\]]*\]$")
_IDENTITY = frozenset({"timestamp", "index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "name", "gpu_name"})
_LONGEST_HEADER = 16_384


def smi_separator(header: str) -> str:
    """What stands between columns: a semicolon where a spreadsheet with decimal commas wrote the file anew."""
    return ";" if ";" in header else ","


def smi_columns(header: str) -> list[str]:
    """Names of the columns of a header of nvidia-smi, without units."""
    return [_UNIT.sub("", name.strip()) for name in header.strip().split(smi_separator(header))]


def is_query_header(line: str) -> bool:
    """Whether a line is a header of `nvidia-smi --query-gpu`: it names a quantity, and when or of which device."""
    if len(line) > _LONGEST_HEADER or smi_separator(line) not in line:
        return False
    names = smi_columns(line)
    return any(name in _SMI or smi_reason_bit(name) for name in names) and any(name in _IDENTITY for name in names)


def smi_metric(name: str) -> TelemetryMetric | None:
    """The metric of a column of nvidia-smi."""
    return _SMI.get(name)


def smi_reason_bit(name: str) -> int | None:
    """The bit of the reason that a column of nvidia-smi tells of alone; None for other columns."""
    found = _REASON.match(name)
    return _REASONS.get(found[1]) if found else None


def dmon_metric(name: str) -> TelemetryMetric | None:
    """The metric of a column of `dcgmi dmon`."""
    return _DMON.get(name)


def exported_metric(name: str) -> TelemetryMetric | None:
    """The metric of a metric of Prometheus."""
    return _EXPORTED.get(name)
