"""Records small jobs with known faults anew: `PYTHON tests/accuracy/capture.py FOLDER [SCENARIO]...`.

In: an interpreter with PyTorch (the project's extra `capture`). Out: a folder a scenario, with each rank's trace and
truth.json. `python -m tests.accuracy.captured FOLDER` judges them.
Idea: four ranks of DDP over gloo on this machine. Each run begins with clean steps that are not recorded; the fault
strikes from the first recorded step on, and costs what recorded steps take longer than the median clean one, from the
first rank's start to the last one's end on the machine's clock. So truth never comes from a trace.
A machine that is busy with other things shows in how much clean steps differ: `clean_spread`, their interquartile range
over the median. Where it is large the truth is not known well enough to judge by, and the recording must be repeated.
"""

import gc
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, schedule

RANKS, CLEAN, RECORDED = 4, 16, 24
_WIDTH, _LAYERS, _ROWS = 384, 6, 192
_RUNTIME, _AMPLIFIED = "runtime_control_plane", "synchronization_amplification"


@dataclass(frozen=True)
class Fault:
    """What one rank, or each, does besides.

    Attributes:
        modes: failure modes of which an answer may name any.
        ranks: who does it.
        strikes: in which recorded steps.
        act: what is done before the forward pass.
        rows: share of more rows in its batches.
        hides: whether the rank records nothing.
    """

    modes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    strikes: Callable[[int], bool] = lambda _step: True
    act: Callable[[torch.nn.Module], None] = lambda _model: None
    rows: float = 0.0
    hides: bool = False


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


FAULTS = {
    "healthy": Fault(),
    "sleep": Fault((_RUNTIME,), (2,), act=_sleep(0.03)),
    "sleep_once": Fault((_RUNTIME,), (1,), lambda step: step == 11, _sleep(0.5)),
    "everyone_once": Fault((_RUNTIME,), (0, 1, 2, 3), lambda step: step == 9, _sleep(0.5)),
    "two_sleep": Fault((_RUNTIME,), (0, 3), act=_sleep(0.03)),
    "gc": Fault((_RUNTIME,), (3,), lambda step: step % 3 == 1, _collect),
    "checkpoint": Fault((_RUNTIME,), (0,), lambda step: step % 6 == 2, _checkpoint),
    "uneven_batches": Fault((_AMPLIFIED,), (1,), rows=0.8),
    "read_metrics": Fault((_AMPLIFIED, _RUNTIME), (2,), act=_read_metrics),
    "without_profiler": Fault((_RUNTIME,), (3,), act=_sleep(0.03), hides=True),
}


def rank_main(rank: int, name: str, folder: str, port: int) -> None:
    """One rank: clean steps, then recorded ones."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    layers = [torch.nn.Linear(_WIDTH, _WIDTH, bias=False) for _ in range(_LAYERS)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=1)
    fault, own = FAULTS[name], rank in FAULTS[name].ranks
    gc.disable()
    # Clean steps are traced, too, and thrown away: tracing costs time.
    recorder = profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=CLEAN - 1, active=RECORDED, repeat=1),
        on_trace_ready=lambda done: done.export_chrome_trace(f"{folder}/rank{rank}.pt.trace.json"),
    )
    times = []
    dist.barrier()
    with nullcontext() if own and fault.hides else recorder:
        for step in range(-CLEAN, RECORDED):
            is_faulty = own and step >= 0
            times.append(_step(model, fault.act if is_faulty and fault.strikes(step) else None, fault.rows * is_faulty))
            if not (own and fault.hides):
                recorder.step()
    Path(folder, f"rank{rank}.times").write_text(json.dumps(times), encoding="utf-8")
    dist.destroy_process_group()


def _step(model: DistributedDataParallel, act: Callable[[torch.nn.Module], None] | None, more: float) -> list[int]:
    start_ns = time.monotonic_ns()
    if act:
        act(model)
    rows = torch.randn(round(_ROWS * (1 + more)), _WIDTH)
    model.zero_grad()
    model(rows).square().mean().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.sub_(1e-4 * parameter.grad)
    return [start_ns, time.monotonic_ns()]


def truth_of(name: str, times: list[list[list[int]]]) -> dict[str, Any]:
    """What was injected and what it cost, from start and end of each rank's steps."""
    fault = FAULTS[name]
    spans = [(min(start for start, _ in one), max(end for _, end in one)) for one in zip(*times, strict=True)]
    lasts = [end - start for start, end in spans]
    quarter_ns, clean_ns, three_quarters_ns = statistics.quantiles(lasts[4:CLEAN], n=4)
    recorded = lasts[CLEAN:]
    struck = [fault.strikes(step) for step in range(RECORDED)]
    cost = [round(ns - clean_ns) if hit else 0 for ns, hit in zip(recorded, struck, strict=True)]
    is_of_all = len(fault.ranks) == RANKS
    trouble = {
        "faults": [0],
        "modes": list(fault.modes),
        "subject_kind": "job" if is_of_all else "rank" if len(fault.ranks) == 1 else "ranks",
        "subject": "all" if is_of_all else ", ".join(map(str, fault.ranks)),
        "ranks": list(fault.ranks),
        "removed_ns": cost,
        "added_ns": cost,
    }
    return {
        "schema_version": 1, "scenario": name, "world_size": RANKS, "hosts": [os.uname().nodename] * RANKS,
        "lost": list(fault.ranks) if fault.hides else [], "clean_ns": clean_ns,
        "clean_spread": (three_quarters_ns - quarter_ns) / clean_ns, "duration_ns": recorded,
        "faults": [{"communicators": []}], "troubles": [trouble] if fault.ranks else [],
    }  # fmt: skip


def main() -> None:
    """Record what is asked for, all by default."""
    folder, names = Path(sys.argv[1]), sys.argv[2:] or list(FAULTS)
    with suppress(OSError):
        os.nice(-10)
    for number, name in enumerate(names):
        own = folder / name
        own.mkdir(parents=True, exist_ok=True)
        processes.spawn(rank_main, (name, str(own), 29_500 + number), nprocs=RANKS)  # type: ignore[no-untyped-call]
        files = [own / f"rank{rank}.times" for rank in range(RANKS)]
        truth = truth_of(name, [json.loads(file.read_text(encoding="utf-8")) for file in files])
        (own / "truth.json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
        for file in files:
            file.unlink()
        cost = sum(truth["troubles"][0]["removed_ns"]) / RECORDED / 1e6 if truth["troubles"] else 0.0
        spread = f"clean steps {truth['clean_ns'] / 1e6:.1f} ms, which vary by {truth['clean_spread']:.0%}"
        print(f"{name}: {spread}, cost {cost:.1f} ms a step")


if __name__ == "__main__":
    main()
