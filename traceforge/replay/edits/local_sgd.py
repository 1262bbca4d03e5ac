"""Local SGD: gradients are exchanged in every K-th iteration only (Stich 2019; the paper's future work, section 7).

What reduces or gathers along the data-parallel axis of the layout is the exchange of gradients, and nothing else; where
no layout is known, what does so over the largest communicator, if there are no others. `communicator` names another. In
iterations without them ranks go on at once. What that does to convergence is not modelled.
"""

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from traceforge.errors import UsageError
from traceforge.replay.edit import Edit, EditedJob, InsufficientData
from traceforge.replay.places import Places
from traceforge.replay.settings import Settings

_REPLICAS = "dp"
# Axes along which ranks hold parts of a model or of a sequence.
_OF_MODELS = {"tp", "pp", "cp", "ep"}
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
        exchanges &= np.isin(job.places.communicator, _of_replicas(job, exchanges))
    if not exchanges.any():
        raise InsufficientData("No collective that exchanges gradients was recognised.")
    skips = np.arange(len(job.model.iterations)) % every != every - 1
    return job.without(exchanges & skips[:, None, None])


def _of_replicas(job: EditedJob, exchanges: NDArray[np.bool_]) -> list[int]:
    """Communicators whose ranks hold the same parameters.

    Raises:
        InsufficientData: the layout does not tell which these are.
    """
    places = job.places
    size = {int(one): int(places.members[places.communicator == one].max()) for one in _distinct(places, exchanges)}
    axes = {one: places.axes.get(one, frozenset()) for one in size}
    named = frozenset[str]().union(*axes.values())
    if _REPLICAS in named:
        return [one for one, own in axes.items() if own == {_REPLICAS}]
    if "fsdp" in named:
        raise InsufficientData("The parameters are sharded, so that ranks gather them in every iteration.")
    if named & _OF_MODELS or len(set(size.values())) > 1 or len(named) > 1:
        raise InsufficientData(
            "Which collectives exchange gradients does not follow from the layout; name communicator."
        )
    return list(size)


def _distinct(places: Places, chosen: NDArray[np.bool_]) -> list[int]:
    found: list[int] = np.unique(places.communicator[chosen & (places.members > 1)]).tolist()
    return found


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
