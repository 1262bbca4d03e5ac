"""What the recorder costs a collective of PyTorch. In: nothing. Out: a table, a JSON file. Needs PyTorch.

    python -m tests.bench.live_overhead [--pairs 60]

One rank of gloo calls small all-reduces, blocking, asynchronous (awaited at once, and 60 us later, when they are done),
and reduces DDP's buckets; blocks of steps with and without recording take turns in one process, so that both see the
same machine, and which comes first is dealt by turns. A pair's difference, divided by its calls, is what recording
costs; of all pairs the median is kept with its 95 % interval (by order: a disturbed pair counts as one). CPU of the
calling thread is what a call is held up by; that of the process has PyTorch's and the writing thread in it, too; wall
time shows both with the noise of the machine. A third block has empty callbacks in the place of the recorder's, those
that PyTorch offers for such calls: the floor beneath which nothing that learns of each call and its end can go.
Not handled: waiting for other ranks, which hides most of it.
"""

import argparse
import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from tests.bench.results_file import keep_results
from traceforge import live
from traceforge.live.torch_groups import has_hooks

_RESULTS = Path(__file__).parent / "results" / "live_overhead.json"
_CALLS = 100
_STEPS = 10
_CLOCKS: dict[str, Callable[[], int]] = {
    "cpu_of_thread": time.thread_time_ns, "cpu_of_process": time.process_time_ns, "wall": time.monotonic_ns,
}  # fmt: skip
Step = Callable[[], object]


def kinds(torch: Any) -> dict[str, Callable[[], Step]]:
    """What makes the steps of a kind, of 100 collectives each."""
    dist, tensor = torch.distributed, torch.ones(256)

    def blocking() -> None:
        for _ in range(_CALLS):
            dist.all_reduce(tensor)

    def asynchronous() -> None:
        for _ in range(_CALLS):
            dist.all_reduce(tensor, async_op=True).wait()

    def awaited_late() -> None:
        for _ in range(_CALLS):
            work = dist.all_reduce(tensor, async_op=True)
            until = time.monotonic_ns() + 60_000
            while time.monotonic_ns() < until:
                pass
            work.wait()

    def buckets() -> Step:
        net = torch.nn.Sequential(*[torch.nn.Linear(24, 24, bias=False) for _ in range(_CALLS)])
        model = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.0001)
        rows = torch.randn(4, 24)
        return lambda: model(rows).sum().backward()

    return {
        "blocking": lambda: blocking,
        "asynchronous": lambda: asynchronous,
        "asynchronous_awaited_late": lambda: awaited_late,
        "bucket_of_ddp": buckets,
    }


@contextmanager
def empty_callbacks(torch: Any, kind: str) -> Iterator[None]:
    """What PyTorch offers to learn of a call, and, where it takes a callback, of its end; nothing is done there."""
    group = torch.distributed.group.WORLD

    def nothing(_argument: object) -> None:
        pass

    def add_nothing(call: Any) -> None:
        call.work.get_future().add_done_callback(nothing)

    takes_callback = kind in ("asynchronous_awaited_late", "bucket_of_ddp")
    group.register_pre_hook(1, nothing)
    group.register_post_hook(1, add_nothing if takes_callback else nothing)
    try:
        yield
    finally:
        group.unregister_pre_hook(1)
        group.unregister_post_hook(1)


def cost(make: Callable[[], Step], recorder: live.Recorder | None) -> dict[str, float]:
    """What a call of a block takes by each clock, ns."""
    step = make()
    for _ in range(2):
        step()
    before = {name: clock() for name, clock in _CLOCKS.items()}
    for _ in range(_STEPS):
        step()
        if recorder is not None:
            recorder.step()
    return {name: (clock() - before[name]) / (_STEPS * _CALLS) for name, clock in _CLOCKS.items()}


def differences(torch: Any, folder: Path, pairs: int) -> dict[str, dict[str, dict[str, list[float]]]]:
    """What recording, and what empty callbacks add to a call, ns, by kind, arm and clock, for each pair."""
    arms = ("recorded", "empty_callbacks") if has_hooks(torch) else ("recorded",)
    found = {kind: {arm: {name: list[float]() for name in _CLOCKS} for arm in arms} for kind in kinds(torch)}
    for number in range(-1, pairs):
        for kind, make in kinds(torch).items():
            costs = {}
            for arm in ("plain", *arms) if number % 2 else (*reversed(arms), "plain"):
                gc.collect()
                with _arm(torch, arm, kind, folder / f"{kind}{number}") as recorder:
                    costs[arm] = cost(make, recorder)
            for arm in arms if number >= 0 else ():
                for name in _CLOCKS:
                    found[kind][arm][name].append(costs[arm][name] - costs["plain"][name])
    return found


def _arm(torch: Any, arm: str, kind: str, folder: Path) -> AbstractContextManager[live.Recorder | None]:
    if arm == "recorded":
        return live.record(folder)
    return empty_callbacks(torch, kind) if arm == "empty_callbacks" else nullcontext()


def summary(costs_ns: list[float]) -> dict[str, object]:
    """Median of a call with its interval, us, and shares of steps with 100 calls."""
    ordered = sorted(cost / 1e3 for cost in costs_ns)
    count = len(ordered)
    reach = round(0.98 * count**0.5)  # 95 % of the binomial distribution that says how many lie below the median
    low, high = ordered[max(count // 2 - reach, 0)], ordered[min(count // 2 + reach, count - 1)]
    middle = statistics.median(ordered)
    return {
        "us_a_call": round(middle, 2), "interval_us": [round(low, 2), round(high, 2)],
        "percent_of_100_ms_step": round(middle * _CALLS / 1e3, 2),
        "percent_of_20_ms_step": round(middle * _CALLS / 200, 2),
    }  # fmt: skip


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("-o", "--output", type=Path, default=_RESULTS)
    options = parser.parse_args()
    os.environ.pop("TRACEFORGE_LIVE", None)
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="traceforge-bench-") as scratch:
        torch.distributed.init_process_group("gloo", init_method=f"file://{scratch}/store", rank=0, world_size=1)
        found = differences(torch, Path(scratch), options.pairs)
        torch.distributed.destroy_process_group()
    costs = {
        kind: {arm: {name: summary(one) for name, one in by_clock.items()} for arm, by_clock in by_arm.items()}
        for kind, by_arm in found.items()
    }
    command = f"python -m tests.bench.live_overhead --pairs {options.pairs}"
    packages = ("torch", "numpy", "traceforge")
    keep_results(options.output, command, packages, {"pairs": options.pairs, "costs": costs})


if __name__ == "__main__":
    main()
