"""The parallel layout of a run. Reads align.communicator, align.message, timeline.message; fills timeline.mesh.

Idea: an axis of a mesh is a division of all ranks into groups of equal size, and two axes meet in one rank at most. Of
the divisions that communicate the largest set of axes whose sizes multiply to the number of ranks is the mesh. Ranks
that exchange messages are a pipeline: their order is that in which the first message of an iteration goes through.
Not handled: stages of unequal numbers of ranks; meshes of which an axis never communicates (only pp is given then).
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod

import polars as pl

from traceforge.align.group_inference import ProcessGroup, divisions
from traceforge.store.database import Store
from traceforge.timeline.axis_name import axis_name
from traceforge.timeline.message_paths import Ranks, pipelines

# Rank to number of its group and place in it.
Axis = Mapping[int, tuple[int, int]]

_COMMUNICATORS = """
SELECT run_id, communicator_id, name, description, ranks FROM align.communicator ORDER BY run_id, communicator_id
"""
_MESSAGES = """
SELECT run_id, communicator_id, collective_id, source_rank, destination_rank, iteration, received_ns
FROM timeline.message
ORDER BY run_id, received_ns, message_id
"""
_RANKS = "SELECT run_id, rank FROM align.rank ORDER BY run_id, rank"

_SCHEMA = {"run_id": pl.Int32, "rank": pl.Int32, "axis": pl.String, "coordinate": pl.Int32}

# More axes than this no job has; more divisions are not tried together.
_MOST_AXES = 5
_MOST_DIVISIONS = 12


def rows(store: Store) -> pl.DataFrame:
    """One row a rank and axis."""
    communicators, messages, recorded = (store.query(sql) for sql in (_COMMUNICATORS, _MESSAGES, _RANKS))
    found: list[tuple[int, int, str, int]] = []
    for (run_key,), own in communicators.group_by("run_id", maintain_order=True):
        run_id = int(str(run_key))
        of_run = pl.col("run_id") == run_id
        ranks = sorted({*recorded.filter(of_run)["rank"], *(rank for group in own["ranks"] for rank in group)})
        named = mesh(ranks, _groups(own), pipelines(own, messages.filter(of_run), len(ranks)))
        found += [(run_id, rank, name, axis[rank][1]) for name, axis in named.items() for rank in ranks]
    return pl.DataFrame(found, schema=_SCHEMA, orient="row")


def _groups(communicators: pl.DataFrame) -> list[ProcessGroup]:
    columns = communicators.select("name", "description", "ranks")
    return [ProcessGroup(name, text, tuple(ranks)) for name, text, ranks in columns.iter_rows() if len(ranks) > 1]


def mesh(ranks: Sequence[int], groups: Sequence[ProcessGroup], pipes: Sequence[Ranks]) -> dict[str, Axis]:
    """Axes by name.

    Args:
        ranks: of the job.
        groups: that communicate.
        pipes: ranks that pass messages on, in order of stages.
    """
    pipeline = _axis(pipes, ranks)
    candidates: list[tuple[str, Axis]] = []
    for division in divisions(groups):
        axis = _axis([group.ranks for group in division], ranks)
        if axis is not None and not any(_is_same(axis, other) for _, other in candidates):
            candidates.append((axis_name(division[0].description), axis))
    if pipeline is not None:
        candidates = [("pp", pipeline), *(one for one in candidates if _is_across(one[1], pipeline))]
    chosen = _chosen(candidates[:_MOST_DIVISIONS], len(ranks), with_first=pipeline is not None)
    if not chosen:
        return {} if pipeline is None else {"pp": pipeline}
    return _with_names(chosen)


def _axis(groups: Sequence[Ranks], ranks: Sequence[int]) -> Axis | None:
    """Place of each rank, if the groups are of one size and tile the ranks."""
    members = [rank for group in groups for rank in group]
    if len({len(group) for group in groups}) != 1 or sorted(members) != list(ranks):
        return None
    return {rank: (number, place) for number, group in enumerate(groups) for place, rank in enumerate(group)}


def _is_across(one: Axis, other: Axis) -> bool:
    """Whether no two ranks share their groups along both."""
    return len({(one[rank][0], other[rank][0]) for rank in one}) == len(one)


def _is_same(one: Axis, other: Axis) -> bool:
    return {rank: place for rank, (_, place) in one.items()} == {
        rank: place for rank, (_, place) in other.items()
    } and (len({(one[rank][0], other[rank][0]) for rank in one}) == len({number for number, _ in one.values()}))


def _size(axis: Axis) -> int:
    return 1 + max(place for _, place in axis.values())


def _chosen(candidates: Sequence[tuple[str, Axis]], ranks: int, *, with_first: bool) -> Sequence[tuple[str, Axis]]:
    """The most axes that multiply to the number of ranks; of several sets the one with most names, then the first."""
    fitting: list[tuple[int, int, Sequence[tuple[str, Axis]]]] = []
    for count in range(1, _MOST_AXES + 1):
        for some in combinations(candidates, count):
            if with_first and some[0] is not candidates[0]:
                continue
            is_whole = prod(_size(axis) for _, axis in some) == ranks
            if is_whole and all(_is_across(one, other) for (_, one), (_, other) in combinations(some, 2)):
                fitting.append((count, len({name for name, _ in some if name}), some))
    return max(fitting, key=lambda one: one[:2])[2] if fitting else ()


def _with_names(chosen: Sequence[tuple[str, Axis]]) -> dict[str, Axis]:
    """Names for all: a group that is the only one without a name divides the data."""
    nameless = [axis for name, axis in chosen if not name]
    named: dict[str, Axis] = {}
    for name, axis in chosen:
        own = name or ("dp" if len(nameless) == 1 and not any(other in ("dp", "fsdp") for other, _ in chosen) else "")
        if not own or own in named:
            own = f"axis{1 + sum(other.startswith('axis') for other in named)}"
        named[own] = axis
    return named
