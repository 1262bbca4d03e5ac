"""Which ranks a collective call joins. Reads align.call and the process groups listed; fills align.membership.

What the trace states with the call decides; else, when the job lists one group, that one; else the listed groups are
tried: within the right group no member can end a collective before the last one has started it. Without any list the
group is the whole job: all ranks that it says it has, and those below the highest one here, recorded or not.
Not handled: groups that no file lists.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import msgspec
import polars as pl

from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows
from traceforge.thresholds import align as thresholds

Ranks = tuple[int, ...]

_CALLS = """
SELECT c.run_id, c.rank, c.call_id, c.process_group_name, c.process_group_ranks, c.raw_arrival_ns, c.raw_end_ns,
  s.iteration, r.host
FROM align.call AS c
JOIN align.rank AS r USING (run_id, rank)
ASOF LEFT JOIN align.step AS s ON s.run_id = c.run_id AND s.rank = c.rank AND c.raw_issue_ns >= s.raw_start_ns
WHERE c.is_linked AND c.is_intact
ORDER BY c.run_id, c.rank, c.call_id
"""

_UNLINKED = (
    "SELECT run_id, COUNT(*) AS calls FROM align.call WHERE is_intact AND NOT is_linked GROUP BY ALL ORDER BY ALL"
)

_GROUPS = """
SELECT DISTINCT r.run_id, r.rank, g.process_group_name, COALESCE(g.description, '') AS description, g.ranks
FROM raw.kineto_process_group AS g
JOIN align.rank AS r USING (source_id)
ORDER BY ALL
"""

_WORLD_SIZES = "SELECT run_id, world_size FROM meta.run"

# What a file says of a job's size is not believed beyond this: nobody runs so many.
_MOST_RANKS = 1_000_000

_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "run_id": pl.Int32,
    "rank": pl.Int32,
    "call_id": pl.Int64,
    "group_name": pl.String,
    "group_ranks": pl.List(pl.Int32),
    "origin": pl.String,
}


@dataclass(frozen=True, slots=True)
class _UnassignedCall:
    rank: int
    call_id: int
    stated_name: str | None
    stated_ranks: Ranks | None
    arrival_ns: int
    end_ns: int
    iteration: int | None
    host: str | None


@dataclass(frozen=True, slots=True)
class _ProcessGroup:
    name: str
    description: str
    ranks: Ranks


def rows(store: Store) -> pl.DataFrame:
    """One row a call whose group is known."""
    for run_id, count in store.query(_UNLINKED).iter_rows():
        store.append("meta.issue", issue_rows(run_id, None, "align", [_unlinked(count)]))
    calls = store.query(_CALLS)
    groups = store.query(_GROUPS)
    world_sizes = dict(store.query(_WORLD_SIZES).rows())
    result: list[tuple[object, ...]] = []
    for (run_id,), frame in calls.group_by("run_id", maintain_order=True):
        of_run = groups.filter(pl.col("run_id") == run_id)
        present = tuple(sorted(frame["rank"].unique()))
        job = _whole_job(present, world_sizes[run_id])
        members = list(_assign(_read_calls(frame), _read_groups(of_run), job))
        result += [
            (run_id, call.rank, call.call_id, name, list(ranks), origin) for call, name, ranks, origin in members
        ]
        if missing := frame.height - len(members):
            store.append("meta.issue", issue_rows(int(str(run_id)), None, "align", [_unknown_group(missing)]))
    return pl.DataFrame(result, schema=_SCHEMA, orient="row")


def _read_calls(frame: pl.DataFrame) -> list[_UnassignedCall]:
    return [
        _UnassignedCall(rank, call_id, name, _parse_ranks(ranks), arrival_ns, end_ns, iteration, host)
        for _, rank, call_id, name, ranks, arrival_ns, end_ns, iteration, host in frame.iter_rows()
    ]


def _read_groups(frame: pl.DataFrame) -> list[_ProcessGroup]:
    found = {
        _ProcessGroup(name or "", description, parsed)
        for _, _, name, description, ranks in frame.iter_rows()
        if (parsed := _parse_ranks(ranks)) and len(parsed) > 1
    }
    return sorted(found, key=lambda group: (group.description, group.ranks, group.name))


def _parse_ranks(text: str | None) -> Ranks | None:
    if text is None:
        return None
    try:
        return tuple(sorted(msgspec.json.decode(text, type=list[int]))) or None
    except msgspec.DecodeError:
        return None


def _whole_job(present: Ranks, world_size: int | None) -> tuple[Ranks, str]:
    """Ranks of the group of calls that name none, and how that is known."""
    stated = world_size if world_size is not None and world_size <= _MOST_RANKS else None
    if stated is None and len(present) == 1:
        return present, "unknown"
    # Ranks without a file are members as well.
    size = max(stated or 0, present[-1] + 1)
    return (tuple(range(size)) if size <= _MOST_RANKS else present), "assumed"


def _assign(
    calls: Sequence[_UnassignedCall], groups: Sequence[_ProcessGroup], job: tuple[Ranks, str]
) -> Iterator[tuple[_UnassignedCall, str, Ranks, str]]:
    named = {group.name: group.ranks for group in groups if group.name}
    unstated = []
    for call in calls:
        if call.stated_ranks:
            yield call, call.stated_name or "", call.stated_ranks, "stated"
        elif call.stated_name in named:
            yield call, call.stated_name or "", named[call.stated_name or ""], "stated"
        else:
            unstated.append(call)
    if len({group.ranks for group in groups}) > 1:
        yield from _infer(unstated, groups)
    else:
        name, ranks, origin = (groups[0].name, groups[0].ranks, "assumed") if groups else ("", *job)
        for call in unstated:
            yield call, name, ranks, origin


def _infer(
    calls: Sequence[_UnassignedCall], groups: Sequence[_ProcessGroup]
) -> Iterator[tuple[_UnassignedCall, str, Ranks, str]]:
    """For each position within an iteration, the division of the ranks into groups that fits the times."""
    by_position = _by_position(_coarsely_aligned(calls))
    divisions = _divisions(groups)
    for by_iteration in by_position.values():
        ranks = {rank for members in by_iteration.values() for rank in members}
        fitting = [
            (
                _violations(by_iteration, division),
                -len(division[0].ranks),
                _end_spread_ns(by_iteration, division),
                index,
            )
            for index, division in enumerate(divisions)
            if {rank for group in division for rank in group.ranks} >= ranks
        ]
        if not fitting or min(fitting)[0] > thresholds.MOST_GROUP_VIOLATIONS * len(by_iteration):
            continue
        group_of = {rank: group for group in divisions[min(fitting)[3]] for rank in group.ranks}
        for members in by_iteration.values():
            for rank, call in members.items():
                yield call, group_of[rank].name, group_of[rank].ranks, "inferred"


def _coarsely_aligned(calls: Sequence[_UnassignedCall]) -> list[_UnassignedCall]:
    """Calls with hosts' clocks coarsely aligned: the same call of one program ends at about the same time everywhere.

    Within a host nothing is moved, because there the times distinguish the groups.
    """
    ends: dict[int, list[int]] = defaultdict(list)
    hosts = {call.rank: call.host for call in calls}
    for call in calls:
        ends[call.rank].append(call.end_ns)
    reference = ends[min(ends)] if ends else []
    apart: dict[str | None, list[int]] = defaultdict(list)
    for rank, own in ends.items():
        apart[hosts[rank]] += [end - other for end, other in zip(own, reference, strict=False)]
    base = hosts[min(hosts)] if hosts else None
    shift = {host: 0 if host == base else sorted(found)[len(found) // 2] for host, found in apart.items()}
    return [
        replace(call, arrival_ns=call.arrival_ns - shift[call.host], end_ns=call.end_ns - shift[call.host])
        for call in calls
    ]


def _by_position(calls: Iterable[_UnassignedCall]) -> dict[int, dict[int, dict[int, _UnassignedCall]]]:
    counts: dict[tuple[int, int], int] = defaultdict(int)
    result: dict[int, dict[int, dict[int, _UnassignedCall]]] = defaultdict(lambda: defaultdict(dict))
    for call in calls:
        if call.iteration is not None:
            position = counts[call.rank, call.iteration]
            counts[call.rank, call.iteration] += 1
            result[position][call.iteration][call.rank] = call
    return result


def _divisions(groups: Sequence[_ProcessGroup]) -> list[list[_ProcessGroup]]:
    """Divisions of the ranks into groups of one description and size, each rank in one group of a division.

    Groups without a description (`torch.distributed.new_group`) may belong to several divisions; those of one axis of a
    mesh have the same distance between their ranks.
    """
    kinds: dict[tuple[str, int], list[_ProcessGroup]] = defaultdict(list)
    for group in groups:
        kinds[group.description, len(group.ranks)].append(group)
    found: list[list[_ProcessGroup]] = []
    for key in sorted(kinds):
        of_kind: list[list[_ProcessGroup]] = []
        for group in sorted(kinds[key], key=_distances):
            apart = (d for d in of_kind if not any(set(group.ranks) & set(other.ranks) for other in d))
            division = next(apart, None)
            if division is None:
                of_kind.append([group])
            else:
                division.append(group)
        found += of_kind
    return found


def _distances(group: _ProcessGroup) -> tuple[Ranks, Ranks, str]:
    return tuple(b - a for a, b in pairwise(group.ranks)), group.ranks, group.name


def _violations(by_iteration: dict[int, dict[int, _UnassignedCall]], division: Sequence[_ProcessGroup]) -> int:
    return sum(
        max(call.arrival_ns for call in calls) > min(call.end_ns for call in calls) + thresholds.GROUP_TOLERANCE_NS
        for calls in _members(by_iteration, division)
    )


def _end_spread_ns(by_iteration: dict[int, dict[int, _UnassignedCall]], division: Sequence[_ProcessGroup]) -> int:
    return sum(
        max(call.end_ns for call in calls) - min(call.end_ns for call in calls)
        for calls in _members(by_iteration, division)
    )


def _members(
    by_iteration: dict[int, dict[int, _UnassignedCall]], division: Sequence[_ProcessGroup]
) -> Iterator[list[_UnassignedCall]]:
    for by_rank in by_iteration.values():
        for group in division:
            calls = [by_rank[rank] for rank in group.ranks if rank in by_rank]
            if calls:
                yield calls


def _unknown_group(count: int) -> Issue:
    detail = "collective calls name no process group, and the times fit none of those listed; they are not matched"
    return Issue("communicator_unknown", "warning", count, None, detail)


def _unlinked(count: int) -> Issue:
    detail = (
        "communication kernels that no recorded call launched (most were launched before the window) are not matched"
    )
    return Issue("collective_unlinked", "info", count, None, detail)
