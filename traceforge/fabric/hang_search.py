"""Who holds up a hung job. In: what each rank's dump says. Out: the blocked calls, and who is waited for in each.

Idea: a rank stands at its first call that has not ended. It waits for the members that have not made that call, or
whose device is still at an earlier one; whoever is waited for and waits for nobody holds up the others. A rank whose
device does not end what others ended waits for nobody either.
Sends and receives are paired by the ranks that they name and by what each rank stands at.
Not handled: streams that run side by side (a rank stands at one call).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from traceforge.align.collective_names import operation_of
from traceforge.fabric.hang_state import Dumps, Hang, RecordedCall, Stand, is_synchronising

# Collectives in which every rank sends as much as every other; names with `coalesced` or `v` may differ.
_EQUAL_SIZES = frozenset(
    {"all_reduce", "allreduce", "broadcast", "_all_gather_base", "_allgather_base", "all_gather_into_tensor"}
    | {"_reduce_scatter_base", "reduce_scatter_tensor"}
)


def search(dumps: Dumps) -> list[Hang]:
    """What the dumps say of a hang: two at most, what explains the most first; a `none` or `unknown` stands alone."""
    if dumps.discord:
        return [Hang("unknown", (), tuple(dumps.stands), discord=dumps.discord)]
    if not dumps.stands:
        return [_unstuck(dumps)]
    waits = {rank: _waited_for(dumps, stand) for rank, stand in dumps.stands.items()}
    found = [*_mismatch(dumps), *_stuck(dumps, waits), *_absent(dumps, waits)]
    if not found:
        found = [*_unstarted(dumps, waits), *_order(dumps, waits)] or [*_unequal(dumps)] or [*_transfer(dumps, waits)]
    if not found:
        first = _earliest(dumps, list(dumps.stands.values()))
        found = [Hang("unknown", (), tuple(dumps.stands), first.group, first.sequence, first.call)]
    return found[:2]


def _unstuck(dumps: Dumps) -> Hang:
    has_calls = any(own.enqueued is not None for own in dumps.progress.values()) or any(dumps.calls.values())
    return Hang("none" if has_calls and not dumps.without_dump and not dumps.unplaced else "unknown", ())


@dataclass(frozen=True, slots=True)
class _Waits:
    """What a rank waits for.

    Attributes:
        absent: members that have not made the call.
        behind: members whose device, or who, stands at another call before it, or has not started this one.
        is_stuck: others finished the call, so that it is this rank's device that does not.
        unseen: members without a dump.
    """

    absent: frozenset[int] = frozenset()
    behind: frozenset[int] = frozenset()
    is_stuck: bool = False
    unseen: frozenset[int] = frozenset()

    @property
    def ranks(self) -> frozenset[int]:
        return self.absent | self.behind


def _waited_for(dumps: Dumps, stand: Stand) -> _Waits:
    if stand.sequence is None:
        return _waited_for_message(dumps, stand)
    absent, behind, unseen = set(), set(), set()
    is_ended = False
    for member in set(dumps.of(stand.group)) - {stand.rank}:
        own = dumps.progress.get((stand.group, member))
        completed, other = dumps.completed(stand.group, member), dumps.stands.get(member)
        if own is None or own.enqueued is None:
            unseen.add(member)
        elif own.enqueued < stand.sequence:
            absent.add(member)
        elif completed is not None and completed >= stand.sequence:
            is_ended = True
        elif other is not None and (not _same(other, stand) or _has_begun_first(stand, other)):
            behind.add(member)
    # In a broadcast the root ends although others are missing; an all-reduce ends nowhere before all are there.
    if is_ended and not absent and (not behind or is_synchronising(stand.call)):
        return _Waits(is_stuck=True)
    return _Waits(frozenset(absent), frozenset(behind), False, frozenset(unseen))


def _has_begun_first(stand: Stand, other: Stand) -> bool:
    """Whether one device has begun a call that the other's, by its own record, has not."""
    calls = (stand.call, other.call)
    return [call.has_started for call in calls if call] == [True, False]


def _waited_for_message(dumps: Dumps, stand: Stand) -> _Waits:
    """Of a batch, every other end is waited for."""
    absent, behind, unseen = set(), set(), set()
    for peer in dumps.peers(stand.rank):
        other = dumps.stands.get(peer)
        if peer not in dumps.ranks:
            unseen.add(peer)
        elif other is None:
            absent.add(peer)
        elif other.call is None or not other.call.is_message or not _answers(dumps, stand.rank, peer):
            behind.add(peer)
    return _Waits(frozenset(absent), frozenset(behind), False, frozenset(unseen))


def _answers(dumps: Dumps, rank: int, peer: int) -> bool:
    """Whether a message that a rank stands at is a send to what its peer receives there, or the other way round."""
    return any(own.answers(other) for own in dumps.messages(rank) for other in dumps.messages(peer))


def _stuck(dumps: Dumps, waits: Mapping[int, _Waits]) -> Iterator[Hang]:
    """Ranks whose device does not end what others ended."""
    ranks = [rank for rank, own in waits.items() if own.is_stuck]
    if not ranks:
        return
    first = _earliest(dumps, [dumps.stands[rank] for rank in ranks])
    missed = [stand for rank, stand in dumps.stands.items() if waits[rank].absent & set(ranks)]
    call = _earliest(dumps, missed).call if missed else None
    absent = tuple(sorted(waits[call.rank].absent & set(ranks))) if call else ()
    others = (call,) if call else ()
    yield Hang("stuck", tuple(ranks), _behind(waits, ranks), first.group, first.sequence, first.call, others, absent)


def _absent(dumps: Dumps, waits: Mapping[int, _Waits]) -> Iterator[Hang]:
    """Ranks that others wait for and that wait in no call themselves."""
    awaited = {rank for own in waits.values() for rank in own.absent} - waits.keys()
    stands = [dumps.stands[rank] for rank, own in waits.items() if own.absent & awaited]
    if stands:
        first = _earliest(dumps, stands)
        in_it = [dumps.stands[rank] for rank in waits if _same(dumps.stands[rank], first)]
        call = next((stand.call for stand in in_it if stand.call), None)
        absent = tuple(sorted(waits[first.rank].absent & awaited))
        ranks, waiting = tuple(sorted(awaited)), _behind(waits, awaited)
        if absent == ranks and first.sequence is not None and len(waiting) == len(in_it) < len(absent):
            # Few against many: whether they call too much or the others too little, the dumps do not tell.
            yield Hang("ahead", waiting, waiting, first.group, first.sequence, call, (), absent)
        else:
            yield Hang("absent", ranks, waiting, first.group, first.sequence, call, (), absent)


def _unstarted(dumps: Dumps, waits: Mapping[int, _Waits]) -> Iterator[Hang]:
    """Ranks whose device has not begun the call that the others' have."""
    awaited = {rank for own in waits.values() for rank in own.behind if not waits[rank].ranks}
    ranks = sorted(rank for rank in awaited if (call := dumps.stands[rank].call) and call.has_started is False)
    if ranks:
        first = _earliest(dumps, [dumps.stands[rank] for rank in ranks])
        yield Hang("unstarted", tuple(ranks), _behind(waits, ranks), first.group, first.sequence, first.call)


def _order(dumps: Dumps, waits: Mapping[int, _Waits]) -> Iterator[Hang]:
    """Ranks that wait for each other in a ring, each in a call that the next has not come to: a pair, or the first."""
    ring = _pair(waits) or next((ring for start in waits if (ring := _ring(waits, start))), [])
    if ring:
        stand = dumps.stands[ring[0]]
        others = tuple(call for rank in ring[1:] if (call := dumps.stands[rank].call))
        waiting = tuple(sorted(waits.keys() - set(ring)))
        yield Hang("order", tuple(sorted(ring)), waiting, stand.group, stand.sequence, stand.call, others)


def _pair(waits: Mapping[int, _Waits]) -> list[int]:
    for rank, own in waits.items():
        for other in sorted(own.ranks & waits.keys()):
            if rank in waits[other].ranks:
                return [rank, other]
    return []


def _ring(waits: Mapping[int, _Waits], start: int) -> list[int]:
    """Ranks on the shortest way along who waits for whom, from one back to it; empty where there is none."""
    ways = [[start]]
    seen: set[int] = set()
    while ways:
        way = ways.pop(0)
        for rank in sorted(waits[way[-1]].ranks & waits.keys()):
            if rank == start:
                return way
            if rank not in seen:
                seen.add(rank)
                ways.append([*way, rank])
    return []


def _transfer(dumps: Dumps, waits: Mapping[int, _Waits]) -> Iterator[Hang]:
    """Calls that every member is in, and none gets out of; unknown where somebody's dump is, or may be, missing."""
    inside = [dumps.stands[rank] for rank, own in waits.items() if not own.ranks]
    if inside and all(dumps.members[stand.group] for stand in inside) and not any(own.unseen for own in waits.values()):
        first = _earliest(dumps, inside)
        yield Hang("transfer", (), tuple(waits), first.group, first.sequence, first.call)


def _mismatch(dumps: Dumps) -> Iterator[Hang]:
    """The first call that ranks make at one place of a group's sequence and that is not the same call."""
    pairs: dict[tuple[int, int], list[RecordedCall]] = {}
    for calls in dumps.calls.values():
        for call in calls:
            if call.sequence is not None:
                pairs.setdefault((call.group, call.sequence), []).append(call)
    stated = {key: calls for key, calls in pairs.items() if dumps.is_one_group(key[0])}
    differing = {key: odd for key, calls in stated.items() if (odd := _odd(calls))}
    if not differing:
        return
    stands = [Stand(calls[0].rank, *key, calls[0]) for key, calls in pairs.items() if key in differing]
    first = _earliest(dumps, stands)
    calls = pairs[first.group, first.sequence or 0]
    odd = differing[first.group, first.sequence or 0]
    usual = next(call for call in calls if call not in odd)
    waiting = tuple(sorted(dumps.stands.keys() - {call.rank for call in odd}))
    yield Hang("mismatch", tuple(c.rank for c in odd), waiting, first.group, first.sequence, usual, tuple(odd))


def _unequal(dumps: Dumps) -> Iterator[Hang]:
    """A send and the receive at its other end that are not of one size or type."""
    standing = [call for rank, stand in dumps.stands.items() if stand.sequence is None for call in dumps.messages(rank)]
    for one in standing:
        for other in standing:
            if one.rank < other.rank and one.answers(other) and not _is_as_large(one, other):
                ranks = (one.rank, other.rank)
                waiting = tuple(sorted(dumps.stands.keys() - set(ranks)))
                yield Hang("mismatch", ranks, waiting, one.group, None, one, (other,))
                return


def _is_as_large(one: RecordedCall, other: RecordedCall) -> bool:
    sizes, types = (one.elements, other.elements), (one.in_dtypes, other.in_dtypes)
    return all(None in pair or pair[0] == pair[1] for pair in (sizes, types))


def _odd(calls: Sequence[RecordedCall]) -> list[RecordedCall]:
    """The calls unlike most of their place (unlike the lowest rank's, where there are as many of each)."""
    kinds = [_kind(call) for call in calls]
    usual = max(kinds, key=kinds.count)
    return [call for call, kind in zip(calls, kinds, strict=True) if not _agrees(kind, usual)]


def _kind(call: RecordedCall) -> tuple[str, str | None, int | None]:
    equal = call.op in _EQUAL_SIZES
    return operation_of(call.op) or call.op, call.in_dtypes if equal else None, call.elements if equal else None


def _agrees(kind: tuple[str, str | None, int | None], usual: tuple[str, str | None, int | None]) -> bool:
    return all(one == other or one is None or other is None for one, other in zip(kind, usual, strict=True))


def _behind(waits: Mapping[int, _Waits], roots: Sequence[int] | set[int]) -> tuple[int, ...]:
    """Ranks that wait for these, or for ranks that wait for these."""
    reached = set(roots)
    while more := {rank for rank, own in waits.items() if own.ranks & reached} - reached:
        reached |= more
    return tuple(sorted(reached - set(roots)))


def _same(one: Stand, other: Stand) -> bool:
    """Whether they stand at one collective; messages of several ranks have no number in common."""
    if one.sequence is None:
        return one == other
    return (one.group, one.sequence) == (other.group, other.sequence)


def _earliest(dumps: Dumps, stands: Sequence[Stand]) -> Stand:
    """The call that no other comes before on a rank that made both; of several, the one made first by the clocks."""
    order: dict[tuple[int, int | None], dict[int, int]] = {}
    wanted = {(stand.group, stand.sequence) for stand in stands}
    for rank, calls in dumps.calls.items():
        for call in calls:
            if (call.group, call.sequence) in wanted:
                order.setdefault((call.group, call.sequence), {}).setdefault(rank, call.place)

    def is_preceded(key: tuple[int, int | None]) -> bool:
        own = order.get(key, {})
        return any(
            places[rank] < place
            for other, places in order.items()
            if other != key
            for rank, place in own.items()
            if rank in places
        )

    def precedence(stand: Stand) -> tuple[bool, bool, bool, int, int]:
        # A call that its dump has lost is older than those that it holds. The number of a
        # collective says who is absent; of a send or receive only its other end is known.
        created_ns = stand.call.created_ns if stand.call else None
        key = (stand.group, stand.sequence)
        return is_preceded(key), stand.sequence is None, stand.call is not None, created_ns or 0, stand.rank

    return min(stands, key=precedence)
