"""PROVENANCE.md of one recorded scenario.

In:   the scenario, what `truth.py` measured; PROVENANCE.template.md and provenance.toml beside this file.
Out:  Markdown text.
Idea: whoever finds the files alone can tell what they are, how they came about and what they cannot show.
Not:  the analysis of a run.
"""

import os
import platform
import textwrap
import time
import tomllib
from pathlib import Path
from typing import Any

from lab import BURST_BYTES, QUEUE_BYTES
from scenarios import (
    ACTIVE_STEPS,
    BATCH,
    LAYERS,
    NIC_BITS_PER_S,
    RECORDED_STEPS,
    UPLINK_BITS_PER_S,
    WIDTH,
    Scenario,
)
from truth import CALM

HERE = Path(__file__).parent
TEXTS = tomllib.loads((HERE / "provenance.toml").read_text(encoding="utf-8"))
TEMPLATE = (HERE / "PROVENANCE.template.md").read_text(encoding="utf-8")
WIDTH_CHARS = 118


def provenance(scenario: Scenario, truth: dict[str, Any], torch_version: str) -> str:
    """Return PROVENANCE.md."""
    parallel = "tensor_parallel" if scenario.tensor_parallel > 1 else "data_parallel"
    extent = "full" if scenario.execution_trace_steps == ACTIVE_STEPS else "cut"
    return TEMPLATE.format(
        name=scenario.name,
        story=scenario.story,
        month=time.strftime("%Y-%m"),
        machine=machine(),
        cores=os.cpu_count(),
        torch=torch_version,
        first=RECORDED_STEPS[0],
        last=RECORDED_STEPS[-1],
        count=len(RECORDED_STEPS),
        network=wrapped(network() + " " + TEXTS["network"][parallel]),
        injected=wrapped(injected(scenario, truth)),
        program=wrapped(program(TEXTS["program"][parallel])),
        calm=CALM,
        execution_trace=TEXTS["execution_trace"][extent].format(steps=scenario.execution_trace_steps),
    )


def machine() -> str:
    """Return the class of this machine, such as `x86-64 virtual machine`; nothing that identifies it."""
    virtual = "hypervisor" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return platform.machine().replace("_", "-") + (" virtual machine" if virtual else " machine")


def wrapped(text: str) -> str:
    """Return a paragraph with its lines filled."""
    return textwrap.fill(text.strip(), WIDTH_CHARS, break_long_words=False, break_on_hyphens=False)


def network() -> str:
    """Return the sentences on rates and queues."""
    text: str = TEXTS["network"]["common"]
    return text.format(
        nic=NIC_BITS_PER_S / 1e6,
        uplink=UPLINK_BITS_PER_S / 1e6,
        burst=BURST_BYTES // 1024,
        queue=QUEUE_BYTES // 2**20,
    )


def program(text: str) -> str:
    """Return the paragraph on the model with its sizes filled in."""
    return text.format(
        layers=LAYERS,
        pairs=LAYERS // 2,
        width=WIDTH,
        twice=2 * WIDTH,
        batch=BATCH,
        bucket_bytes=WIDTH * WIDTH * 4,
        activation_bytes=BATCH * WIDTH * 4,
    )


def injected(scenario: Scenario, truth: dict[str, Any]) -> str:
    """Return the paragraph on the fault, with its measured size."""
    fault = truth["faults"][0] if truth["faults"] else {}
    text: str = TEXTS["injected"][scenario.kind or "none"]
    return text.format(
        rank=scenario.rank,
        steps=spans(scenario.steps),
        injected_ms=mean(fault.get("injected_ns_per_iteration")) / 1e6,
        wall_ms=mean(fault.get("injected_wall_ns_per_iteration")) / 1e6,
        excess_ms=mean(fault.get("step_excess_ns")) / 1e6,
        flows=fault.get("competing_tcp_flows"),
        competing=fault.get("competing_bits_per_s", 0) / 1e6,
        normal=fault.get("normal_bits_per_s", 0) / 1e6,
        slow=fault.get("fault_bits_per_s", 0) / 1e6,
    )


def spans(steps: tuple[int, ...]) -> str:
    """Return step numbers as text, runs of three and more shortened: `17, 22, 30 to 41`."""
    runs: list[list[int]] = []
    for step in steps:
        if runs and step == runs[-1][-1] + 1:
            runs[-1].append(step)
        else:
            runs.append([step])
    texts = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return ", ".join(texts)


def mean(values: list[int] | None) -> float:
    """Return the mean, 0 for none."""
    return sum(values) / len(values) if values else 0.0
