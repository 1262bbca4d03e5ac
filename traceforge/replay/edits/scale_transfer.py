"""Scale transfers: another bandwidth, for all collectives or for some.

`factor` multiplies the time of transfers: 0.5 is twice the bandwidth. `communicator` chooses one communicator, -1 all;
`path` chooses `all`, `between_hosts` (communicators whose ranks are on several hosts) or `within_host`.
"""

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from traceforge.errors import UsageError
from traceforge.replay.edit import Edit, EditedJob, InsufficientData, factor_of
from traceforge.replay.settings import Settings


def _apply(job: EditedJob, settings: Settings) -> EditedJob:
    chosen = job.model.group >= 0
    communicator, path = float(settings["communicator"]), str(settings["path"])
    if communicator >= 0:
        chosen = chosen & (job.places.communicator == int(communicator))
    if path not in {"all", "between_hosts", "within_host"}:
        raise UsageError(f"there is no path `{path}`", hint="paths are: all, between_hosts, within_host")
    if path != "all":
        chosen = chosen & ((job.places.hosts > 1) == (path == "between_hosts"))
    if not chosen.any():
        raise InsufficientData("No collective of the replayed iterations is meant by this.")
    transfer = job.model.transfer_ns
    scaled = np.rint(transfer * factor_of(settings)).astype(np.int64)
    return job.with_model(transfer_ns=np.where(chosen, scaled, transfer))


def _usual(job: EditedJob) -> Sequence[Settings]:
    crosses = job.places.hosts > 1
    paths = ["all", "between_hosts"] if crosses.any() and not crosses[job.model.group >= 0].all() else ["all"]
    return [{"factor": 0.5, "communicator": -1.0, "path": path} for path in paths]


EDIT = Edit(
    "scale_transfer",
    "Transfers take `factor` times as long: all, those of one communicator, or those between or within hosts.",
    MappingProxyType({"factor": 0.5, "communicator": -1.0, "path": "all"}),
    _apply,
    _usual,
    changes_transfers=True,
)
