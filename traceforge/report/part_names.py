"""What the parts of a step are called wherever they are listed. In: rows of attribute.bottleneck. Out: words."""

from traceforge.report.context import Row
from traceforge.report.formatting import capital, spaced

_LABELS = {
    "ideal": "Arithmetic at the device's peak",
    "compute_bound": "Arithmetic slower than the peak",
    "memory_bound": "Kernels bound by memory",
    "small_kernels": "Small kernels",
    "unmodelled_kernels": "Kernels whose best time is not known",
    "host_compute": "Operations of the host",
    "communication_at_line_rate": "Communication at line rate",
    "communication_bound": "Communication alone",
    "imbalance_bound": "Waiting for later ranks",
    "pipeline_bubble": "Pipeline bubble",
    "copy_bound": "Copies alone",
    "input_bound": "Loading data",
    "launch_bound": "Launches come late",
    "synchronisation_bound": "The host waits for the device",
    "mpi_call": "The host is in MPI",
    "device_queue": "Held up on the device",
    "stagger": "Ranks begin or end apart",
}


def part_name(part: Row) -> str:
    """The name of a part; one that is not listed reads as it is written."""
    if part["bound"] == "communication_bound" and "line rate" in part.get("basis", ""):
        return "Communication slower than line rate"
    return _LABELS.get(part["bound"]) or capital(spaced(part["bound"]))
