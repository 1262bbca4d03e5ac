"""What hosts do between their calls. In: the calls of two ranks. Out: a number for each stretch, equal for equal names.

Idea: the names of all operations before a call and behind the call before it are one stretch. PyTorch numbers its
nodes as they start; other writers give them in order. Work of devices is left out.
Not handled: threads, which are taken as one.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.store.database import Store

Numbers = NDArray[np.int64]

# Nodes in the order of their start, with the positions of calls.
_NODES = """
SELECT n.position, n.name
FROM raw.chakra_node AS n
WHERE n.source_id = $1 AND n.category IS NULL
  AND n.part = (SELECT MIN(part) FROM raw.chakra_node WHERE source_id = $1 AND position = $2)
ORDER BY CASE
    WHEN (SELECT MIN(origin) FROM raw.chakra_communication WHERE source_id = $1 AND position = $2) = 'attributes'
    THEN n.position
    ELSE n.node_id
  END, n.position
"""
Calls = Mapping[int, tuple[str, int, int | None, int]]


def surroundings(store: Store, peer: Calls, own: Calls) -> tuple[Numbers, Numbers]:
    """Kinds of the stretches before each call and behind the last one; -1 where a stretch is empty."""
    texts = [_stretches(store, calls) for calls in (peer, own)]
    known = {text: number for number, text in enumerate({text for side in texts for text in side if text})}
    peers, owns = (np.array([known.get(text, -1) for text in side], dtype=np.int64) for side in texts)
    return peers, owns


def _stretches(store: Store, calls: Calls) -> list[str]:
    positions = [position for *_, position in calls.values()]
    if not positions:
        return [""]
    (source_id,) = {source_id for _, source_id, _, _ in calls.values()}
    nodes = store.query(_NODES, [source_id, positions[0]])
    is_call = nodes["position"].is_in(positions)
    parted = nodes.with_columns(stretch=is_call.cast(pl.Int64).cum_sum()).filter(~is_call)
    texts = dict(
        parted.group_by("stretch").agg(pl.col("name").fill_null("").str.join("\n")).iter_rows(),
    )
    return [texts.get(number, "") for number in range(len(positions) + 1)]
