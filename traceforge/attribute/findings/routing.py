"""Experts that get more tokens than others. In: what ranks exchange. Out: how much of extra work and transfers it is.

Tokens stay as many: what is taken from a hot expert goes to all experts of its group, itself included. Of `hot` ranks
that have more than the others of a group of `size`, evening out saves (1 - hot / size) of what each has more. The
all-to-alls last as long as their busiest rank, which is why they are shorter then (`replay.routing`). Routing is never
even: what is saved ends where the hot expert is as busy as the busiest of the others usually is. Not handled: a rank
that gets more tokens and is slow besides, of which all extra work is taken for that of tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.replay.model import StepModel
from traceforge.replay.places import load_places
from traceforge.replay.routing import find_routing
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds

Amounts = NDArray[np.float64]

_HOT = "SELECT rank FROM operation.all_to_all_load WHERE run_id = ? AND ratio >= ?"

_GROUPS = """
SELECT DISTINCT g.ranks
FROM timeline.collective AS c
JOIN timeline.communicator AS g USING (run_id, communicator_id)
WHERE c.run_id = ? AND c.op = 'all_to_all'
"""


@dataclass(frozen=True, slots=True)
class HotExperts:
    """What evening out would save.

    Attributes:
        saved: by rank with a hot expert, the share of its extra work.
        transfer_ns: what all-to-alls take longer because of them, shape (I, P, R); None where amounts are not known.
    """

    saved: Mapping[int, float]
    transfer_ns: NDArray[np.int64] | None = None


def hot_experts(store: Store, run_id: int, model: StepModel) -> HotExperts:
    """Of a run; nothing is saved where no rank has a hot expert."""
    hot = {rank for (rank,) in store.rows(_HOT, [run_id, thresholds.HOT_EXPERT_RATIO])}
    saved = _saved(hot, [ranks for (ranks,) in store.rows(_GROUPS, [run_id])] if hot else [])
    if not saved:
        return HotExperts({})
    places = load_places(store, run_id, model)
    routing = find_routing(places, model.group, model.transfer_ns)
    if routing is None or not routing.is_uneven:
        return HotExperts(saved)
    is_hot = np.isin(model.ranks, sorted(saved))
    load = np.where(routing.takes, 1 / routing.work, np.nan)
    excess, part = tokens_beyond_usual(load, is_hot, places.communicator)
    longer = part[:, None, None] * np.maximum(0, model.transfer_ns - routing.transfer_ns)
    whole = float((excess * part).sum() / excess.sum()) if excess.any() else 1.0
    return HotExperts({rank: whole * own for rank, own in saved.items()}, np.rint(longer).astype(np.int64))


def tokens_beyond_usual(
    load: Amounts, is_hot: NDArray[np.bool_], communicator: NDArray[np.int64]
) -> tuple[Amounts, Amounts]:
    """By iteration the hot ranks' tokens above the mean, and the part of them above the busiest of the others, too.

    Args:
        load: tokens that a rank gets over the mean of the call, NaN where it gets none, shape (I, P, R).
        is_hot: shape (R,).
        communicator: of each place.
    """
    excess, calls, usual = np.zeros(len(load)), np.zeros(len(load)), []
    for group in np.unique(communicator[np.isfinite(load)]).tolist():
        own = np.where(communicator == group, load, np.nan)
        met = np.isfinite(own[..., is_hot]).any(axis=2) & np.isfinite(own[..., ~is_hot]).any(axis=2)
        others = own[met][:, ~is_hot]
        usual += (np.nanmax(others, axis=1) / np.nanmean(others, axis=1) - 1).tolist()
        np.add.at(excess, np.nonzero(met)[0], np.nanmean(own[met][:, is_hot], axis=1) - 1)
        np.add.at(calls, np.nonzero(met)[0], 1)
    excess = np.maximum(0.0, np.divide(excess, calls, out=np.zeros_like(excess), where=calls > 0))
    beyond = np.maximum(0.0, excess - (float(np.mean(usual)) if usual else 0.0))
    return excess, np.divide(beyond, excess, out=np.zeros_like(excess), where=excess > 0)


def _saved(hot: set[int], groups: Sequence[Sequence[int]]) -> dict[int, float]:
    """The same; of several groups of a rank the smallest, in which the fewest share its tokens."""
    found: dict[int, float] = {}
    for ranks in sorted(groups, key=len, reverse=True):
        share = 1 - len(hot.intersection(ranks)) / len(ranks)
        found |= dict.fromkeys(hot.intersection(ranks), share)
    return found


def saved_of(shares: Mapping[int, float], ranks: Sequence[int]) -> list[float]:
    """The share for each of some ranks; all of it where one of them has no hot expert, which is slow by itself."""
    if any(rank not in shares for rank in ranks):
        return [1.0] * len(ranks)
    return [shares[rank] for rank in ranks]
