"""A recorder for days inside a training job. In: hooks of the program. Out: a small file a rank.

    from traceforge import live

    with live.record("traces/", policy=None) as recorder:
        ...
        recorder.step()

Needs the standard library and numpy; records PyTorch's phases and collectives where the program uses it, and when its
device got to them. Not handled: single kernels.
"""

import os
import sys
from pathlib import Path
from typing import Any

from traceforge.live.limits import PacingLimits
from traceforge.live.recorder import FOLDER_VARIABLE, Hook, Recorder, start
from traceforge.live.trial import TurnBlocks

__all__ = ["PacingLimits", "Recorder", "TurnBlocks", "record"]

POLICY_VARIABLE = "TRACEFORGE_LIVE_POLICY"


def record(
    folder: str | os.PathLike[str] | None = None,
    *,
    policy: str | os.PathLike[str] | None = None,
    limits: PacingLimits | None = None,
    model: Any = None,
    rank: int | None = None,
    world_size: int | None = None,
) -> Recorder:
    """Record this process into a folder.

    Args:
        folder: for the files of all ranks; the environment variable TRACEFORGE_LIVE where it is None. Without either,
            nothing is recorded and all calls do nothing.
        policy: pacing policy such as `bounded_delay:gain=0.5`, or the path of a file that `traceforge replay
            --save-policy` wrote; TRACEFORGE_LIVE_POLICY where it is None. Without either, nobody is held back.
        limits: what pacing may do at most.
        model: PyTorch module whose forward pass is named; not needed where it is data parallel.
        rank: global rank of this process; where it is None, what the process group or the launcher says.
        world_size: number of ranks; likewise.
    """
    chosen = os.environ.get(FOLDER_VARIABLE) if folder is None else folder
    torch = sys.modules.get("torch") if chosen else None
    if torch is not None and rank is None and torch.distributed.is_available() and torch.distributed.is_initialized():
        rank, world_size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    paced_by = os.environ.get(POLICY_VARIABLE) if policy is None else policy
    hooks: list[Hook] = [] if torch is None else _torch_hooks(torch, model)
    if chosen and paced_by:
        hooks.append(_pacer(os.fspath(paced_by), limits))
    return start(
        Path(chosen) if chosen else None,
        environment=os.environ,
        rank=rank,
        world_size=world_size,
        hooks=hooks,
    )


def _pacer(policy: str, limits: PacingLimits | None) -> Hook:
    from traceforge.live.pacing import Pacer
    from traceforge.replay.policy_file import choose

    return Pacer(choose(policy), limits or PacingLimits())


def _torch_hooks(torch: Any, model: Any) -> list[Hook]:
    from traceforge.live.nvml import NvmlReadings
    from traceforge.live.torch_allocator import AllocatorRetries
    from traceforge.live.torch_collectives import TorchCollectives
    from traceforge.live.torch_device import TorchDevice, has_device
    from traceforge.live.torch_gradients import TorchGradients
    from traceforge.live.torch_groups import TorchGroups, has_hooks
    from traceforge.live.torch_kinds import TorchKinds
    from traceforge.live.torch_messages import TorchMessages
    from traceforge.live.torch_phases import TorchPhases

    phases = TorchPhases(torch, model)
    alone: list[Hook] = [phases, NvmlReadings(torch), AllocatorRetries(torch)]
    if not torch.distributed.is_available():
        return alone
    device = TorchDevice(torch) if has_device(torch) else None
    kinds = TorchKinds(torch, device)
    messages = TorchMessages(torch, kinds)
    if has_hooks(torch) and device is None:
        return [*alone, messages, TorchGroups(torch, kinds, messages, phases)]
    collectives = TorchCollectives(torch, kinds, messages)
    watching: list[Hook] = [*alone, messages, collectives, TorchGradients(torch, kinds, phases)]
    return watching if device is None else [device, *watching]
