"""Scale compute: device work takes `factor` times as long, as on a faster or slower device; all ranks, or one."""

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from traceforge.replay.edit import Edit, EditedJob, InsufficientData, factor_of, place_of_rank
from traceforge.replay.model import Times
from traceforge.replay.settings import Settings


def _apply(job: EditedJob, settings: Settings) -> EditedJob:
    kinds = [k for k, (phase, _) in enumerate(job.model.kinds) if phase == "compute"]
    if not kinds:
        raise InsufficientData("No device work was recorded.")
    rank, factor = float(settings["rank"]), factor_of(settings)
    chosen = np.ones(len(job.model.ranks), dtype=bool)
    if rank >= 0:
        chosen = np.arange(len(chosen)) == place_of_rank(job, rank)

    def scaled(work_ns: Times) -> Times:
        result = work_ns.copy()
        for k in kinds:
            result[:, :, chosen, k] = np.rint(work_ns[:, :, chosen, k] * factor)
        return result

    return job.with_model(
        before_arrival_ns=scaled(job.model.before_arrival_ns), before_wait_ns=scaled(job.model.before_wait_ns)
    )


def _usual(_job: EditedJob) -> Sequence[Settings]:
    return [{"factor": 0.9, "rank": -1.0}]


EDIT = Edit(
    "scale_compute",
    "Device work takes `factor` times as long; rank -1 means all. Host work and transfers stay.",
    MappingProxyType({"factor": 0.9, "rank": -1.0}),
    _apply,
    _usual,
)
