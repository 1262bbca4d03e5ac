"""What the dumps of a run say of its calls. In: calls and progress of each rank. Out: where each rank stands.

Idea: a rank stands at its first call that has not ended, or at one that its dump no longer holds.
Not handled: streams that run side by side (a rank stands at one call).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from traceforge.align.collective_names import collective_kinds, operation_of


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call in a dump that had not ended, or that others wait in.

    Attributes:
        place: position in the dump: calls of one rank in the order in which it made them.
        sequence: number among the group's collectives; None for a send or receive.
        batch: place of the batch that it is a part of; its own for one that is none.
        peer: rank at the other end of a send or receive; None for a collective, or where unknown.
        has_started: whether its device has begun it; None where starts are not recorded.
        elements: elements sent in all; None where not recorded.
    """

    rank: int
    group: int
    place: int
    sequence: int | None
    op: str
    created_ns: int | None = None
    batch: int | None = None
    peer: int | None = None
    has_started: bool | None = None
    elements: int | None = None
    in_shapes: str | None = None
    in_dtypes: str | None = None
    stack: str | None = None

    @property
    def is_message(self) -> bool:
        """Whether it is a send or receive."""
        return self.sequence is None

    def answers(self, other: "RecordedCall") -> bool:
        """Whether one of two messages between two ranks is a send and the other a receive."""
        are_ends = self.peer == other.rank and other.peer == self.rank
        return are_ends and self.op.startswith("send ") != other.op.startswith("send ")


@dataclass(frozen=True, slots=True)
class Progress:
    """Last calls of a rank in a group; None where its dump does not say."""

    enqueued: int | None
    completed: int | None


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a rank stands: the call that it waits in first. `call` is None where its dump has lost it."""

    rank: int
    group: int
    sequence: int | None
    call: RecordedCall | None


@dataclass(frozen=True, slots=True)
class Hang:
    """One row of fabric.hang, without its words; see there for `kind`.

    Attributes:
        others: calls that the words quote: the one that does not match, the other ranks', or the one that others miss.
        absent: ranks that never made the call that others miss.
        discord: a call that ended on its rank, and a rank that had not made it: the dumps are not of one moment.
    """

    kind: str
    ranks: tuple[int, ...]
    waiting: tuple[int, ...] = ()
    group: int | None = None
    sequence: int | None = None
    call: RecordedCall | None = None
    others: tuple[RecordedCall, ...] = ()
    absent: tuple[int, ...] = ()
    discord: tuple[RecordedCall, int] | None = None


@dataclass(frozen=True)
class Dumps:
    """The dumps of one run.

    Attributes:
        members: of each group; None where no dump states them.
        progress: by (group, rank).
        calls: that had not ended, in each rank's order.
        ranks: that have a dump.
        last: call of each rank that its dump holds, ended or not.
        ended: the last collectives that ended, of each rank, group and kind.
        oldest: number of the first collective that a dump holds, by (group, rank).
        recorded: ranks whose dump holds a call.
        unplaced: calls that had not ended, of which no group or number is known.
    """

    members: Mapping[int, tuple[int, ...] | None]
    progress: Mapping[tuple[int, int], Progress]
    calls: Mapping[int, Sequence[RecordedCall]]
    ranks: frozenset[int]
    last: Mapping[int, RecordedCall]
    ended: Sequence[RecordedCall]
    oldest: Mapping[tuple[int, int], int]
    recorded: frozenset[int]
    unplaced: int

    def of(self, group: int) -> tuple[int, ...]:
        """Members of a group; where no dump states them, those that have progress in it."""
        known = self.members[group]
        return known if known is not None else tuple(sorted(rank for own, rank in self.progress if own == group))

    def is_one_group(self, group: int) -> bool:
        """Whether its calls are of one group: a dump states its members, or all ranks call in it."""
        return self.members[group] is not None or self.ranks <= frozenset(self.of(group))

    @cached_property
    def stated(self) -> frozenset[int]:
        """Ranks of the job that a dump names; none where no dump states members."""
        return frozenset(rank for ranks in self.members.values() for rank in ranks or ())

    @cached_property
    def without_dump(self) -> tuple[int, ...]:
        """Ranks of the job without a dump; where no dump states ranks, those below the last that has one."""
        known = self.stated or frozenset(range(max(self.ranks, default=0)))
        return tuple(sorted(known - self.ranks))

    @cached_property
    def silent(self) -> tuple[int, ...]:
        """Ranks whose dump holds no call and no counter."""
        counted = {rank for (_, rank), own in self.progress.items() if own.enqueued is not None}
        return tuple(sorted(self.ranks - counted - self.recorded))

    @cached_property
    def stands(self) -> dict[int, Stand]:
        """Where each rank stands; ranks that wait in no call are left out."""
        return {rank: stand for rank in sorted(self.ranks) if (stand := self._stand(rank)) is not None}

    def _stand(self, rank: int) -> Stand | None:
        calls = self.calls.get(rank, ())
        recorded = {call.group for call in calls}
        for group in sorted(self.members):
            own = self.progress.get((group, rank))
            completed = self.completed(group, rank)
            if own is None or own.enqueued is None or completed is None or completed >= own.enqueued:
                continue
            first = max(completed, 0) + 1  # PyTorch counts from 1, and states -1 or 0 where none has ended.
            if group not in recorded or first < self.oldest.get((group, rank), first):
                # The dump does not hold the call, or no longer: then it is older than those it holds.
                return Stand(rank, group, first, None)
        return Stand(rank, calls[0].group, calls[0].sequence, calls[0]) if calls else None

    def messages(self, rank: int) -> Sequence[RecordedCall]:
        """The message that a rank stands at, and those of its batch."""
        first, *others = self.calls[rank]
        return [first, *(call for call in others if call.batch == first.batch)]

    def peers(self, rank: int) -> frozenset[int]:
        """Other ends of the message that a rank stands at, and of its batch; empty where unknown."""
        return frozenset(call.peer for call in self.messages(rank) if call.peer is not None) - {rank}

    @cached_property
    def discord(self) -> tuple[RecordedCall, int] | None:
        """A call that ended although it cannot without a rank that had not made it when its dump was written."""
        for call in self.ended:
            own = self.progress.get((call.group, call.rank))
            last = self._least_made.get(call.group)
            is_counted = own is not None and (own.enqueued or 0) >= (call.sequence or 0)
            if last and is_counted and is_synchronising(call) and last[0] < (call.sequence or 0):
                return call, last[1]
        return None

    @cached_property
    def _least_made(self) -> dict[int, tuple[int, int]]:
        """By group whose members are stated: the lowest number of calls that a member made, and which."""
        found: dict[int, tuple[int, int]] = {}
        for (group, rank), own in self.progress.items():
            if own.enqueued is not None and rank in (self.members[group] or ()):
                found[group] = min(found.get(group, (own.enqueued, rank)), (own.enqueued, rank))
        return found

    def completed(self, group: int, rank: int) -> int | None:
        """Last call that ended; where only calls made are counted, all that every member made may have ended."""
        own = self.progress.get((group, rank))
        if own is None or own.completed is not None or own.enqueued is None:
            return own.completed if own else None
        made = [p.enqueued for member in self.of(group) if (p := self.progress.get((group, member)))]
        return min(number for number in made if number is not None)


def is_synchronising(call: RecordedCall | None) -> bool:
    """Whether a call ends on no member before all have made it."""
    operation = operation_of(call.op) if call else None
    return any(kind.name == operation and kind.synchronising for kind in collective_kinds())
