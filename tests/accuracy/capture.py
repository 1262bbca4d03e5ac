"""Records small jobs with known faults anew: `PYTHON -m tests.accuracy.capture FOLDER [JOB-FAULT]... [--seed N]`.

In: an interpreter with PyTorch (the project's extra `capture`). Out: a folder a scenario, with each rank's trace and
truth.json. `python -m tests.accuracy.captured FOLDER` judges them.
Idea: some ranks on this machine (`capture_jobs`), over gloo or, with `--machine gpu`, over NCCL (`capture_devices`).
Each run begins with clean steps that are not recorded; faults (`capture_faults`) strike recorded steps only, and cost
what these take longer by the clock of the machine (`capture_truth`).
A machine that is busy with other things shows in how much clean steps differ: `clean_spread`, their interquartile range
over the median. Where it is large the truth is not known well enough to judge by, and the recording must be repeated.
"""

import argparse
import gc
import gzip
import json
import os
import re
import socket
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch.profiler import ExecutionTraceObserver, profile, schedule

from tests.accuracy.capture_devices import Cores, Machine, OneGpu, Place
from tests.accuracy.capture_faults import FAULTS, faults_of, why_not
from tests.accuracy.capture_jobs import AHEAD_JOBS, ONE_AXIS_JOBS, Doing, Pace
from tests.accuracy.capture_meshes import MESH_JOBS
from tests.accuracy.capture_network import Hosts, network_of
from tests.accuracy.capture_truth import CLEAN, truth_of

RECORDED = 20
JOBS = ONE_AXIS_JOBS | MESH_JOBS
MACHINES = {"cores": Cores, "gpu": OneGpu, "network": Hosts}
_TRACE_NAME, _HOST = (re.compile(rb'("' + name + rb'": )"[^"]*"') for name in (b"traceName", b"host_name"))
_RANK = re.compile(r"rank(\d+)\.")


@dataclass(frozen=True)
class Recording:
    """What is recorded, and where.

    Attributes:
        folder: holds a folder a scenario.
        names: scenarios of one job, recorded one after the other by the same processes.
        steps: number of recorded ones.
        ranks: of the job.
        ranks_a_host: of them, how many each host has.
        machine: what ranks compute on, as `MACHINES` knows it.
        operations: whether execution traces are recorded, too.
    """

    folder: Path
    names: tuple[str, ...]
    port: int
    seed: int
    steps: int
    machine: str
    ranks: int
    ranks_a_host: int
    operations: bool = False

    @property
    def hosts(self) -> list[str]:
        """Of each rank, its host."""
        return [f"node{rank // self.ranks_a_host}" for rank in range(self.ranks)]


def rank_main(rank: int, asked: Recording) -> None:
    """One rank of all scenarios."""
    machine = MACHINES[asked.machine]()
    own = asked.folder / asked.names[0]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(asked.port), NCCL_DEBUG_FILE=f"{own}/nccl.%h.%p.log")
    machine.settle(Place(rank, rank // asked.ranks_a_host, asked.ranks // asked.ranks_a_host))
    torch.manual_seed(asked.ranks * asked.seed + rank)
    dist.init_process_group(machine.backend, rank=rank, world_size=asked.ranks)
    gc.disable()
    for name in asked.names:
        _record(rank, name, asked, machine)
    dist.destroy_process_group()


def _record(rank: int, name: str, asked: Recording, machine: Machine) -> None:
    """Clean steps, then recorded ones."""
    folder, steps = asked.folder / name, asked.steps
    job_name, fault_name = name.rsplit("-", 1)
    job = JOBS[job_name](Pace(asked.seed, machine.values, machine.rows))
    faults = faults_of(fault_name, steps)
    hides = any(fault.hides and rank in fault.ranks for fault in faults)
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
    machine.work()
    dist.barrier()
    with nullcontext() if hides else recorder:
        for step in range(-CLEAN, steps):
            own = [fault for fault in faults if fault.is_done_by(rank, asked.ranks, step)]
            machine.set_network(next((fault.slowed for fault in own if fault.slowed), None))
            starts.append(time.monotonic_ns())
            for fault in own:
                fault.act(job.model)
            # A new one a step, for which lengths that vary are drawn anew.
            job.step(replace(next((fault.doing for fault in own if fault.doing != Doing()), Doing())))
            marks.append(machine.end_step(job_name not in AHEAD_JOBS))
            if step == steps - 1:
                # To write the trace must not hold up ranks that are still in the last step.
                machine.rest()
            if not hides:
                recorder.step()
    times = list(zip(starts, machine.ends_ns(marks), strict=True))
    Path(folder, f"rank{rank}.times").write_text(json.dumps(times), encoding="utf-8")


def tidy(folder: Path, hosts: list[str] | None = None) -> None:
    """Compress what was written, each the same at any time, without their path and the machine's name."""
    written = [path for kind in ("*.pt.trace.json", "*.et.json", "nccl.*.log") for path in folder.glob(kind)]
    for trace in sorted(written):
        named = _TRACE_NAME.sub(rb'\1"' + trace.name.encode() + b'"', trace.read_bytes())
        rank = _RANK.match(trace.name)
        host = hosts[int(rank[1])] if hosts and rank else "node0"
        named = _HOST.sub(rb'\1"' + host.encode() + b'"', named)
        trace.with_name(f"{trace.name}.gz").write_bytes(gzip.compress(named, compresslevel=9, mtime=0))
        trace.unlink()


def main() -> None:
    """Record what is asked for, by default each job healthy."""
    parser = argparse.ArgumentParser(prog="python -m tests.accuracy.capture", description="Record jobs with faults.")
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "names", nargs="*", default=[f"{job}-healthy" for job in JOBS], help="JOB-FAULT, or JOB-FAULT+FAULT"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=RECORDED)
    parser.add_argument(
        "--machine",
        choices=MACHINES,
        default="cores",
        help="cores or a network of hosts over gloo, or one GPU over NCCL",
    )
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--ranks-a-host", type=int, help="by default one over a network, else all")
    parser.add_argument("--operations", action="store_true", help="execution traces, too")
    parser.epilog = f"jobs: {', '.join(JOBS)}; faults: {', '.join(FAULTS)}"
    asked = parser.parse_args()
    ranks_a_host = asked.ranks_a_host or (1 if asked.machine == "network" else asked.ranks)
    if asked.ranks % ranks_a_host:
        parser.error(f"{asked.ranks} ranks do not fill hosts of {ranks_a_host}")
    for name in asked.names:
        job, _, fault = name.rpartition("-")
        why = why_not(fault, asked.ranks, asked.steps) if job in JOBS else f"there is no job {job}"
        if why is not None:
            parser.error(f"{name}: {why}")
    of_one_run = (lambda name: name.rsplit("-", 1)[0]) if asked.machine == "gpu" else (lambda name: name)
    # What a parent has imported its forks need not import; a device wants processes of its own.
    method = "spawn" if asked.machine == "gpu" else "fork"
    for _, names in groupby(asked.names, of_one_run):
        recording = Recording(
            asked.folder, tuple(names), _free_port(), asked.seed, asked.steps, asked.machine, asked.ranks,
            ranks_a_host, asked.operations,
        )  # fmt: skip
        for name in recording.names:
            (asked.folder / name).mkdir(parents=True, exist_ok=True)
        with network_of(asked.machine, asked.ranks // ranks_a_host):
            processes.start_processes(rank_main, (recording,), asked.ranks, start_method=method)  # type: ignore[no-untyped-call]
        for name in recording.names:
            print(_told(asked.folder / name, recording), flush=True)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("", 0))
        return int(one.getsockname()[1])


def _told(own: Path, recording: Recording) -> str:
    """The truth of a recording, which is written beside it, in one line."""
    files = [own / f"rank{rank}.times" for rank in range(recording.ranks)]
    times = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    truth = truth_of(own.name, faults_of(own.name.rsplit("-", 1)[1], recording.steps), times, recording.hosts)
    told = truth | {"machine": recording.machine}
    (own / "truth.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    for file in files:
        file.unlink()
    tidy(own, recording.hosts)
    costs = [sum(one["removed_ns"]) / len(truth["duration_ns"]) / 1e6 for one in truth["troubles"]]
    spread = f"clean steps {truth['clean_ns'] / 1e6:.1f} ms, which vary by {truth['clean_spread']:.0%}"
    return f"{own.name}: {spread}, cost {', '.join(f'{one:.1f}' for one in costs) or 'nothing'} ms a step"


if __name__ == "__main__":
    main()
