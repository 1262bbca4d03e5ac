"""Drop a host: its ranks take no part, and every iteration has fewer samples.

The others keep their work and their transfers; a ring over fewer ranks would be a little faster, and one whose ranks
hold parts of a model (tensor or pipeline parallel) could not run without them. So this answers whether a slow host
costs the job more than it brings.
"""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from traceforge.errors import UsageError
from traceforge.replay.edit import Edit, EditedJob, InsufficientData
from traceforge.replay.settings import Settings


def _apply(job: EditedJob, settings: Settings) -> EditedJob:
    names = sorted(set(job.places.host_of))
    if len(names) < 2:
        raise InsufficientData("The ranks' hosts are not known, or there is only one.")
    name = str(settings["host"])
    if name not in names:
        raise UsageError(f"there is no host `{name}`", hint=f"hosts are: {', '.join(names)}")
    kept = np.array([host != name for host in job.places.host_of])
    share = float(kept.mean())
    return replace(job.of_ranks(kept), samples_share=job.samples_share * share)


def _usual(job: EditedJob) -> Sequence[Settings]:
    """The host whose ranks arrive last most often."""
    if len(set(job.places.host_of)) < 2:
        return []
    real = (job.model.group >= 0).any(axis=2)
    latest = job.recorded.arrival_ns.argmax(axis=2)[real]
    hosts, counts = np.unique(np.array(job.places.host_of)[latest], return_counts=True)
    return [{"host": str(hosts[counts.argmax()])}]


EDIT = Edit(
    "drop_host",
    "The ranks of one host take no part, and bring no samples; the others keep their work and transfers.",
    MappingProxyType({"host": ""}),
    _apply,
    _usual,
)
