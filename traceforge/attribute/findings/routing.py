"""Experts that get more tokens than others. In: what ranks exchange. Out: how much of their extra work can be saved.

Tokens stay as many: what is taken from a hot expert goes to all experts of its group, itself included. Of `hot` ranks
that have more than the others of a group of `size`, evening out saves (1 - hot / size) of what each has more. Not
handled: a rank that gets more tokens and is slow besides, of which all extra work is taken for that of tokens.
"""

from collections.abc import Mapping, Sequence

from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds

_HOT = "SELECT rank FROM operation.all_to_all_load WHERE run_id = ? AND ratio >= ?"

_GROUPS = """
SELECT DISTINCT g.ranks
FROM timeline.collective AS c
JOIN timeline.communicator AS g USING (run_id, communicator_id)
WHERE c.run_id = ? AND c.op = 'all_to_all'
"""


def saved_by_even_routing(store: Store, run_id: int) -> dict[int, float]:
    """By rank with a hot expert: share of its extra work that evening out would save."""
    hot = {rank for (rank,) in store.rows(_HOT, [run_id, thresholds.HOT_EXPERT_RATIO])}
    groups = [ranks for (ranks,) in store.rows(_GROUPS, [run_id])] if hot else []
    return _saved(hot, groups)


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
