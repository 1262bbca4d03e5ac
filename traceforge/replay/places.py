"""What each collective of a model is. In: timeline.collective, timeline.communicator. Out: arrays over its places.

What-if edits choose collectives by these: by communicator, operation, size, or whether they leave a host.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.replay.model import StepModel
from traceforge.store.database import Store

_COLLECTIVES = """
SELECT c.collective_id, c.communicator_id, c.op, c.size_bytes, k.ranks
FROM timeline.collective AS c
JOIN timeline.communicator AS k USING (run_id, communicator_id)
WHERE c.run_id = ?
ORDER BY c.collective_id
"""
# Elements of the kernel or host call itself: each rank of an all-to-all may send and receive its own.
_AMOUNTS = """
SELECT a.collective_id, a.rank, p.in_elements, p.out_elements
FROM timeline.arrival AS a
JOIN timeline.collective AS t USING (run_id, collective_id)
JOIN align.call AS c ON c.run_id = a.run_id AND c.rank = a.rank AND c.call_id = a.call_id
JOIN raw.collective AS p ON p.source_id = c.source_id AND p.event_id = c.event_id
WHERE a.run_id = ? AND t.op = 'all_to_all' AND p.in_elements IS NOT NULL AND p.out_elements IS NOT NULL
ORDER BY a.collective_id, a.rank
"""
# Along an axis ranks lie that differ in that coordinate.
_AXES = """
SELECT k.communicator_id, m.axis
FROM timeline.communicator AS k
JOIN timeline.mesh AS m ON m.run_id = k.run_id AND LIST_CONTAINS(k.ranks, m.rank)
WHERE k.run_id = ?
GROUP BY ALL
HAVING COUNT(DISTINCT m.coordinate) > 1
ORDER BY ALL
"""
_HOST_NAMES = "SELECT rank, host FROM align.rank WHERE run_id = ?"


@dataclass(frozen=True, slots=True)
class Places:
    """The collectives of a model; arrays of shape (I, P, R), as `StepModel.group`.

    Attributes:
        communicator: communicator, -1 where there is no collective.
        op: index into `ops`, -1 where there is none.
        size_bytes: payload; 0 where it is unknown.
        members: ranks of the communicator.
        hosts: hosts of the communicator's ranks; 1 where they are not known.
        ops: names of operations.
        host_of: host of each rank, shape (R,); empty texts where unknown.
        axes: by communicator, the axes of the mesh along which its ranks lie; empty where the layout is not known.
        sent_elements, received_elements: of the rank in an all-to-all, -1 where it does not say; None where none does.
    """

    communicator: NDArray[np.int64]
    op: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    members: NDArray[np.int64]
    hosts: NDArray[np.int64]
    ops: tuple[str, ...]
    host_of: tuple[str, ...]
    axes: Mapping[int, frozenset[str]] = field(default_factory=dict)
    sent_elements: NDArray[np.int64] | None = None
    received_elements: NDArray[np.int64] | None = None

    def is_op(self, *names: str) -> NDArray[np.bool_]:
        """Where one of these operations is."""
        wanted = [number for number, name in enumerate(self.ops) if name in names]
        return np.isin(self.op, wanted)


def load_places(store: Store, run_id: int, model: StepModel) -> Places:
    """The collectives of a run's model."""
    hosts = dict(store.rows(_HOST_NAMES, [run_id]))
    found = store.query(_COLLECTIVES, [run_id]).with_columns(pl.col("op").fill_null("unknown"))
    ops = tuple(found["op"].unique().sort())
    facts = found.select(
        "collective_id",
        "communicator_id",
        op=pl.col("op").replace_strict(list(ops), range(len(ops)), return_dtype=pl.Int64),
        size_bytes=pl.col("size_bytes").fill_null(0),
        members=pl.col("ranks").list.len(),
        hosts=pl.Series([max(1, len({hosts.get(rank) for rank in ranks})) for ranks in found["ranks"]], dtype=pl.Int64),
    ).cast(pl.Int64)
    columns = ("communicator_id", "op", "size_bytes", "members", "hosts")
    communicator, op, size_bytes, members, at_hosts = (_at_places(model, facts, column) for column in columns)
    host_of = tuple(hosts.get(rank) or "" for rank in model.ranks.tolist())
    axes: dict[int, frozenset[str]] = {}
    for one, axis in store.rows(_AXES, [run_id]):
        axes[one] = axes.get(one, frozenset()) | {axis}
    sent, received = _amounts(store, run_id, model) if "all_to_all" in ops else (None, None)
    return Places(communicator, op, size_bytes, members, at_hosts, ops, host_of, axes, sent, received)


def _amounts(store: Store, run_id: int, model: StepModel) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What each rank sends and receives at its all-to-alls; -1 where that is not known."""
    found = store.query(_AMOUNTS, [run_id])
    # One key a (collective, rank); found in order of both.
    count = int(max(model.ranks.max(initial=0), found["rank"].max() or 0)) + 1
    known = found["collective_id"].to_numpy() * count + found["rank"].to_numpy()
    wanted = model.group * count + model.ranks
    if not len(known):
        return np.full_like(wanted, -1), np.full_like(wanted, -1)
    at = np.searchsorted(known, wanted).clip(max=len(known) - 1)
    is_known = (known[at] == wanted) & (model.group >= 0)
    sent, received = (np.where(is_known, found[name].to_numpy()[at], -1) for name in ("in_elements", "out_elements"))
    return sent, received


def _at_places(model: StepModel, facts: pl.DataFrame, column: str) -> NDArray[np.int64]:
    """A fact of each place's collective; -1 where there is none."""
    identifiers, values = facts["collective_id"].to_numpy(), facts[column].to_numpy()
    if not len(identifiers):
        return np.full(model.group.shape, -1, dtype=np.int64)
    at = np.searchsorted(identifiers, model.group).clip(max=len(identifiers) - 1)
    found: NDArray[np.int64] = np.where(identifiers[at] == model.group, values[at], -1)
    return found
