"""A gloo job for `live.py`: `PYTHON live_job.py KIND SEED FOLDER PART...`. In: what to run. Out: recordings.

Needs PyTorch. A part is one of these; they run in one process group, one after another, so that PyTorch starts once.

    plain:STEPS                recorded without pacing
    turns:STEPS:POLICY         recorded, blocks with and without pacing in turns
    pairs:COUNT:STEPS:POLICY   whole runs without and with pacing in turns; mean steps stand in `pairs.json`
    profiled:STEPS:AT:COUNT    as plain, with PyTorch's profiler over COUNT steps from AT on

Work is sleeping, so that ranks disturb one another as little as a loaded machine lets them; in `oversubscribed` and
`busy_wait` it is computing, each rank on a core of its own. Not handled: devices, more than two ranks.
"""

import hashlib
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

from traceforge import live
from traceforge.live import PacingLimits, Recorder, TurnBlocks

RANKS = 2
BASE_S, LATE_S = 0.02, 0.01
CALLS, PIECES = 2, 4
BLOCKS = TurnBlocks(first_step=12, length=12, settling=2)
COMPUTES = ("oversubscribed", "busy_wait")
REST, SPIN, END = 0, 1, 2
_NICENESS = "-10"
_CALIBRATION_ROUNDS, _BLOCK = 200, bytes(16 << 10)


class AlwaysPaced(TurnBlocks):
    """Every step after the warm-up is paced."""

    def is_paced(self, step: int) -> bool:
        """Whether a step may be paced."""
        return step >= self.first_step


def late_s(kind: str, rank: int, step: int, draw: random.Random) -> float:
    """How much longer a rank works in a step."""
    if kind == "straggler":
        return LATE_S * (rank == 1)
    if kind == "busy_wait":
        return BASE_S * (rank == 1)
    if kind == "rotating":
        return LATE_S * (step // 12 % RANKS == rank)
    if kind == "random":
        return LATE_S * draw.random()
    if kind == "uneven_batches":
        return BASE_S * (draw.lognormvariate(0, 0.3) - 1)
    return 0.0


def spin_beside(core: int, flag: Any, *, always: bool) -> None:
    """A process that keeps a core busy while its flag says so, or always."""
    os.sched_setaffinity(0, {core})
    while flag.value != END:
        if not always and flag.value == REST:
            time.sleep(1e-4)


class Rank:
    """What one rank does in a step."""

    def __init__(self, rank: int, kind: str, seed: int, flag: Any) -> None:
        self.rank, self.kind, self._flag = rank, kind, flag
        self._draw = random.Random(100 * seed + rank)  # noqa: S311  # no secret
        self._gradient = torch.ones(1 << 16)
        self._rounds_a_s = 0.0
        if kind in COMPUTES:
            os.sched_setaffinity(0, {rank % (os.cpu_count() or 1)})
            before = time.thread_time()
            _compute(_CALIBRATION_ROUNDS)
            self._rounds_a_s = _CALIBRATION_ROUNDS / (time.thread_time() - before)

    def step(self, number: int, recorder: Recorder | None) -> None:
        """Work, and meet the other rank."""
        work_s = BASE_S + late_s(self.kind, self.rank, number, self._draw)
        # Computing ranks count CPU, of which a busy machine gives less than a second a second.
        share = 0.5 if self.kind in COMPUTES else 1.0
        for piece in range(PIECES):
            with _phase(recorder, f"layer{piece}"):
                self._work(share * work_s / PIECES)
        self._meet()
        if self.kind == "checkpoint" and self.rank == 0 and number % 20 == 19:
            with _phase(recorder, "save_checkpoint"):
                time.sleep(3 * BASE_S)
        if recorder is not None:
            recorder.step()

    def _work(self, seconds: float) -> None:
        if self._rounds_a_s:
            _compute(round(seconds * self._rounds_a_s))
        else:
            time.sleep(seconds)

    def _meet(self) -> None:
        is_spinning = self.kind == "busy_wait" and self._flag is not None
        if is_spinning:
            self._flag.value = SPIN
        for _ in range(CALLS):
            dist.all_reduce(self._gradient)
        if is_spinning:
            self._flag.value = REST


def _compute(rounds: int) -> None:
    digest = hashlib.sha256()
    for _ in range(rounds):
        digest.update(_BLOCK)


@contextmanager
def _phase(recorder: Recorder | None, name: str) -> Iterator[None]:
    if recorder is None:
        yield
    else:
        with recorder.phase(name):
            yield


def plain(rank: Rank, folder: Path, steps: int, after: Callable[[int], None] | None = None) -> None:
    """Record steps without pacing."""
    with live.record(folder) as recorder:
        for number in range(steps):
            rank.step(number, recorder)
            if after is not None:
                after(number)


def turns(rank: Rank, folder: Path, steps: int, policy: str) -> None:
    """Record steps with and without pacing in turns."""
    limits = PacingLimits(longest_share=0.5, total_share=0.3, blocks=BLOCKS)
    with live.record(folder, policy=policy, limits=limits) as recorder:
        for number in range(steps):
            rank.step(number, recorder)


def pairs(rank: Rank, folder: Path, count: int, steps: int, policy: str) -> None:
    """Whole runs without and with pacing, in turns; the warm-up of each does not count."""
    always = AlwaysPaced(first_step=BLOCKS.first_step, length=BLOCKS.length, settling=BLOCKS.settling)
    limits = PacingLimits(longest_share=0.5, total_share=0.3, least_pairs=steps, blocks=always)
    found: list[dict[str, float]] = []
    for number in range(count):
        means = {}
        for is_paced in (False, True) if number % 2 else (True, False):
            chosen = {"policy": policy, "limits": limits} if is_paced else {}
            with live.record(folder / f"run{number}{'paced' if is_paced else 'plain'}", **chosen) as recorder:
                ends = []
                for step in range(steps):
                    rank.step(step, recorder)
                    ends.append(time.monotonic())
            first = BLOCKS.first_step + BLOCKS.settling
            means["paced" if is_paced else "plain"] = fmean(after - before for before, after in pairwise(ends[first:]))
        found.append(means)
    if rank.rank == 0:
        (folder / "pairs.json").write_text(json.dumps(found), encoding="utf-8")


def profiled(rank: Rank, folder: Path, steps: int, first: int, count: int) -> None:
    """Record steps, some of them by PyTorch's profiler as well."""
    beside = folder.with_name("profile")
    beside.mkdir(parents=True, exist_ok=True)
    profiler = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=first, warmup=2, active=count, repeat=1),
        on_trace_ready=lambda done: done.export_chrome_trace(str(beside / f"rank{rank.rank}.json")),
    )
    with profiler:
        plain(rank, folder, steps, lambda _: profiler.step())


_PARTS: dict[str, Callable[..., None]] = {"plain": plain, "turns": turns, "pairs": pairs, "profiled": profiled}


def rank_main(number: int, kind: str, seed: int, folder: str, parts: list[str], flags: list[Any]) -> None:
    """All parts of a rank."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(29_900 + seed))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=number, world_size=RANKS)
    rank = Rank(number, kind, seed, flags[number] if flags else None)
    for part in parts:
        name, *words = part.split(":", _PARTS_WORDS[part.split(":")[0]])
        dist.barrier()
        _PARTS[name](rank, Path(folder) / name, *(int(word) if word.isdigit() else word for word in words))
    dist.destroy_process_group()


_PARTS_WORDS = {"plain": 1, "turns": 2, "pairs": 3, "profiled": 3}


def spinning(kind: str) -> tuple[list[Any], list[Any]]:
    """Flags and processes that load the cores beside the ranks."""
    if kind not in COMPUTES:
        return [], []
    context = processes.get_context("spawn")
    flags = [context.Value("b", REST, lock=False) for _ in range(RANKS)]
    cores = os.cpu_count() or 1
    # A rank that waits spins on the core of the other; in `oversubscribed` each core has one more process at all times.
    started = [
        context.Process(
            target=spin_beside,
            args=((other + 1) % cores, flag),
            kwargs={"always": kind == "oversubscribed"},
            daemon=True,
        )
        for other, flag in enumerate(flags)
    ]
    for one in started:
        one.start()
    return flags, started


def step_forward(niceness: str) -> None:
    """Put this job before other work of the machine: in a session of its own, whose share of the cores is larger."""
    with suppress(OSError):
        os.setsid()
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(niceness, encoding="ascii")
        return
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, int(niceness))


def main(kind: str, seed: int, folder: str, parts: list[str]) -> None:
    """A job from its start to its end."""
    step_forward(_NICENESS)
    flags, started = spinning(kind)
    try:
        processes.spawn(rank_main, (kind, seed, folder, parts, flags), nprocs=RANKS)  # type: ignore[no-untyped-call]
    finally:
        for flag in flags:
            flag.value = END
        for one in started:
            one.join()


if __name__ == "__main__":
    job, number, out, *todo = sys.argv[1:]
    main(job, int(number), out, todo)
