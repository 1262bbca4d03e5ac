"""Do all ranks issue the same collectives? Reads graph.communication; fills graph.divergence.

A collective that one rank calls with another type or size hangs or corrupts a job, and needs no times to be seen.
Not handled: point-to-point messages, and members that use different process group objects for one set of ranks.
"""

from collections import Counter

import polars as pl

from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows

_CALLS = """
SELECT run_id, rank, source_id, node_id, process_group, CAST(members AS VARCHAR) AS members, ordinal, sequence, op,
  dtype, in_bytes
FROM graph.communication
WHERE op IS NULL OR op NOT IN ('send', 'recv')
ORDER BY run_id, process_group, members, rank, ordinal
"""
_EVEN = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "barrier")
"""Operations in which all ranks send the same number of bytes."""
_KEY = ["run_id", "process_group", "members"]
Row = dict[str, object]


def rows(store: Store) -> pl.DataFrame:
    """One row a process group; adds an issue for every sequence that differs."""
    calls = store.query(_CALLS)
    if calls.is_empty():
        return calls
    size = pl.when(pl.col("op").is_in(_EVEN) & pl.col("in_bytes").is_not_null()).then(pl.col("in_bytes"))
    said = pl.concat_str(
        pl.col("op").fill_null("unknown"),
        pl.format(" {} bytes", size).fill_null(""),
        pl.format(" {}", "dtype").fill_null(""),
    )
    found = []
    for (run_id, group, members), own in calls.with_columns(said=said).group_by(_KEY, maintain_order=True):
        row = {"run_id": run_id, "process_group": group, **compare(own, members_known=members is not None)}
        found.append(row)
        if row["status"] == "differs":
            store.append("meta.issue", issue_rows(int(str(run_id)), None, "graph", [_issue(row)]))
    return pl.DataFrame(found, infer_schema_length=None)


def compare(calls: pl.DataFrame, *, members_known: bool) -> Row:
    """What the calls of one process group say.

    Args:
        calls: rank, source_id, node_id, process_group, ordinal, sequence, said; by rank and ordinal.
        members_known: whether it is known which ranks belong to the group.
    """
    ranks = calls["rank"].unique().sort().to_list()
    row: Row = {"ranks": ranks, "compared_count": 0, "status": "not_comparable"}
    is_named = calls["process_group"][0] is not None and not calls["process_group"][0].startswith("group ")
    if len(ranks) < 2 or not (members_known or is_named):
        return row
    place = "sequence" if _states_sequences(calls) else "ordinal"
    by_rank = {
        rank: dict(zip(own[place], own.select("said", "source_id", "node_id").rows(), strict=True))
        for (rank,), own in calls.group_by("rank", maintain_order=True)
    }
    first = max(min(own) for own in by_rank.values()) if place == "sequence" else 0
    places = sorted({at for own in by_rank.values() for at in own if at >= first})
    until = min(max(own) for own in by_rank.values())
    row["compared_count"] = sum(at <= until for at in places)
    for at in places:
        said = {rank: own[at][0] if at in own else None for rank, own in by_rank.items()}
        if len(set(said.values())) > 1:
            return {**row, **_difference(at, said, by_rank), "status": "differs" if at <= until else "shorter"}
    return {**row, "status": "agrees"}


def _states_sequences(calls: pl.DataFrame) -> bool:
    """Whether each call has a sequence number of its own on its rank."""
    stated = calls["sequence"].null_count() == 0
    return stated and calls.select("rank", "sequence").n_unique() == calls.height


def _difference(at: int, said: dict[object, str | None], by_rank: dict[object, dict[int, tuple[str, int, int]]]) -> Row:
    common = Counter(said.values())
    expected = max(common, key=lambda value: common[value])
    rank = next(rank for rank, value in said.items() if value != expected)
    _, source_id, node_id = by_rank[rank].get(at) or (None, next(iter(by_rank[rank].values()))[1], None)
    return {
        "first_place": at,
        "rank": rank,
        "source_id": source_id,
        "node_id": node_id,
        "found": said[rank] or "no call",
        "expected": expected or "no call",
    }


def _issue(row: Row) -> Issue:
    detail = (
        f"ranks do not issue the same collectives in process group {row['process_group']}: rank {row['rank']}"
        f" has {row['found']}, others {row['expected']}"
    )
    return Issue("sequence_diverges", "warning", 1, f"rank {row['rank']}, node {row['node_id']}", detail)
