"""A recorder for days inside a training job. In: hooks of the program. Out: a small file a rank.

    from traceforge import live

    with live.record("traces/") as recorder:
        ...
        recorder.step()

Needs the standard library and numpy; records PyTorch's phases and collectives where the program uses it. Not handled:
what runs on a device, beside the collectives themselves.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from traceforge.live.recorder import FOLDER_VARIABLE, Hook, Recorder, start

__all__ = ["Recorder", "record"]


def record(
    folder: str | os.PathLike[str] | None = None, *, rank: int | None = None, world_size: int | None = None
) -> Recorder:
    """Record this process into a folder.

    Args:
        folder: for the files of all ranks; the environment variable TRACEFORGE_LIVE where it is None. Without either,
            nothing is recorded and all calls do nothing.
        rank: global rank of this process; RANK of the launcher where it is None.
        world_size: number of ranks; WORLD_SIZE of the launcher where it is None.
    """
    chosen = os.environ.get(FOLDER_VARIABLE) if folder is None else folder
    hooks: Sequence[Hook] = ()
    return start(
        Path(chosen) if chosen else None, environment=os.environ, rank=rank, world_size=world_size, hooks=hooks
    )
