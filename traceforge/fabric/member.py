"""Which ranks take part in which NCCL communicator. Fills fabric.member.

Idea: a pointer identifies a communicator within its process only; across processes it is the id that NCCL prints since
2.18, the parent, color and order of a split, or else size, order and location of the members, or the ranks that one
lacks. The rank in the job is what the launcher states, or the rank in the communicator that spans all processes. Where
no log of a run states the size of a communicator, as all begin late, each process is a member by its connections alone.
Not handled: inferred communicators whose members are initialised in different orders; their ranks stay `alone`.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import polars as pl

from traceforge.fabric.grouping import MemberLocation, split_into_communicators
from traceforge.store.database import Store

_HANDLES = """
SELECT p.run_id, c.source_id, c.handle_id, p.process, p.host, p.stated_rank, c.comm_pointer, c.comm_hash, c.rank,
  c.rank_count, c.device, c.pci_address, c.parent_pointer, c.split_color, r.line
FROM raw.nccl_communicator AS c
JOIN fabric.process AS p USING (source_id, process_id)
JOIN raw.nccl_record AS r ON r.source_id = c.source_id AND r.record_id = c.handle_id
WHERE c.rank_count IS NOT NULL
ORDER BY p.run_id, c.source_id, c.handle_id
"""

# Where each process connects as one rank, no two as the same, and each connection goes one way, it is one communicator.
_IMPLIED = """
WITH sized AS (
  SELECT s.run_id
  FROM raw.nccl_communicator AS c
  JOIN meta.source AS s USING (source_id)
  WHERE c.rank_count IS NOT NULL
),
connected AS (
  SELECT p.run_id, p.process, p.host, p.stated_rank, r.line, l.*,
    CASE WHEN l.direction = 'receive' THEN l.target_rank ELSE l.source_rank END AS rank,
    (l.channel, l.connection_index, l.source_rank, l.target_rank, COALESCE(l.direction, 'send')) AS place
  FROM raw.nccl_link AS l
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = l.source_id AND p.process_id = r.process_id
  WHERE l.source_rank IS NOT NULL AND l.target_rank IS NOT NULL
),
plain AS (
  SELECT run_id
  FROM connected
  WHERE run_id NOT IN (SELECT z.run_id FROM sized AS z)
  GROUP BY run_id
  HAVING COUNT(DISTINCT (process, source_id, handle_id)) = COUNT(DISTINCT rank)
    AND COUNT(DISTINCT (process, rank)) = COUNT(DISTINCT process)
    AND COUNT(DISTINCT place) = COUNT(DISTINCT (place, transport, network, nic))
)
SELECT run_id, source_id, COALESCE(MIN(handle_id), MIN(record_id)) AS handle_id, process, MIN(host), MIN(stated_rank),
  NULL AS comm_pointer, NULL AS comm_hash, MIN(rank), NULL AS rank_count, NULL AS device, NULL AS pci_address,
  NULL AS parent_pointer, NULL AS split_color, MIN(line)
FROM connected
JOIN plain USING (run_id)
GROUP BY run_id, source_id, process
ORDER BY run_id, source_id, handle_id
"""

_COLUMNS = (
    "run_id", "communicator_id", "rank", "global_rank", "global_rank_origin", "identity", "source_id", "handle_id",
    "process", "host", "device", "pci_address", "line",
)  # fmt: skip

_ROWS_AT_ONCE = 32_768

Slot = tuple[int, int | None]
"""A GPU of the job: process and CUDA device."""


@dataclass(slots=True)
class CommunicatorHandle:
    """One rank's side of a communicator, as in raw.nccl_communicator, with its process.

    Attributes:
        key: equal for all members of one communicator; determined step by step.
        identity: how it was determined, as in fabric.member.
        rank_count: None where connections alone imply it.
    """

    run_id: int
    source_id: int
    handle_id: int
    process: int
    host: str
    stated_rank: int | None
    comm_pointer: int | None
    comm_hash: str | None
    rank: int | None
    rank_count: int | None
    device: int | None
    pci_address: str | None
    parent_pointer: int | None
    split_color: int | None
    line: int
    key: Hashable = None
    identity: str = "alone"

    @property
    def slot(self) -> Slot:
        """The GPU it runs on."""
        return self.process, self.device


@dataclass(slots=True)
class GlobalRanks:
    """Rank in the job by GPU, and how it is known."""

    origin: str
    by_slot: Mapping[Slot, int]


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """One row per member of a communicator, over all runs, some at a time."""
    handles: dict[int, list[CommunicatorHandle]] = defaultdict(list)
    for row in (*store.query(_HANDLES).iter_rows(), *store.query(_IMPLIED).iter_rows()):
        handles[row[0]].append(CommunicatorHandle(*row))
    found = (row for run_handles in handles.values() for row in _members(run_handles))
    while some := list(islice(found, _ROWS_AT_ONCE)):
        yield pl.DataFrame(some, schema=_COLUMNS, orient="row", infer_schema_length=None)


def _members(handles: list[CommunicatorHandle]) -> Iterator[tuple[object, ...]]:
    _identify(handles)
    ranks = global_ranks(handles)
    first: dict[Hashable, int] = {}
    for handle in sorted(handles, key=lambda own: (-(own.rank_count or 0), own.source_id, own.handle_id)):
        first.setdefault(handle.key, len(first))
    for handle in sorted(handles, key=lambda own: (first[own.key], own.rank is None, own.rank or 0)):
        global_rank = ranks.by_slot.get(handle.slot)
        yield (
            handle.run_id, first[handle.key], handle.rank, global_rank,
            "unknown" if global_rank is None else ranks.origin, handle.identity, handle.source_id, handle.handle_id,
            handle.process, handle.host, handle.device, handle.pci_address, handle.line,
        )  # fmt: skip


def _identify(handles: list[CommunicatorHandle]) -> None:
    """Give each handle the key of its communicator."""
    for handle in handles:
        if handle.rank_count is None:
            handle.key, handle.identity = "implied", "implied"
    _by_hash(handle for handle in handles if handle.comm_hash is not None)
    _by_split(handles)
    _by_vacancy(handles)
    for size in sorted({handle.rank_count for handle in handles if handle.rank_count is not None}):
        open_ = [handle for handle in handles if handle.key is None and handle.rank_count == size]
        _by_location(size, open_)


def _by_hash(handles: Iterable[CommunicatorHandle]) -> None:
    """A rank that occurs again under one hash belongs to a later communicator of that hash."""
    seen: Counter[Hashable] = Counter()
    for handle in handles:
        name = ("hash", handle.comm_hash, handle.rank_count)
        own = (name, handle.process, handle.device, handle.rank)
        handle.key, handle.identity = (*name, seen[own]), "hash"
        seen[own] += 1


def _by_split(handles: list[CommunicatorHandle]) -> None:
    """Children of one parent with one color, made in the same order, where their hash is not printed (2.23)."""
    owners: dict[tuple[int, int | None], CommunicatorHandle] = {}
    seen: Counter[Hashable] = Counter()
    for handle in handles:
        parent = owners.get((handle.process, handle.parent_pointer)) if handle.parent_pointer else None
        if handle.key is None and parent is not None and parent.key is not None and handle.split_color is not None:
            name = ("split", parent.key, handle.split_color, handle.rank_count)
            own = (name, handle.process, handle.device)
            handle.key, handle.identity = (*name, seen[own]), "split"
            seen[own] += 1
        owners[handle.process, handle.comm_pointer] = handle


def _by_vacancy(handles: list[CommunicatorHandle]) -> None:
    """Ranks whose line of init was torn before the hash, where the only communicator of that size lacks just these."""
    known: dict[int | None, dict[Hashable, set[int | None]]] = defaultdict(lambda: defaultdict(set))
    nameless: dict[int | None, list[CommunicatorHandle]] = defaultdict(list)
    for handle in handles:
        if handle.key is not None:
            known[handle.rank_count][handle.key].add(handle.rank)
        elif handle.parent_pointer is None:
            nameless[handle.rank_count].append(handle)
    for size, own in nameless.items():
        ranks = {handle.rank for handle in own} - {None}
        if len(known[size]) == 1 and len(ranks) == len(own):
            ((key, taken),) = known[size].items()
            if ranks.isdisjoint(taken):
                for handle in own:
                    handle.key, handle.identity = key, "inferred"


def _by_location(size: int, handles: list[CommunicatorHandle]) -> None:
    """Communicators of one size without an id: the k-th ones of all GPUs are initialised together."""
    turns: Counter[Slot] = Counter()
    by_turn: dict[int, list[CommunicatorHandle]] = defaultdict(list)
    for handle in handles:
        by_turn[turns[handle.slot]].append(handle)
        turns[handle.slot] += 1
    for turn, own in by_turn.items():
        locations = [MemberLocation(one.rank, one.host, one.pci_address or str(one.device), one.process) for one in own]
        for group, found in enumerate(split_into_communicators(locations, size)):
            for number in found.members:
                own[number].key = ("location", size, turn, group)
                own[number].identity = "inferred" if found.is_complete else "alone"


def global_ranks(handles: list[CommunicatorHandle]) -> GlobalRanks:
    """Ranks in the job of all GPUs of a run, by the best source there is."""
    stated = {handle.slot: handle.stated_rank for handle in handles if handle.stated_rank is not None}
    slots = sorted({handle.slot for handle in handles}, key=lambda slot: (slot[0], slot[1] or 0))
    has_one_device = len({process for process, _ in slots}) == len(slots)
    if len(stated) == len(slots) == len(set(stated.values())) and has_one_device:
        return GlobalRanks("launcher", stated)
    largest = max((handle.rank_count or 0 for handle in handles), default=0)
    spanning = {(handle.slot, handle.rank) for handle in handles if handle.rank_count == largest}
    by_slot = {slot: rank for slot, rank in spanning if rank is not None}
    if len(by_slot) == len(spanning) == len(set(by_slot.values())):
        return GlobalRanks("communicator", by_slot)
    seats = {handle.slot: (handle.host, handle.pci_address or "", handle.slot) for handle in handles}
    in_order = sorted(seats, key=lambda slot: (seats[slot][0], seats[slot][1], slot[0], slot[1] or 0))
    return GlobalRanks("order", {slot: number for number, slot in enumerate(in_order)})
