"""Faults that `capture.py` injects. In: PyTorch. Out: what ranks do besides, by name.

Idea: a fault is an act before a step, another way to make the step, or a cable that gets slow, in some recorded steps.
"""

import gc
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.distributed as dist

from tests.accuracy.capture_devices import Slowed
from tests.accuracy.capture_jobs import Doing

EVERYONE = ()
_RUNTIME, _AMPLIFIED, _FABRIC = "runtime_control_plane", "synchronization_amplification", "fabric_contention"


@dataclass(frozen=True)
class Fault:
    """What one rank, or each, does besides.

    Attributes:
        modes: failure modes of which an answer may name any.
        ranks: who is at fault; of a slow cable, nobody here.
        strikes: in which recorded steps.
        act: what is done before the step.
        doing: what the step does otherwise.
        of_all: whether all ranks do it, of whom some are at fault: tokens for a hot expert come from everywhere.
        in_turns: whether in each step it is another rank that does it.
        hides: whether the rank records nothing.
        slowed: the part of the network that is slow.
    """

    modes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = EVERYONE
    strikes: Callable[[int], bool] = lambda _step: True
    act: Callable[[torch.nn.Module], None] = lambda _model: None
    doing: Doing = field(default_factory=Doing)
    of_all: bool = False
    in_turns: bool = False
    hides: bool = False
    slowed: Slowed | None = None

    def is_done_by(self, rank: int, ranks: int, step: int) -> bool:
        """Whether a rank does it in a recorded step."""
        if step < 0 or not self.strikes(step):
            return False
        return step % ranks == rank if self.in_turns else self.of_all or not self.ranks or rank in self.ranks


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


def _stopped(seconds: float) -> Callable[[torch.nn.Module], None]:
    # As a scheduler does that gives the cores to another container: in the midst of a step nothing of it runs.
    order = f"sleep 0.012; kill -STOP {{0}}; sleep {seconds}; kill -CONT {{0}}"
    return lambda _model: subprocess.Popen(["sh", "-c", order.format(os.getpid())]) and None


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
    "everyone_once": Fault((_RUNTIME,), strikes=lambda step: step == 9, act=_sleep(0.5)),
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
    "slow_nic": Fault((_FABRIC,), strikes=lambda step: step >= 6, slowed=Slowed("node2", 0.25)),
    "flapping_nic": Fault((_FABRIC,), strikes=lambda step: step % 4 == 1, slowed=Slowed("node1", 0.2)),
    "stuck_nic": Fault((_FABRIC,), strikes=lambda step: step == 11, slowed=Slowed("node3", 0.02)),
    "slow_uplink": Fault((_FABRIC,), strikes=lambda step: 5 <= step < 13, slowed=Slowed("uplink", 0.3)),
    "slow_pair": Fault((_AMPLIFIED,), (2, 3), doing=Doing(slower=0.4)),
    "pair_sleeps": Fault((_RUNTIME,), (2, 3), lambda step: step % 4 == 2, _sleep(0.08)),
    "varies": Fault((_AMPLIFIED,), doing=Doing(varies=0.25)),
    "in_turns": Fault((_AMPLIFIED,), doing=Doing(slower=0.5), in_turns=True),
    "sleeps_in_turns": Fault((_RUNTIME,), act=_sleep(0.03), in_turns=True),
    "stopped": Fault((_RUNTIME, _AMPLIFIED), (1,), lambda step: step in (3, 8, 12, 17), _stopped(0.2)),
    "hot_expert": Fault((_AMPLIFIED,), (1,), doing=Doing(hot=(1, 0.3)), of_all=True),
}


def faults_of(name: str, steps: int) -> list[Fault]:
    """Faults of `slow_later+gc`; of two, the first ends after 70 % of the recorded steps, the second begins at 30 %.

    So some steps have only one of them, which tells what each costs alone, and what it saves to remove one of two.
    """
    faults = [FAULTS[one] for one in name.split("+")]
    if len(faults) == 1:
        return faults
    first, second = faults
    return [
        replace(first, strikes=lambda step: step < 0.7 * steps and first.strikes(step)),
        replace(second, strikes=lambda step: step >= 0.3 * steps and second.strikes(step)),
    ]


def why_not(name: str, ranks: int, steps: int) -> str | None:
    """Why no job of so many ranks and recorded steps can have these faults; None where it can."""
    names = name.split("+")
    if unknown := [one for one in names if one not in FAULTS]:
        return f"there is no fault {unknown[0]}"
    if len(names) > 2:
        return "a job has two faults at most"
    faults = faults_of(name, steps)
    if any(rank >= ranks for fault in faults for rank in fault.ranks):
        return f"of {ranks} ranks none has the number of the one at fault"
    if not all(any(map(fault.strikes, range(steps))) for fault in faults):
        return f"one of its faults strikes in none of {steps} steps"
    doing = [set(range(ranks) if one.of_all else one.ranks or range(ranks)) for one in faults if one.doing != Doing()]
    if len(doing) > 1 and set.intersection(*doing):
        return "both say how the same rank makes its step"
    return "both slow a cable down" if len(faults) > 1 and all(one.slowed for one in faults) else None
