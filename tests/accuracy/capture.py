"""Records small jobs with known faults anew: `PYTHON -m tests.accuracy.capture FOLDER [JOB-FAULT]... [--seed N]`.

In: an interpreter with PyTorch (the project's extra `capture`). Out: a folder a scenario, with each rank's trace and
truth.json. `python -m tests.accuracy.captured FOLDER` judges them.
Idea: four ranks on this machine (`capture_jobs`), over gloo or, with `--machine gpu`, over NCCL (`capture_devices`).
Each run begins with clean steps that are not recorded; the fault strikes recorded steps only, and costs what these take
longer than the median of the others of them, or of the clean ones where it strikes nearly all, from one end of the last
rank to the next on the machine's clock. So truth never comes from a trace.
A machine that is busy with other things shows in how much clean steps differ: `clean_spread`, their interquartile range
over the median. Where it is large the truth is not known well enough to judge by, and the recording must be repeated.
"""

import argparse
import gc
import gzip
import json
import os
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch.profiler import ExecutionTraceObserver, profile, schedule

from tests.accuracy.capture_devices import Cores, Machine, OneGpu, Slowed
from tests.accuracy.capture_jobs import AHEAD_JOBS, ONE_AXIS_JOBS, RANKS, Doing, Pace
from tests.accuracy.capture_meshes import MESH_JOBS
from tests.accuracy.capture_network import UPLINK, Hosts, network_of

CLEAN, RECORDED = 16, 20
LEAST_OTHERS = 5
JOBS = ONE_AXIS_JOBS | MESH_JOBS
MACHINES = {"cores": Cores, "gpu": OneGpu, "network": Hosts}
_TRACE_NAME, _HOST = (re.compile(rb'("' + name + rb'": )"[^"]*"') for name in (b"traceName", b"host_name"))
_RUNTIME, _AMPLIFIED, _FABRIC = "runtime_control_plane", "synchronization_amplification", "fabric_contention"


@dataclass(frozen=True)
class Fault:
    """What one rank, or each, does besides.

    Attributes:
        modes: failure modes of which an answer may name any.
        ranks: who is at fault.
        strikes: in which recorded steps.
        act: what is done before the step.
        doing: what the step does otherwise.
        of_all: whether all ranks do it, of whom some are at fault: tokens for a hot expert come from everywhere.
        hides: whether the rank records nothing.
        slowed: the part of the network that is slow.
    """

    modes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    strikes: Callable[[int], bool] = lambda _step: True
    act: Callable[[torch.nn.Module], None] = lambda _model: None
    doing: Doing = field(default_factory=Doing)
    of_all: bool = False
    hides: bool = False
    slowed: Slowed | None = None


def _sleep(seconds: float) -> Callable[[torch.nn.Module], None]:
    return lambda _model: time.sleep(seconds)


def _collect(_model: torch.nn.Module) -> None:
    # A heap such as a data pipeline keeps, which the collector goes through.
    held: list[Any] = [[number] for number in range(60_000)]
    held.append(held)
    gc.collect()


def _checkpoint(model: torch.nn.Module) -> None:
    with tempfile.NamedTemporaryFile() as file:
        for _ in range(4):
            torch.save(model.state_dict(), file)
        os.fsync(file.fileno())


def _read_metrics(model: torch.nn.Module) -> None:
    for _ in range(3):
        for parameter in model.parameters():
            (parameter.detach() @ parameter.detach()).norm().item()


def _evaluate(model: torch.nn.Module) -> None:
    # On one rank alone, as programs do that evaluate on rank 0: work, and what waits for data.
    for _ in range(12):
        for parameter in model.parameters():
            for _ in range(4):
                parameter.detach() @ parameter.detach()
        time.sleep(0.004)


def _save_together(model: torch.nn.Module) -> None:
    if dist.get_rank() == 0:
        _checkpoint(model)
        time.sleep(0.05)
    dist.barrier()


def _empty_cache(_model: torch.nn.Module) -> None:
    # As a program does that is short of memory: blocks go back to the device, and are asked for again.
    for _ in range(4):
        held = [torch.empty(1 << 26) for _ in range(4)]
        del held
        torch.cuda.empty_cache()


FAULTS = {
    "healthy": Fault(),
    "sleep": Fault((_RUNTIME,), (2,), act=_sleep(0.03)),
    "sleep_once": Fault((_RUNTIME,), (1,), lambda step: step == 11, _sleep(0.5)),
    "everyone_once": Fault((_RUNTIME,), (0, 1, 2, 3), lambda step: step == 9, _sleep(0.5)),
    "two_sleep": Fault((_RUNTIME,), (0, 3), act=_sleep(0.03)),
    "gc": Fault((_RUNTIME,), (3,), lambda step: step % 3 == 1, _collect),
    "checkpoint": Fault((_RUNTIME,), (0,), lambda step: step % 6 == 2, _checkpoint),
    "evaluates": Fault((_RUNTIME, _AMPLIFIED), (0,), lambda step: step % 5 == 4, _evaluate),
    "saves": Fault((_RUNTIME,), (0,), lambda step: step % 5 == 3, _save_together, of_all=True),
    "uneven_batches": Fault((_AMPLIFIED,), (1,), doing=Doing(rows=0.8)),
    "read_metrics": Fault((_AMPLIFIED, _RUNTIME), (2,), act=_read_metrics),
    "without_profiler": Fault((_RUNTIME,), (3,), act=_sleep(0.03), hides=True),
    "slow": Fault((_AMPLIFIED,), (2,), doing=Doing(slower=0.4)),
    # What is slow from the first step on may be so by design where no other rank does the same.
    "slow_later": Fault((_AMPLIFIED,), (2,), lambda step: step >= 6, doing=Doing(slower=0.5)),
    "slow_loader": Fault((_RUNTIME,), (0,), doing=Doing(loads_s=0.025)),
    "slow_host": Fault((_RUNTIME,), (1,), doing=Doing(launches_s=0.006)),
    "empty_cache": Fault((_RUNTIME,), (3,), act=_empty_cache),
    "slow_nic": Fault((_FABRIC,), (2,), lambda step: step >= 6, slowed=Slowed("node2", 0.25)),
    "flapping_nic": Fault((_FABRIC,), (1,), lambda step: step % 4 == 1, slowed=Slowed("node1", 0.2)),
    "stuck_nic": Fault((_FABRIC,), (3,), lambda step: step == 11, slowed=Slowed("node3", 0.02)),
    "slow_uplink": Fault((_FABRIC,), (0, 1, 2, 3), lambda step: 5 <= step < 13, slowed=Slowed("uplink", 0.3)),
    "hot_expert": Fault((_AMPLIFIED,), (1,), doing=Doing(hot=(1, 0.3)), of_all=True),
}


@dataclass(frozen=True)
class Recording:
    """What is recorded, and where.

    Attributes:
        folder: holds a folder a scenario.
        names: scenarios of one job, recorded one after the other by the same processes.
        steps: number of recorded ones.
        machine: what ranks compute on, as `MACHINES` knows it.
        operations: whether execution traces are recorded, too.
    """

    folder: Path
    names: tuple[str, ...]
    port: int
    seed: int
    steps: int
    machine: str
    operations: bool = False


def rank_main(rank: int, asked: Recording) -> None:
    """One rank of all scenarios."""
    machine = MACHINES[asked.machine]()
    own = asked.folder / asked.names[0]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(asked.port), NCCL_DEBUG_FILE=f"{own}/nccl.%h.%p.log")
    machine.settle(rank)
    torch.manual_seed(RANKS * asked.seed + rank)
    dist.init_process_group(machine.backend, rank=rank, world_size=RANKS)
    gc.disable()
    for name in asked.names:
        _record(rank, name, asked, machine)
    dist.destroy_process_group()


def _record(rank: int, name: str, asked: Recording, machine: Machine) -> None:
    """Clean steps, then recorded ones."""
    folder, steps = asked.folder / name, asked.steps
    job_name, fault_name = name.rsplit("-", 1)
    job, fault = JOBS[job_name](Pace(asked.seed, machine.values, machine.rows)), FAULTS[fault_name]
    does, hides = fault.of_all or rank in fault.ranks, fault.hides and rank in fault.ranks
    # Clean steps are traced, too, and thrown away: tracing costs time.
    observer = None
    if asked.operations:
        observer = ExecutionTraceObserver().register_callback(f"{folder}/rank{rank}.et.json")
    recorder = profile(
        execution_trace_observer=observer,
        activities=machine.activities,
        record_shapes=True,
        schedule=schedule(wait=1, warmup=CLEAN - 1, active=steps, repeat=1),
        on_trace_ready=lambda trace: trace.export_chrome_trace(f"{folder}/rank{rank}.pt.trace.json"),
    )
    starts, marks = [], []
    dist.barrier()
    with nullcontext() if hides else recorder:
        for step in range(-CLEAN, steps):
            is_struck = does and step >= 0 and fault.strikes(step)
            machine.set_network(fault.slowed if step >= 0 and fault.strikes(step) else None)
            starts.append(time.monotonic_ns())
            if is_struck:
                fault.act(job.model)
            job.step(fault.doing if is_struck else Doing())
            marks.append(machine.end_step(job_name not in AHEAD_JOBS))
            if step == steps - 1:
                # To write the trace must not hold up ranks that are still in the last step.
                machine.rest()
            if not hides:
                recorder.step()
    times = list(zip(starts, machine.ends_ns(marks), strict=True))
    Path(folder, f"rank{rank}.times").write_text(json.dumps(times), encoding="utf-8")


def truth_of(name: str, times: list[list[list[int]]]) -> dict[str, Any]:
    """What was injected and what it cost, from start and end of each rank's steps."""
    kind = name.rsplit("-", 1)[1]
    fault = FAULTS[kind]
    # From one end of the last rank to the next: ranks of a pipeline begin a step while others still end the one before.
    ends = [max(end for _, end in one) for one in zip(*times, strict=True)]
    lasts = [until - since for since, until in pairwise(ends)]
    quarter_ns, clean_ns, three_quarters_ns = statistics.quantiles(lasts[3 : CLEAN - 1], n=4)
    recorded = lasts[CLEAN - 1 :]
    struck = [fault.strikes(step) for step in range(len(recorded))]
    # Recording takes time itself: the others of the recorded steps tell what these take without the fault.
    others = [ns for ns, hit in zip(recorded, struck, strict=True) if not hit]
    usual_ns = statistics.median(others) if len(others) >= LEAST_OTHERS else clean_ns
    cost = [round(ns - usual_ns) if hit else 0 for ns, hit in zip(recorded, struck, strict=True)]
    is_of_all = len(fault.ranks) == RANKS
    trouble = {
        "faults": [0],
        "modes": list(fault.modes),
        "subject_kind": "link"
        if fault.slowed
        else "job"
        if is_of_all
        else "rank"
        if len(fault.ranks) == 1
        else "ranks",
        "subject": "all" if is_of_all and not fault.slowed else ", ".join(map(str, fault.ranks)),
        "ranks": list(fault.ranks),
        "links": [list(UPLINK)] if fault.slowed and fault.slowed.cable == "uplink" else [],
        "removed_ns": cost,
        "added_ns": cost,
    }
    told = {
        "kind": kind,
        "mode": "/".join(fault.modes),
        "rank": fault.ranks[0] if len(fault.ranks) == 1 else None,
        "iterations": [CLEAN + step for step, hit in enumerate(struck) if hit],
        "step_excess_ns": [ns for ns, hit in zip(cost, struck, strict=True) if hit],
        "communicators": [],
    }
    return {
        "schema_version": 1, "scenario": name, "world_size": RANKS, "hosts": ["node0"] * RANKS,
        "lost": list(fault.ranks) if fault.hides else [], "clean_ns": clean_ns,
        "clean_spread": (three_quarters_ns - quarter_ns) / clean_ns, "duration_ns": recorded,
        "iterations": list(range(CLEAN, CLEAN + len(recorded))),
        "faults": [told] if fault.ranks else [], "troubles": [trouble] if fault.ranks else [],
    }  # fmt: skip


def tidy(folder: Path, named_hosts: bool = False) -> None:
    """Compress what was written, each the same at any time, without their path and the machine's name."""
    written = [path for kind in ("*.pt.trace.json", "*.et.json", "nccl.*.log") for path in folder.glob(kind)]
    for trace in sorted(written):
        named = _TRACE_NAME.sub(rb'\1"' + trace.name.encode() + b'"', trace.read_bytes())
        if not named_hosts:
            named = _HOST.sub(rb'\1"node0"', named)
        trace.with_name(f"{trace.name}.gz").write_bytes(gzip.compress(named, compresslevel=9, mtime=0))
        trace.unlink()


def main() -> None:
    """Record what is asked for, by default each job healthy."""
    parser = argparse.ArgumentParser(prog="python -m tests.accuracy.capture", description="Record jobs with faults.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=[f"{job}-healthy" for job in JOBS], help="JOB-FAULT")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=RECORDED)
    parser.add_argument(
        "--machine",
        choices=MACHINES,
        default="cores",
        help="cores or a network of hosts over gloo, or one GPU over NCCL",
    )
    parser.add_argument("--operations", action="store_true", help="execution traces, too")
    parser.epilog = f"jobs: {', '.join(JOBS)}; faults: {', '.join(FAULTS)}"
    asked = parser.parse_args()
    of_one_run = (lambda name: name.rsplit("-", 1)[0]) if asked.machine == "gpu" else (lambda name: name)
    for number, (_, names) in enumerate(groupby(asked.names, of_one_run)):
        recording = Recording(
            asked.folder, tuple(names), 29_500 + number, asked.seed, asked.steps, asked.machine, asked.operations
        )
        for name in recording.names:
            (asked.folder / name).mkdir(parents=True, exist_ok=True)
        with network_of(asked.machine):
            processes.spawn(rank_main, (recording,), nprocs=RANKS)  # type: ignore[no-untyped-call]
        for name in recording.names:
            print(_told(asked.folder / name, asked.machine), flush=True)


def _told(own: Path, machine: str) -> str:
    """The truth of a recording, which is written beside it, in one line."""
    files = [own / f"rank{rank}.times" for rank in range(RANKS)]
    truth = truth_of(own.name, [json.loads(file.read_text(encoding="utf-8")) for file in files])
    if machine == "network":
        truth["hosts"] = [f"node{rank}" for rank in range(RANKS)]
    (own / "truth.json").write_text(json.dumps(truth | {"machine": machine}, indent=1) + "\n", encoding="utf-8")
    for file in files:
        file.unlink()
    tidy(own, named_hosts=machine == "network")
    cost = sum(truth["troubles"][0]["removed_ns"]) / len(truth["duration_ns"]) / 1e6 if truth["troubles"] else 0.0
    spread = f"clean steps {truth['clean_ns'] / 1e6:.1f} ms, which vary by {truth['clean_spread']:.0%}"
    return f"{own.name}: {spread}, cost {cost:.1f} ms a step"


if __name__ == "__main__":
    main()
