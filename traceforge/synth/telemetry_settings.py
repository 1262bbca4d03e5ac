"""Which telemetry a job leaves. In: nothing. Out: the part of a scenario that says so."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What is read of devices beside the traces.

    Attributes:
        tool: `nvidia_smi`, `dcgmi` or `prometheus`; empty for none.
        interval_ns: between two readings of a device.
        lag_ns: how much later the tool dates what it reads than the host's clock does.
        around_ns: how long it reads before the job and after it.
    """

    tool: str = ""
    interval_ns: int = 100_000_000
    lag_ns: int = 0
    around_ns: int = 1_000_000_000
