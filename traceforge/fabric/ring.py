"""Rings reconstructed from the logs of ranks. Fills fabric.ring.

Idea: successors follow from each rank's GRAPH line, from the line that lists all ranks (cut at about 20 ranks), or from
the first connection a rank makes on a channel, as rings are connected before trees. The first of these that closes over
all ranks is taken, else the longest walk.
Not handled: communicators that connect lazily and never need a ring (they have none).
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping

import polars as pl

from traceforge.store.database import Store

_MEMBERS = """
SELECT m.run_id, m.communicator_id, g.channel, g.rank, g.next_rank
FROM raw.nccl_ring_member AS g
JOIN fabric.member AS m USING (source_id, handle_id)
ORDER BY ALL
"""

_ORDERS = """
SELECT m.run_id, m.communicator_id, o.channel, ARG_MIN(o.ranks, (o.source_id, o.record_id)) AS ranks
FROM raw.nccl_ring_order AS o
JOIN fabric.member AS m USING (source_id, handle_id)
GROUP BY ALL
ORDER BY ALL
"""

_EDGES = """
SELECT run_id, communicator_id, channel, source_rank, ARG_MIN(target_rank, record_id) AS next_rank
FROM fabric.edge
WHERE connection_index = 0 AND transport <> 'COLLNET'
GROUP BY ALL
ORDER BY ALL
"""

_SIZES = "SELECT run_id, communicator_id, rank_count FROM fabric.communicator ORDER BY ALL"

_COLUMNS = ("run_id", "communicator_id", "channel", "position", "rank", "next_rank", "origin", "is_complete")

Channel = tuple[int, int, int]
Successors = dict[int, int]


def rows(store: Store) -> pl.DataFrame:
    """One row per rank of a channel's ring."""
    sizes = {(run_id, number): size for run_id, number, size in store.rows(_SIZES)}
    found: dict[Channel, dict[str, Successors]] = defaultdict(lambda: defaultdict(dict))
    for origin, query in (("members", _MEMBERS), ("edges", _EDGES)):
        for run_id, number, channel, rank, next_rank in store.rows(query):
            found[run_id, number, channel][origin][rank] = next_rank
    for run_id, number, channel, ranks in store.rows(_ORDERS):
        if (run_id, number) in sizes:
            found[run_id, number, channel]["order"] = _successors(ranks, sizes[run_id, number])
    # Of a communicator whose size is not known, none can be told to be whole.
    places = [place for place in sorted(found) if place[:2] in sizes]
    result = [row for place in places for row in _ring(place, found[place], sizes[place[:2]])]
    return pl.DataFrame(result, schema=_COLUMNS, orient="row", infer_schema_length=None)


def _successors(ranks: list[int], size: int) -> Successors:
    """Successors in a list of ranks, which is closed where it is complete."""
    pairs = dict(itertools.pairwise(ranks))
    if len(ranks) == size:
        pairs[ranks[-1]] = ranks[0]
    return pairs


def _ring(place: Channel, by_origin: Mapping[str, Successors], size: int) -> Iterator[tuple[object, ...]]:
    walks = [(origin, longest_walk(by_origin[origin])) for origin in ("members", "order", "edges") if by_origin[origin]]
    whole = [(origin, ranks) for origin, ranks in walks if len(ranks) == size and is_closed(by_origin[origin], ranks)]
    if size < 2 or not walks:
        return
    origin, ranks = whole[0] if whole else max(walks, key=lambda found: len(found[1]))
    for position, rank in enumerate(ranks):
        yield (*place, position, rank, by_origin[origin].get(rank), origin, bool(whole))


def is_closed(successors: Successors, ranks: list[int]) -> bool:
    """Whether the last rank of a walk sends to the first."""
    return successors.get(ranks[-1]) == ranks[0]


def longest_walk(successors: Successors) -> list[int]:
    """The longest walk along successors that visits no rank twice; a closed one starts at the lowest rank."""
    targets = set(successors.values())
    starts = sorted(rank for rank in successors if rank not in targets) or [min(successors)]
    best: list[int] = []
    for start in starts:
        walk, seen = [start], {start}
        while (following := successors.get(walk[-1])) is not None and following not in seen:
            walk.append(following)
            seen.add(following)
        best = walk if len(walk) > len(best) else best
    return best
