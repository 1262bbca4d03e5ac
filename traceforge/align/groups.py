"""Which group of ranks each collective call joins. In: align.call, ranks and groups as listed. Out: `CallGroups`.

What the trace states with the call decides; else, when the job lists one group, that one; else the listed groups are
tried by the times of the calls (`group_inference`). Without any list the group is the whole job: all ranks that it says
it has, and those below the highest one here, recorded or not. It is not for calls that state another number of members,
as PyTorch 2.0 to 2.3 do, nor for messages where the places that they state would have a rank send to itself. Calls of
one name and one list are looked up once.
Where the job lists a pipeline, a kernel of sends and receives that no host call describes tells no group: replicas in
step end their messages together, as members of one group would.
Groups of one rank are only those that calls name.
A group that files name without its members (NCCL's communicators) is that of the ranks whose files name it, if these
are as many as it has, or if nothing says how many that is.
Not handled: other groups that no file lists; such a group with ranks that were not recorded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from traceforge.align.group_inference import ProcessGroup, Ranks, UnassignedCall, infer, pipeline_of
from traceforge.align.rank_list import MOST_RANKS
from traceforge.store.database import Store

_CALLS = """
SELECT run_id, rank, call_id, COALESCE(process_group_name, '') AS name, COALESCE(rank_list_id, -1) AS rank_list_id,
  group_size,
  EXISTS (
    SELECT 1 FROM align.endpoint AS e WHERE e.source_id = c.source_id AND e.carrier_event_id = c.event_id
  ) AS is_message,
  -- Whose other end would be its own rank if its group were the whole job.
  EXISTS (
    SELECT 1 FROM align.endpoint AS e
    WHERE e.source_id = c.source_id AND e.carrier_event_id = c.event_id AND e.peer IS NULL AND e.peer_place = c.rank
  ) AS would_meet_itself,
  c.op = 'send_recv' AND c.on_device AS may_be_messages
FROM align.call AS c
WHERE is_linked AND is_intact
ORDER BY run_id, rank, call_id
"""

_TIMES = """
SELECT c.rank, c.call_id, c.raw_arrival_ns, c.raw_end_ns, s.iteration, r.host, c.on_device
FROM align.call AS c
JOIN align.rank AS r USING (run_id, rank)
ASOF LEFT JOIN align.step AS s ON s.run_id = c.run_id AND s.rank = c.rank AND c.raw_issue_ns >= s.raw_start_ns
WHERE c.run_id = ? AND c.is_linked AND c.is_intact
ORDER BY c.rank, c.call_id
"""

_LISTS = "SELECT rank_list_id, LIST_SORT(ranks) FROM align.rank_list WHERE ranks IS NOT NULL"

# Each of R files names groups of up to R ranks: their lists are looked up once a group.
_LISTED = """
WITH listed AS (
  SELECT DISTINCT r.run_id, COALESCE(g.process_group_name, '') AS name, COALESCE(g.description, '') AS description,
    g.ranks AS written, CASE WHEN CONTAINS(g.ranks, '...') THEN g.size END AS group_size
  FROM raw.process_group AS g
  JOIN align.rank AS r USING (source_id)
)
SELECT DISTINCT g.run_id, g.name, g.description, LIST_SORT(l.ranks) AS ranks
FROM listed AS g
JOIN align.rank_list AS l
  ON l.written = g.written AND l.first_rank IS NULL AND l.stride IS NULL
  AND l.group_size IS NOT DISTINCT FROM g.group_size
WHERE l.ranks IS NOT NULL
"""

_NAMED = """
SELECT r.run_id, g.process_group_name AS name, COALESCE(MIN(g.description), '') AS description,
  LIST_SORT(LIST(DISTINCT r.rank)) AS ranks
FROM raw.process_group AS g
JOIN align.rank AS r USING (source_id)
WHERE g.process_group_name IS NOT NULL AND (
  g.size IS NOT NULL OR EXISTS (
    SELECT 1 FROM align.call AS c
    WHERE c.run_id = r.run_id AND c.rank = r.rank AND c.process_group_name = g.process_group_name
  )
)
GROUP BY r.run_id, g.process_group_name
HAVING COUNT(NULLIF(g.ranks, '[]')) = 0 AND COUNT(DISTINCT r.rank) > 1
  AND COUNT(DISTINCT r.rank) = COALESCE(MAX(g.size), COUNT(DISTINCT r.rank))
"""

# As many ranks as the largest group at least, where nothing says how many there are.
_WORLD_SIZES = """
SELECT r.run_id, COALESCE(r.world_size, MAX(c.group_size)) AS world_size
FROM meta.run AS r
LEFT JOIN align.call AS c USING (run_id)
GROUP BY r.run_id, r.world_size
"""

_MEMBERSHIP: dict[str, type[pl.DataType]] = {
    "run_id": pl.Int32,
    "rank": pl.Int32,
    "call_id": pl.Int64,
    "communicator_id": pl.Int64,
    "origin": pl.String,
}
_COMMUNICATOR: dict[str, pl.DataType | type[pl.DataType]] = {
    "run_id": pl.Int32,
    "communicator_id": pl.Int64,
    "name": pl.String,
    "ranks": pl.List(pl.Int32),
    "origin": pl.String,
}
_CALL = ["rank", "call_id"]
_WRITTEN = ["name", "rank_list_id"]


@dataclass(frozen=True, slots=True)
class CallGroups:
    """Groups of ranks, and which calls join them.

    Attributes:
        membership: columns of align.membership.
        communicators: columns of align.communicator without those that follow from others.
        unknown: by run, number of calls whose group is unknown, where there are any.
    """

    membership: pl.DataFrame
    communicators: pl.DataFrame
    unknown: Mapping[int, int]


@dataclass(slots=True)
class _Groups:
    """Groups of a run, numbered as they are met."""

    numbers: dict[tuple[str, Ranks], int]

    def number(self, name: str, ranks: Ranks) -> int:
        return self.numbers.setdefault((name, ranks), len(self.numbers))


def assign_groups(store: Store) -> CallGroups:
    """The group of each call of every run, as far as it is known."""
    lists = {number: tuple(ranks) for number, ranks in store.rows(_LISTS)}
    listed = pl.concat([store.query(_LISTED), store.query(_NAMED)], how="vertical_relaxed")
    world_sizes = dict(store.rows(_WORLD_SIZES))
    membership, communicators, unknown = [pl.DataFrame(schema=_MEMBERSHIP)], [pl.DataFrame(schema=_COMMUNICATOR)], {}
    for (run_key,), calls in store.query(_CALLS).group_by("run_id", maintain_order=True):
        run_id = int(str(run_key))
        every = _process_groups(listed.filter(pl.col("run_id") == run_id))
        processes = [group for group in every if len(group.ranks) > 1]
        groups = _Groups({})
        assigned = calls.join(_stated(calls, lists, every, groups), on=_WRITTEN, how="left", maintain_order="left")
        unstated = assigned.filter(pl.col("group").is_null())
        if pipeline_of(processes):
            unstated = unstated.filter(pl.col("is_message") | ~pl.col("may_be_messages"))
        if len({group.ranks for group in processes}) > 1:
            is_message = pl.col("is_message")
            found = pl.concat(
                [
                    _inferred(store, run_id, unstated.filter(~is_message), processes, groups),
                    _of_pipeline(unstated.filter(is_message), processes, groups),
                ]
            )
        else:
            job = _whole_job(tuple(calls["rank"].unique().sort()), world_sizes[run_id])
            found = _assumed(unstated, processes, job, groups)
        assigned = pl.concat([assigned.drop_nulls("group"), found.select(assigned.columns)]).sort(_CALL)
        if missing := calls.height - assigned.height:
            unknown[run_id] = missing
        numbered = _numbered(run_id, assigned, groups)
        communicators.append(numbered.select(list(_COMMUNICATOR)))
        own = assigned.join(numbered.select("group", "communicator_id"), on="group", maintain_order="left")
        membership.append(own.select(pl.col(name).cast(kind) for name, kind in _MEMBERSHIP.items()))
    return CallGroups(pl.concat(membership), pl.concat(communicators), unknown)


def _process_groups(frame: pl.DataFrame) -> list[ProcessGroup]:
    found = {
        ProcessGroup(name, description, tuple(ranks))
        for name, description, ranks in frame.select("name", "description", "ranks").iter_rows()
    }
    return sorted(found, key=lambda group: (group.description, group.ranks, group.name))


def _stated(
    calls: pl.DataFrame, lists: Mapping[int, Ranks], processes: Sequence[ProcessGroup], groups: _Groups
) -> pl.DataFrame:
    """By what calls state, name and list, the number of their group."""
    named = {group.name: group.ranks for group in processes if group.name}
    found = [
        (name, number, groups.number(name, ranks), "stated")
        for name, number in calls.select(_WRITTEN).unique(maintain_order=True).iter_rows()
        if (ranks := lists.get(number) or named.get(name))
    ]
    schema = {"name": pl.String, "rank_list_id": pl.Int32, "group": pl.Int64, "origin": pl.String}
    return pl.DataFrame(found, schema=schema, orient="row")


def _assumed(
    unstated: pl.DataFrame, processes: Sequence[ProcessGroup], job: tuple[Ranks, str], groups: _Groups
) -> pl.DataFrame:
    """Calls in the only listed group, or in the whole job, unless they say that it is another one."""
    name, ranks, origin = (processes[0].name, processes[0].ranks, "assumed") if processes else ("", *job)
    is_other = (pl.col("group_size") != len(ranks)).fill_null(False)
    if not processes and unstated["would_meet_itself"].any():
        is_other |= pl.col("is_message")
    fitting = unstated.filter(~is_other)
    if fitting.is_empty():
        return fitting
    return fitting.with_columns(group=pl.lit(groups.number(name, ranks), pl.Int64), origin=pl.lit(origin))


def _inferred(
    store: Store, run_id: int, unstated: pl.DataFrame, processes: Sequence[ProcessGroup], groups: _Groups
) -> pl.DataFrame:
    """Calls in the group that fits their times; those that none fits are left out."""
    timed = store.query(_TIMES, [run_id]).join(unstated.select(_CALL), on=_CALL, how="semi", maintain_order="left")
    calls = [UnassignedCall(*row) for row in timed.iter_rows()]
    found = [
        (call.rank, call.call_id, groups.number(group.name, group.ranks), "inferred")
        for call, group in infer(calls, processes)
    ]
    schema = {"rank": pl.Int32, "call_id": pl.Int64, "group": pl.Int64, "origin": pl.String}
    return unstated.drop("group", "origin").join(pl.DataFrame(found, schema=schema, orient="row"), on=_CALL)


def _of_pipeline(unstated: pl.DataFrame, processes: Sequence[ProcessGroup], groups: _Groups) -> pl.DataFrame:
    """Sends and receives in the groups of the pipeline, where the job lists them."""
    found = [
        (rank, groups.number(group.name, group.ranks), "inferred")
        for rank, group in pipeline_of(processes).items()
        if rank in unstated["rank"]
    ]
    schema = {"rank": pl.Int32, "group": pl.Int64, "origin": pl.String}
    of_rank = pl.DataFrame(found, schema=schema, orient="row")
    return unstated.drop("group", "origin").join(of_rank, on="rank", maintain_order="left")


def _whole_job(present: Ranks, world_size: int | None) -> tuple[Ranks, str]:
    """Ranks of the group of calls that name none, and how that is known."""
    stated = world_size if world_size is not None and world_size <= MOST_RANKS else None
    if stated is None and len(present) == 1:
        return present, "unknown"
    # Ranks without a file are members as well.
    size = max(stated or 0, present[-1] + 1)
    return (tuple(range(size)) if size <= MOST_RANKS else present), "assumed"


def _numbered(run_id: int, assigned: pl.DataFrame, groups: _Groups) -> pl.DataFrame:
    """The groups that calls join, numbered from the largest."""
    members = {number: key for key, number in groups.numbers.items()}
    origins = assigned.group_by("group").agg(pl.col("origin").min()).rows()
    ordered = sorted(origins, key=lambda one: (-len(members[one[0]][1]), *reversed(members[one[0]])))
    found = [
        (run_id, place, members[number][0], list(members[number][1]), origin, number)
        for place, (number, origin) in enumerate(ordered)
    ]
    return pl.DataFrame(found, schema=_COMMUNICATOR | {"group": pl.Int64}, orient="row")
