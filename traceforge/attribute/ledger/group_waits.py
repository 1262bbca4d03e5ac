"""Where ranks wait in groups. In: a run's durations. Out: the iterations that `groups` knows how to judge."""

import numpy as np
from numpy.typing import NDArray

from traceforge.attribute.ledger.one_group import rows_of
from traceforge.replay.model import StepModel
from traceforge.replay.rank_groups import rank_groups


def in_groups(model: StepModel, communicator: NDArray[np.int64], among: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Iterations in which at every place all ranks wait at once for groups of two or more, or none waits; (I,).

    Args:
        among: as for `one_group.is_one_group`.
    """
    result = among & (len(model.ranks) > 1)
    rows, places = rows_of(np.flatnonzero(result)), np.arange(model.group.shape[1])
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
    result[rows] = (~is_real | ((none | at_once) & plain)).all(axis=1)
    return result
