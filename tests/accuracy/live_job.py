"""One rank of a gloo job for `live.py`: `PYTHON live_job.py KIND SEED FOLDER STEPS POLICY`. Needs PyTorch.

Work is sleeping, so that ranks disturb one another as little as a loaded machine lets them.
"""

import os
import random
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

from traceforge import live
from traceforge.live import PacingLimits, TurnBlocks

RANKS = 2
BASE_S, LATE_S = 0.02, 0.01
BLOCKS = TurnBlocks(first_step=12, length=12, settling=2)


def late_s(kind: str, rank: int, step: int, draw: random.Random) -> float:
    """How much longer a rank works in a step."""
    if kind == "straggler":
        return LATE_S * (rank == 1)
    if kind == "rotating":
        return LATE_S * (step // 12 % RANKS == rank)
    if kind == "random":
        return LATE_S * draw.random()
    return 0.0


def rank_main(rank: int, kind: str, seed: int, folder: str, steps: int, policy: str) -> None:
    """All steps of a rank."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(29_900 + seed))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    draw = random.Random(100 * seed + rank)  # noqa: S311
    gradient = torch.ones(1 << 16)
    limits = PacingLimits(longest_share=0.5, total_share=0.3, blocks=BLOCKS)
    with live.record(folder, policy=policy or None, limits=limits) as recorder:
        for step in range(steps):
            with recorder.phase("forward"):
                time.sleep(BASE_S + late_s(kind, rank, step, draw))
            for _ in range(2):
                dist.all_reduce(gradient)
            recorder.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    name, number, out, count, paced_by = sys.argv[1:]
    processes.spawn(rank_main, (name, int(number), out, int(count), paced_by), nprocs=RANKS)  # type: ignore[no-untyped-call]
