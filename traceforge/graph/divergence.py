"""Do all ranks issue the same collectives? Reads graph.communication; fills graph.divergence.

A collective that one rank calls with another type or size, or does not call, hangs or corrupts a job, and needs no
times to be seen. Each rank is held against the sequence that most have. Where numbers of calls are stated, a rank whose
numbers skip one has made that call: its recording lost it.
A call of unknown kind fits every other one.
Not handled: point-to-point messages (see message_pair), and members that use different process group objects for one
set of ranks.
"""

from collections import Counter
from collections.abc import Mapping

import polars as pl

from traceforge.graph.call_alignment import EXTRA, MISSING, SHORTER, Fit, fit, gap_by_surroundings
from traceforge.graph.call_surroundings import surroundings
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows

_CALLS = """
SELECT run_id, rank, source_id, node_id, position, process_group, CAST(members AS VARCHAR) AS members,
  ROW_NUMBER() OVER (PARTITION BY run_id, process_group, rank ORDER BY ordinal) - 1 AS ordinal, sequence, op, dtype,
  in_bytes
FROM graph.communication
WHERE op IS NULL OR op NOT IN ('send', 'recv')
ORDER BY run_id, process_group, members, rank, ordinal
"""
_EVEN = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "barrier")
"""Operations in which all ranks send the same number of bytes."""
_KEY = ["run_id", "process_group", "members"]
_GRAVEST = ("differs", MISSING, EXTRA, "unrecorded", SHORTER)
_NO_CALL = "no call"
_UNKNOWN = "unknown"
Row = dict[str, object]
Call = tuple[str, int, int | None, int]
Calls = Mapping[int, dict[int, Call]]
"""Of each rank and place: what it is, source_id, node_id, position."""


def rows(store: Store) -> pl.DataFrame:
    """One row a process group; adds an issue for every rank whose sequence differs."""
    calls = store.query(_CALLS)
    if calls.is_empty():
        return calls
    size = pl.when(pl.col("op").is_in(_EVEN) & pl.col("in_bytes").is_not_null()).then(pl.col("in_bytes"))
    said = pl.concat_str(
        pl.col("op").fill_null(_UNKNOWN),
        pl.format(" {} bytes", size).fill_null(""),
        pl.format(" {}", "dtype").fill_null(""),
    )
    found = []
    for (run_id, group, members), own in calls.with_columns(said=said).group_by(_KEY, maintain_order=True):
        row, different = _compared(store, own, members_known=members is not None)
        found.append({"run_id": run_id, "process_group": group, **row})
        issues = [_issue(group, one) for one in different if one["status"] != SHORTER]
        if issues:
            store.append("meta.issue", issue_rows(int(str(run_id)), None, "graph", issues))
    return pl.DataFrame(found, infer_schema_length=None)


def _compared(store: Store, calls: pl.DataFrame, *, members_known: bool) -> tuple[Row, list[Row]]:
    """What the calls of one process group say, and each rank that does not fit.

    Args:
        calls: rank, source_id, node_id, position, process_group, ordinal, sequence, said; by rank and ordinal.
        members_known: whether it is known which ranks belong to the group.
    """
    ranks = calls["rank"].unique().sort().to_list()
    row: Row = {"ranks": ranks, "compared_count": 0, "status": "not_comparable"}
    is_named = calls["process_group"][0] is not None and not calls["process_group"][0].startswith("group ")
    if len(ranks) < 2 or not (members_known or is_named):
        return row, []
    place = "sequence" if _states_sequences(calls) else "ordinal"
    whole = {
        rank: dict(zip(own[place], own.select("said", "source_id", "node_id", "position").rows(), strict=True))
        for (rank,), own in calls.group_by("rank", maintain_order=True)
    }
    first = max(min(own) for own in whole.values()) if place == "sequence" else 0
    by_rank = {rank: {at: call for at, call in own.items() if at >= first} for rank, own in whole.items()}
    until = min(max(own, default=first - 1) for own in by_rank.values())
    row["compared_count"] = len({at for own in by_rank.values() for at in own if at <= until})
    different = _different(store, by_rank, is_numbered=place == "sequence")
    if not different:
        return {**row, "status": "agrees"}, []
    worst = min(different, key=lambda one: (_GRAVEST.index(str(one["status"])) > 2, one["first_place"], one["rank"]))
    return {**row, **worst}, different


def _states_sequences(calls: pl.DataFrame) -> bool:
    """Whether each call has a sequence number of its own on its rank."""
    stated = calls["sequence"].null_count() == 0
    return stated and calls.select("rank", "sequence").n_unique() == calls.height


def _different(store: Store, by_rank: Calls, *, is_numbered: bool) -> list[Row]:
    """Ranks that do not fit the others: with calls missing or too many, or with other calls in their place."""
    said = {rank: tuple(call for call, *_ in own.values()) for rank, own in by_rank.items()}
    sure = {rank: calls for rank, calls in said.items() if not any(map(_is_unknown, calls))}
    often = Counter((sure or said).values())
    usual = max(often, key=lambda calls: (often[calls], len(calls)))
    peer = next(rank for rank in by_rank if said[rank] == usual)
    found, in_place = [], {}
    for rank, whole in by_rank.items():
        own = _with_unknown(whole, usual)
        if own is None:
            continue
        said[rank] = tuple(call for call, *_ in own.values())
        lost = _unrecorded(by_rank[peer], own) if is_numbered else None
        how = fit(usual, said[rank], may_begin_later=not is_numbered)
        is_vague = how.kind == SHORTER or (how.kind == MISSING and how.place < how.last_place)
        if is_vague and not lost and len(own) < len(usual):
            how = gap_by_surroundings(*surroundings(store, by_rank[peer], own)) or how
        if lost:
            found.append(_gap_row("unrecorded", lost, (rank, own), (peer, by_rank[peer]), often[usual]))
        elif how.kind in (MISSING, EXTRA, SHORTER):
            found.append(_gap_row(how.kind, how, (rank, own), (peer, by_rank[peer]), often[usual]))
        else:
            in_place[rank] = own
    return [*found, *_others_in_place(in_place, usual)]


def _is_unknown(call: str) -> bool:
    return call.startswith(_UNKNOWN)


def _with_unknown(own: dict[int, Call], usual: tuple[str, ...]) -> dict[int, Call] | None:
    """Calls of a rank, taken for what is usual where either is of unknown kind; None where that is open."""
    is_known = not any(map(_is_unknown, (*usual, *(call for call, *_ in own.values()))))
    if is_known:
        return own
    if len(own) != len(usual):
        return None
    found: dict[int, Call] = {}
    for (at, call), expected in zip(own.items(), usual, strict=True):
        is_open = _is_unknown(call[0]) or _is_unknown(expected)
        found[at] = (expected if is_open else call[0], *call[1:])
    return found


def _unrecorded(peer: dict[int, Call], own: dict[int, Call]) -> Fit | None:
    """The first number that a rank skips although it goes on with equal calls under equal numbers."""
    numbers = list(peer)
    skipped = [place for place, at in enumerate(numbers) if at not in own and own and at < max(own)]
    is_alike = all(at in peer and peer[at][0] == call[0] for at, call in own.items() if at <= numbers[-1])
    if not skipped or not is_alike:
        return None
    return Fit(MISSING, skipped[0], skipped[0], skipped[0], len(skipped))


def _gap_row(
    status: str, how: Fit, of: tuple[int, dict[int, Call]], peer: tuple[int, dict[int, Call]], alike: int
) -> Row:
    """A rank that lacks calls, or makes more than its peers."""
    rank, own = of
    has_more = len(own) > len(peer[1])
    longer, fewer = (own, peer[1]) if has_more else (peer[1], own)
    places, shorter = list(longer), list(fewer.values())
    call = longer[places[how.place]]
    before = shorter[how.place - 1] if how.place else None
    return {
        "status": status,
        "first_place": places[how.place],
        "last_place": places[how.last_place],
        "call_count": how.count,
        "rank": rank,
        "source_id": next(iter(own.values()))[1] if own else None,
        "node_id": call[2] if has_more else None,
        "previous_node_id": before[2] if before and not has_more else None,
        "found": call[0] if has_more else _NO_CALL,
        "expected": _NO_CALL if has_more else call[0],
        "peer_rank": peer[0],
        "peer_node_id": None if has_more else call[2],
        "peer_count": alike,
    }


def _others_in_place(by_rank: Calls, usual: tuple[str, ...]) -> list[Row]:
    """Ranks that make another call where most make one alike: the first place of each."""
    found: dict[int, Row] = {}
    until = min((max(own, default=-1) for own in by_rank.values()), default=-1)
    for at in sorted({at for own in by_rank.values() for at in own if at <= until}):
        said = {rank: own[at][0] if at in own else None for rank, own in by_rank.items()}
        common = Counter(said.values())
        if len(common) == 1:
            continue
        expected = max(common, key=lambda value: common[value])
        peer = next(rank for rank, value in said.items() if value == expected)
        for rank in [rank for rank, value in said.items() if value != expected and rank not in found]:
            _, source_id, node_id, _ = by_rank[rank].get(at) or next(iter(by_rank[rank].values()))
            found[rank] = {
                "status": "differs",
                "first_place": at,
                "last_place": at,
                "rank": rank,
                "source_id": source_id,
                "node_id": node_id if at in by_rank[rank] else None,
                "found": said[rank] or _NO_CALL,
                "expected": expected or _NO_CALL,
                "peer_rank": peer,
                "peer_node_id": by_rank[peer][at][2] if at in by_rank[peer] else None,
                "peer_count": common[expected],
            }
    return list(found.values())


def _issue(group: object, row: Row) -> Issue:
    if row["status"] == "unrecorded":
        detail = (
            f"in process group {group} the recording of rank {row['rank']} lacks call {row['first_place']}"
            f" ({row['expected']}); its numbers go on, so that the call was made"
        )
        return Issue("call_not_recorded", "warning", int(str(row["call_count"])), f"rank {row['rank']}", detail)
    others = "others" if int(str(row["peer_count"])) > 1 else f"rank {row['peer_rank']}"
    at = f"call {row['first_place']}"
    if row["first_place"] != row["last_place"]:
        at = f"one of calls {row['first_place']} to {row['last_place']}"
    detail = (
        f"ranks do not issue the same collectives in process group {group}: at {at}, rank {row['rank']}"
        f" has {row['found']}, {others} {row['expected']}"
    )
    node = row["node_id"] if row["node_id"] is not None else row.get("previous_node_id")
    where = f"rank {row['rank']}" + ("" if node is None else f", node {node}")
    return Issue("sequence_diverges", "warning", 1, where, detail)
