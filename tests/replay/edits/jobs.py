"""Runs to edit: a model with what its collectives are."""

import numpy as np

from tests.replay.models import lockstep_model
from traceforge.replay.edit import EditedJob
from traceforge.replay.engine import measured, record, replay
from traceforge.replay.model import StepModel
from traceforge.replay.places import Places

MEGABYTE = 1_000_000


def job_of(
    model: StepModel | None = None,
    *,
    op: str = "all_reduce",
    size_bytes: int | list[int] = MEGABYTE,
    hosts: list[str] | None = None,
    spanned: int | list[int] = 1,
    members: int | list[int] | None = None,
) -> EditedJob:
    """A run whose collectives are all of one operation; sizes, spanned hosts and members may differ by place."""
    model = model or lockstep_model([[[100, 60]]] * 4, transfer_ns=20)

    def at_places(value: int | list[int]) -> np.ndarray:
        column = np.array(value, dtype=np.int64).reshape(-1, 1) if isinstance(value, list) else np.array(value)
        return np.broadcast_to(column, model.group.shape).copy()

    places = Places(
        communicator=at_places(0),
        op=at_places(0),
        size_bytes=at_places(size_bytes),
        members=at_places(len(model.ranks) if members is None else members),
        hosts=at_places(spanned),
        ops=(op,),
        host_of=tuple(hosts or ["a"] * len(model.ranks)),
    )
    return EditedJob(model, places, record(model))


def ends_of(job: EditedJob) -> list[int]:
    """When each iteration ends on the last rank."""
    return replay(job.model, measured(job.model)).end_ns.max(axis=1).tolist()
