"""A scenario on disk. In: a scenario. Out: a folder with one trace a rank, `scenario.toml` and `truth.json`.

Truth is in ns of true time: for every iteration how long it took, by how much it exceeds an undisturbed one, and what
each fault contributed. `troubles` says what a right answer names: the failure modes and the subject, and its cost.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceforge.errors import UsageError
from traceforge.synth.execution_trace import execution_trace_text
from traceforge.synth.fault import faults
from traceforge.synth.kineto import trace_text
from traceforge.synth.layout_truth import parallel_truth
from traceforge.synth.nccl_inspector import inspector_files
from traceforge.synth.nccl_log import log_files
from traceforge.synth.nsys import write_reports
from traceforge.synth.pftrace import pftrace_bytes
from traceforge.synth.rocpd import write_rocpd
from traceforge.synth.rocprof import rocprof_text
from traceforge.synth.scenario import FaultCost, Scenario, SimulatedJob, cost_of, run, table_of
from traceforge.synth.telemetry_files import telemetry_files, telemetry_truth
from traceforge.synth.xplane import xplane_bytes

TRACE_FORMATS = ("kineto", "nsys", "nsys_parquet", "pftrace", "rocprof", "rocpd", "xplane")


def write_scenario(
    scenario: Scenario,
    folder: Path,
    *,
    compressed: bool = True,
    left_out: frozenset[int] = frozenset(),
    trace_format: str = "kineto",
) -> FaultCost:
    """Write all files of a scenario and return what its faults cost.

    Args:
        folder: is made where it does not exist.
        compressed: whether traces are written as .json.gz.
        left_out: ranks whose traces are not written, as if they had been lost.
        trace_format: `kineto` (one .json a rank), `nsys` (SQLite exports of Nsight Systems), `nsys_parquet` (its
            folders of Parquet files), `pftrace` (Perfetto, as PyTorch's CUPTI observer writes it), `rocprof` (JSON of
            rocprofv3), `rocpd` (its SQLite databases) or `xplane` (JAX).

    Raises:
        UsageError: there is no such format.
    """
    if trace_format not in TRACE_FORMATS:
        raise UsageError(f"no trace format {trace_format!r}", hint=f"use {' or '.join(TRACE_FORMATS)}")
    job = run(scenario)
    cost = cost_of(scenario)
    folder.mkdir(parents=True, exist_ok=True)
    texts: dict[str, str] = {}
    ranks = [rank for rank in range(scenario.cluster.ranks) if rank not in left_out]
    if trace_format == "kineto":
        texts = {f"rank{rank}.pt.trace.json": trace_text(job, rank) for rank in ranks}
    elif trace_format == "rocprof":
        texts = {f"rank{rank}_results.json": rocprof_text(job, rank) for rank in ranks}
    else:
        _write_binary(job, folder, left_out, trace_format, compressed=compressed)
    if scenario.execution_traces:
        texts |= {f"rank{rank}.et.json": execution_trace_text(job, rank) for rank in ranks}
    if scenario.nccl.version:
        texts |= log_files(job, scenario.nccl)
    if scenario.nccl.inspector:
        texts |= inspector_files(job)
    texts |= telemetry_files(job)
    for name, text in texts.items():
        data = gzip.compress(text.encode(), 6, mtime=0) if compressed else text.encode()
        (folder / (name + ".gz" * compressed)).write_bytes(data)
    (folder / "scenario.toml").write_text(_toml(scenario), encoding="utf-8")
    truth = truth_of(scenario, cost) | parallel_truth(job) | telemetry_truth(job)
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
    return cost


def _write_binary(
    job: SimulatedJob, folder: Path, left_out: frozenset[int], trace_format: str, *, compressed: bool
) -> None:
    """Write the timelines of a format that is no text."""
    if trace_format.startswith("nsys"):
        write_reports(job, folder, left_out, as_parquet=trace_format == "nsys_parquet")
        return
    for rank in sorted(set(range(job.scenario.cluster.ranks)) - left_out):
        if trace_format == "rocpd":
            write_rocpd(job, rank, folder / f"rank{rank}_results.db")
        elif trace_format == "xplane":
            (folder / f"rank{rank}.xplane.pb").write_bytes(xplane_bytes(job, rank))
        else:
            # Compressed under the bare name, as PyTorch writes it.
            data = pftrace_bytes(job, rank)
            (folder / f"rank{rank}.pftrace").write_bytes(gzip.compress(data, 1, mtime=0) if compressed else data)


def truth_of(scenario: Scenario, cost: FaultCost) -> dict[str, Any]:
    """What is true of a scenario's run."""
    return {
        "schema_version": 1,
        "scenario": scenario.name,
        "seed": scenario.seed,
        "world_size": scenario.cluster.ranks,
        "hosts": [scenario.cluster.host_of(rank) for rank in range(scenario.cluster.ranks)],
        "iterations": [scenario.first_step + i for i in range(scenario.iterations)],
        "duration_ns": _whole(cost.duration_ns),
        "excess_ns": _whole(cost.duration_ns - cost.healthy_ns),
        "faults": [_fault(scenario, cost, number) for number in range(len(scenario.faults))],
        "troubles": [_trouble(cost, number) for number in range(len(cost.troubles))],
    }


def _fault(scenario: Scenario, cost: FaultCost, number: int) -> dict[str, Any]:
    injection = scenario.faults[number]
    fault = faults()[injection.fault]
    return {
        "kind": fault.name,
        "mode": fault.mode,
        "cause": fault.cause,
        "befalls": fault.target,
        "place": injection.place,
        "severity": injection.severity,
        "communicators": [list(group.ranks) for group in fault.groups(scenario.cluster, injection.place)],
        "iterations": [scenario.first_step + int(i) for i in injection.iterations(scenario.iterations)],
        "removed_ns": _whole(cost.removed_ns[number]),
        "added_ns": _whole(cost.added_ns[number]),
    }


def _trouble(cost: FaultCost, number: int) -> dict[str, Any]:
    trouble = cost.troubles[number]
    return {
        "faults": list(trouble.numbers),
        "modes": list(trouble.modes),
        "subject_kind": trouble.subject_kind,
        "subject": trouble.subject,
        "ranks": list(trouble.ranks),
        "removed_ns": _whole(cost.trouble_removed_ns[number]),
        "added_ns": _whole(cost.trouble_added_ns[number]),
    }


def _whole(times_ns: NDArray[np.float64]) -> list[int]:
    return [int(time) for time in np.rint(times_ns)]


def _toml(scenario: Scenario) -> str:
    table = table_of(scenario)
    lines = [f"{name} = {json.dumps(value)}" for name, value in table.items() if not isinstance(value, dict | list)]
    for name, value in table.items():
        parts = [(f"[{name}]", value)] if isinstance(value, dict) else []
        parts += [(f"[[{name}]]", one) for one in value] if isinstance(value, list) else []
        for head, part in parts:
            lines += ["", head, *(f"{key} = {json.dumps(item)}" for key, item in part.items() if item is not None)]
    return "\n".join(lines) + "\n"
