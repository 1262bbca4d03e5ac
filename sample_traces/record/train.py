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
from busy_wait import BusyWait
from pacing import BoundedDelay, TimedAllReduce, open_board, parse
from scenarios import BATCH, FIRST_STEP, LAYERS, PACED, SCENARIOS, WAIT_STEPS, WARMUP_STEPS, WIDTH, Scenario
from tensor_parallel import SplitNetwork
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader
from workload import Batches, Meter, Network

BUCKET_MB = WIDTH * WIDTH * 4 / 2**20
"""DDP bucket size, MiB: one layer fills one bucket."""


CORES = sorted(os.sched_getaffinity(0))
PATIENCE = timedelta(seconds=60)
"""Longest wait for the other ranks, in a collective or at the start."""
HEAP_BYTES = 768 * 2**20
"""Memory touched once at the start. The allocator keeps it (run.py sets its thresholds), so that growing
trace buffers cause no page faults in the middle of the recording."""


def main() -> None:
    """Parse, join the group, train."""
    parser = argparse.ArgumentParser(description="one rank of a recorded run; started by record.py")
    known = SCENARIOS | PACED
    parser.add_argument("--scenario", choices=known, required=True)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--step-pipe", type=int, default=-1, help="file descriptor for step numbers (rank 0)")
    parser.add_argument("--pace", default="", help="window=…,threshold=…,gain=…,max_delay=… of bounded delay")
    args = parser.parse_args()
    scenario: Scenario = known[args.scenario]
    settle(args.rank, 0 if scenario.one_host else args.rank)
    meter = Meter()
    with urgent():
        dist.init_process_group("gloo", rank=args.rank, world_size=scenario.ranks, timeout=PATIENCE)
        model = wrap(scenario, args.rank, meter)
    data = Batches(
        steps=scenario.steps_in_all,
        stalled_steps=frozenset(scenario.steps if args.rank == scenario.rank else ()),
        stall_ns=scenario.stall_ns,
        meter=meter,
        batch=round(BATCH * (1 + (scenario.extra_batch if args.rank == scenario.rank else 0.0))),
    )
    timer = time_collectives(model, scenario, args.rank, args.out) if scenario.times_collectives else None
    rows = train(model, data, recorder(scenario, args.rank, args.out), args.step_pipe, timer, parse(args.pace))
    (args.out / f"rank{args.rank}.steps.json").write_text(json.dumps(rows), encoding="utf-8")
    if timer and timer.busy_wait:
        timer.busy_wait.close()
    dist.destroy_process_group()


def settle(rank: int, host: int) -> None:
    """Name the host, spread ranks over the cores in turn and put this process ahead of the machine's other work."""
    socket.sethostname(f"node{host}")
    os.sched_setaffinity(0, {core_of(rank)})
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text("-15", encoding="ascii")
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    torch.zeros(HEAP_BYTES, dtype=torch.uint8)


def core_of(rank: int) -> int:
    """Return the core of a rank, of those that this process was given at its start."""
    return CORES[rank % len(CORES)]


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
        shape = (scenario.ranks // scenario.tensor_parallel, scenario.tensor_parallel)
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=("data", "tensor"))
        model: nn.Module = SplitNetwork(mesh.get_group("tensor"))
        group = mesh.get_group("data")
    else:
        share = scenario.extra_share if rank == scenario.rank else 0.0
        model, group = Network(extra_share=share, meter=meter), None
    cap = LAYERS * BUCKET_MB if scenario.one_bucket else BUCKET_MB
    return DistributedDataParallel(model, process_group=group, bucket_cap_mb=cap, gradient_as_bucket_view=True)


def time_collectives(model: DistributedDataParallel, scenario: Scenario, rank: int, out: Path) -> TimedAllReduce:
    """Make DDP time its all-reduces, and spin meanwhile if the scenario says so."""
    busy_wait = (
        BusyWait(out / f"rank{rank}.flag", core_of(rank + 1), scenario.busy_wait) if scenario.busy_wait else None
    )
    timer = TimedAllReduce(rank, open_board(out / "arrivals", scenario.ranks), busy_wait)
    model.register_comm_hook(None, timer.begin)
    return timer


def train(
    model: DistributedDataParallel,
    data: Batches,
    profiler: profile,
    step_pipe: int,
    timer: TimedAllReduce | None,
    policy: BoundedDelay,
) -> list[dict[str, int]]:
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
            hold_back(policy.next_delay_ns())
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            backward_ns = time.monotonic_ns()
            loss.backward()  # type: ignore[no-untyped-call]
            reduced_ns = time.monotonic_ns()
            wait_ns = timer.wait_ns() if timer else 0.0
            optimizer.step()
            times = {
                "step": step,
                "start_ns": start_ns,
                "backward_start_ns": backward_ns,
                "backward_end_ns": reduced_ns,
                "end_ns": time.monotonic_ns(),
                "cpu_ns": time.thread_time_ns() - cpu_ns,
                "wait_ns": round(wait_ns),
                "delay_ns": policy.delay_ns,
            }
            rows.append(times | data.meter.take())
            if step >= FIRST_STEP:
                policy.saw(wait_ns, times["end_ns"] - start_ns)
            profiler.step()
            start_ns, cpu_ns = announce(step + 1, step_pipe), time.thread_time_ns()
    return rows


def hold_back(delay_ns: int) -> None:
    """Sleep before a step, under a name that the trace shows."""
    if delay_ns:
        with record_function("pacing"):
            time.sleep(delay_ns / 1e9)


def recorder(scenario: Scenario, rank: int, out: Path) -> profile:
    """Return the profiler, with an execution trace beside it over the same steps."""
    observer = ExecutionTraceObserver().register_callback(str(out / f"rank{rank}.et.json"))
    return profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=WAIT_STEPS, warmup=WARMUP_STEPS, active=scenario.active_steps, repeat=1),
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
