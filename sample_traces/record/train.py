"""The program of one rank: DDP over gloo under the profiler.

In:   scenario, rank, output folder; MASTER_ADDR, MASTER_PORT, GLOO_SOCKET_IFNAME in the environment.
Out:  this rank's .pt.trace.json, .et.json and .steps.json (what the program itself measured, ns).
Idea: an ordinary training loop. Rank 0 also says on a pipe that a step begins, in every step alike.
Not:  network faults; those happen around this process.
Made: for PyTorch 2.13, CPU.
"""

import argparse
import contextlib
import gc
import json
import os
import socket
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from scenarios import ACTIVE_STEPS, SCENARIOS, WAIT_STEPS, WARMUP_STEPS, WIDTH, WORLD_SIZE, Scenario
from tensor_parallel import SplitNetwork
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader
from workload import Batches, Meter, Network

STEPS = WAIT_STEPS + WARMUP_STEPS + ACTIVE_STEPS
BUCKET_MB = WIDTH * WIDTH * 4 / 2**20
"""DDP bucket size, MiB: one layer fills one bucket."""


PATIENCE = timedelta(seconds=60)
"""Longest wait for the other ranks, in a collective or at the start."""
HEAP_BYTES = 768 * 2**20
"""Memory touched once at the start. The allocator keeps it (run.py sets its thresholds), so that growing
trace buffers cause no page faults in the middle of the recording."""


def main() -> None:
    """Parse, join the group, train."""
    parser = argparse.ArgumentParser(description="one rank of a recorded run; started by record.py")
    parser.add_argument("--scenario", choices=SCENARIOS, required=True)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--step-pipe", type=int, default=-1, help="file descriptor for step numbers (rank 0)")
    args = parser.parse_args()
    settle(args.rank)
    scenario = SCENARIOS[args.scenario]
    meter = Meter()
    with urgent():
        dist.init_process_group("gloo", rank=args.rank, world_size=WORLD_SIZE, timeout=PATIENCE)
        model = wrap(scenario, args.rank, meter)
    data = Batches(
        steps=STEPS,
        stalled_steps=frozenset(scenario.steps if args.rank == scenario.rank else ()),
        stall_ns=scenario.stall_ns,
        meter=meter,
    )
    rows = train(model, data, recorder(args.rank, args.out), args.step_pipe)
    (args.out / f"rank{args.rank}.steps.json").write_text(json.dumps(rows), encoding="utf-8")
    dist.destroy_process_group()


def settle(rank: int) -> None:
    """Name the host, pin two ranks to each core and put this process ahead of the machine's other work."""
    socket.sethostname(f"node{rank}")
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text("-15", encoding="ascii")
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    torch.zeros(HEAP_BYTES, dtype=torch.uint8)


@contextlib.contextmanager
def urgent() -> Iterator[None]:
    """Give threads that start in here (gloo's) real-time priority: computing must not delay a message.

    A network card moves data beside the processor; gloo's threads need the processor, for a short time.
    """
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    yield
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def wrap(scenario: Scenario, rank: int, meter: Meter) -> DistributedDataParallel:
    """Return this rank's model in DDP, split over its tensor group if the scenario has such."""
    if scenario.tensor_parallel > 1:
        shape = (WORLD_SIZE // scenario.tensor_parallel, scenario.tensor_parallel)
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=("data", "tensor"))
        model: nn.Module = SplitNetwork(mesh.get_group("tensor"))
        group = mesh.get_group("data")
    else:
        share = scenario.extra_share if rank == scenario.rank else 0.0
        model, group = Network(extra_share=share, meter=meter), None
    return DistributedDataParallel(model, process_group=group, bucket_cap_mb=BUCKET_MB, gradient_as_bucket_view=True)


def train(model: DistributedDataParallel, data: Batches, profiler: profile, step_pipe: int) -> list[dict[str, int]]:
    """Run all steps; return one row a step with times in ns on the monotonic clock."""
    loader = DataLoader(data, batch_size=None)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    gc.collect()
    gc.freeze()
    gc.disable()
    dist.barrier()
    rows: list[dict[str, int]] = []
    with profiler:
        start_ns, cpu_ns = announce(0, step_pipe), time.thread_time_ns()
        for step, (inputs, targets) in enumerate(loader):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            backward_ns = time.monotonic_ns()
            loss.backward()  # type: ignore[no-untyped-call]
            reduced_ns = time.monotonic_ns()
            optimizer.step()
            times = {
                "step": step,
                "start_ns": start_ns,
                "backward_start_ns": backward_ns,
                "backward_end_ns": reduced_ns,
                "end_ns": time.monotonic_ns(),
                "cpu_ns": time.thread_time_ns() - cpu_ns,
            }
            rows.append(times | data.meter.take())
            profiler.step()
            start_ns, cpu_ns = announce(step + 1, step_pipe), time.thread_time_ns()
    return rows


def recorder(rank: int, out: Path) -> profile:
    """Return the profiler, with an execution trace beside it over the same steps."""
    observer = ExecutionTraceObserver().register_callback(str(out / f"rank{rank}.et.json"))
    return profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=WAIT_STEPS, warmup=WARMUP_STEPS, active=ACTIVE_STEPS, repeat=1),
        on_trace_ready=lambda p: p.export_chrome_trace(str(out / f"rank{rank}.pt.trace.json")),
        record_shapes=True,
        execution_trace_observer=observer,
    )


def announce(step: int, step_pipe: int) -> int:
    """Tell whoever switches the network that `step` begins; return now, monotonic ns."""
    if step_pipe >= 0:
        os.write(step_pipe, f"{step}\n".encode())
    return time.monotonic_ns()


if __name__ == "__main__":
    main()
