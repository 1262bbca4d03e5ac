"""Local SGD: gradients are exchanged in every K-th iteration only (Stich 2019; the paper's future work, section 7).

Collectives that reduce or gather over the largest communicator are taken for the exchange of gradients; `communicator`
names another. In iterations without them ranks go on at once. What that does to convergence is not modelled.
"""

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from traceforge.errors import UsageError
from traceforge.replay.edit import Edit, EditedJob, InsufficientData
from traceforge.replay.settings import Settings

_EXCHANGES = ("all_reduce", "reduce_scatter", "all_gather")


def _apply(job: EditedJob, settings: Settings) -> EditedJob:
    every = int(float(settings["every"]))
    if every < 1:
        raise UsageError(f"`every={settings['every']}` must be at least 1")
    exchanges = job.places.is_op(*_EXCHANGES)
    communicator = float(settings["communicator"])
    if communicator >= 0:
        exchanges &= job.places.communicator == int(communicator)
    elif exchanges.any():
        exchanges &= job.places.members == job.places.members[exchanges].max()
    if not exchanges.any():
        raise InsufficientData("No collective that exchanges gradients was recognised.")
    skips = np.arange(len(job.model.iterations)) % every != every - 1
    return job.without(exchanges & skips[:, None, None])


def _usual(_job: EditedJob) -> Sequence[Settings]:
    return [{"every": 4.0, "communicator": -1.0}]


EDIT = Edit(
    "local_sgd",
    "Gradients are exchanged in every K-th iteration only; convergence is not modelled.",
    MappingProxyType({"every": 4.0, "communicator": -1.0}),
    _apply,
    _usual,
    changes_transfers=True,
)
