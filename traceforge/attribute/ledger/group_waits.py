"""Where ranks wait in groups. In: a run's durations. Out: the iterations that `groups` knows how to judge."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from traceforge.attribute.ledger.hidden_work import hides_work
from traceforge.attribute.ledger.one_group import rows_of
from traceforge.replay.model import StepModel
from traceforge.replay.rank_groups import rank_groups
from traceforge.replay.reference import Reference

Index = NDArray[np.int64]


def in_groups(
    model: StepModel,
    communicator: Index,
    of_length: Mapping[int, Reference],
    among: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """Iterations in which at every place all ranks wait at once for groups of two or more, or none waits; (I,).

    Args:
        of_length: reference durations by number of collectives.
        among: iterations to look at, all by default; False for the others.
    """
    result = hides_work(model, of_length)
    if among is not None:
        result &= among
    rows = np.flatnonzero(result)
    if len(rows) and len(model.ranks) > 1:
        result[rows] = _judged(model, communicator, rows)
    return result & (len(model.ranks) > 1)


def _judged(model: StepModel, communicator: Index, iterations: Index) -> NDArray[np.bool_]:
    rows = rows_of(iterations)
    places = np.arange(model.group.shape[1])
    is_real = places[None, :] < model.calls[rows, None]
    awaited, group, own = model.awaited[rows], model.group[rows], communicator[rows]
    none = (awaited < 0).all(axis=2)
    at_once = (awaited == places[:, None]).all(axis=2) & (group >= 0).all(axis=2)
    met = rank_groups(group)
    for number, layout in enumerate(met.layouts):
        i, p = np.nonzero(at_once & is_real & (met.at == number))
        heads = own[i[:, None], p[:, None], layout.order[layout.first]]
        alike = (own[i, p] == heads[:, layout.group]).all(axis=1) & (layout.size.min() > 1)
        at_once[i[~alike], p[~alike]] = False
    plain = (model.transfer_ns[rows] >= 0).all(axis=2)
    if model.queued is not None:
        plain &= (model.queued[rows] < 0).all(axis=2)
    result: NDArray[np.bool_] = (~is_real | ((none | at_once) & plain)).all(axis=1)
    return result
