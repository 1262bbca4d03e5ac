"""Where tokens go to experts and come back. In: what each rank sends and receives in all-to-alls. Out: `Routing`.

Idea: a call that takes tokens to experts and the one that brings them back are a round trip: what each rank receives in
the first it sends in the second, and the other way round, as shares of the mean rank, in whatever type or with whatever
beside it. Of the calls of one group in an iteration the first takes tokens. With even experts, each call takes by as
much longer or shorter as the most that any rank sends or receives: the rank that had most tells the speed.
Not handled: latencies of transfers, which count as bandwidth; calls of which not all ranks state amounts.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.replay.model import Times
from traceforge.replay.places import Places

Amounts = NDArray[np.float64]
Chosen = NDArray[np.bool_]

_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Routing:
    """All-to-alls whose amounts are known on all their ranks; arrays of shape (I, P, R).

    Attributes:
        known: where there is one.
        takes: where tokens go to experts, and come back later.
        work: with even experts, what work behind it is multiplied with; 1 where it takes no tokens.
        transfer_ns: with even experts.
    """

    known: Chosen
    takes: Chosen
    work: Amounts
    transfer_ns: Times

    @property
    def is_uneven(self) -> bool:
        """Whether even experts would change anything."""
        return bool((self.takes & (self.work != 1)).any())


def find_routing(places: Places, group: NDArray[np.int64], transfer_ns: Times) -> Routing | None:
    """The round trips of a run; None where no rank states amounts.

    Args:
        group: number of the collective at each place, as in `StepModel`.
        transfer_ns: of each place.
    """
    if places.sent_elements is None or places.received_elements is None:
        return None
    at = places.is_op("all_to_all") & (places.sent_elements >= 0) & (places.received_elements >= 0)
    calls = _Exchanges(at, group)
    at = calls.whole(places.members)
    sent, received = places.sent_elements.astype(float), places.received_elements.astype(float)
    takes, returns = _round_trips(calls, at, calls.shares(sent), calls.shares(received), _slots(places, at))
    even_received = np.where(takes, calls.mean(received), received)
    even_sent = np.where(returns, calls.mean(sent), sent)
    most, even = np.maximum(sent, received), np.maximum(even_sent, even_received)
    with np.errstate(divide="ignore", invalid="ignore"):
        work = np.where(takes & (received > 0), calls.mean(received) / received, 1.0)
        fair_ns = calls.of_busiest(most, transfer_ns) * calls.most(even) / calls.most(most)
    changes = (takes | returns) & np.isfinite(fair_ns)
    return Routing(at, takes, work, np.where(changes, np.rint(np.where(changes, fair_ns, 0)), transfer_ns).astype(int))


class _Exchanges:
    """Amounts (I, P, R) by the call in which ranks meet; what is asked of places that hold none is meaningless."""

    def __init__(self, at: Chosen, group: NDArray[np.int64]) -> None:
        self._at, shape = at, at.shape
        place = np.broadcast_to(np.arange(shape[0] * shape[1]).reshape(*shape[:2], 1), shape)
        _, call = np.unique(np.stack([place[at], group[at]]), axis=1, return_inverse=True)
        self._call = call
        self._count = int(call.max(initial=-1)) + 1
        self.number = np.zeros(shape, dtype=np.int64)
        self.number[at] = call

    def whole(self, members: NDArray[np.int64]) -> Chosen:
        """Where all ranks of the call are known."""
        present = np.bincount(self._call, minlength=self._count)
        whole: Chosen = self._at & (self._each(present) == members)
        return whole

    def mean(self, amounts: Amounts) -> Amounts:
        counts = np.bincount(self._call, minlength=self._count)
        return self._each(np.bincount(self._call, amounts[self._at], self._count) / counts)

    def shares(self, amounts: Amounts) -> Amounts:
        """Amounts over the mean of the call."""
        with np.errstate(divide="ignore", invalid="ignore"):
            result: Amounts = amounts / self.mean(amounts)
        return result

    def most(self, amounts: Amounts) -> Amounts:
        most = np.zeros(self._count)
        np.maximum.at(most, self._call, amounts[self._at])
        return self._each(most)

    def of_busiest(self, amounts: Amounts, values: Times) -> Amounts:
        """The value of the rank with the largest amount of each call."""
        order = np.argsort(amounts[self._at], kind="stable")
        last = np.zeros(self._count, dtype=np.int64)
        last[self._call[order]] = order
        return self._each(values[self._at][last].astype(float))

    def hold(self, holds: Chosen, place: int, here: Chosen) -> Chosen:
        """Where (I, R) all ranks of the call at a place hold; `here` is where there is one."""
        number = self.number[:, place]
        fails = np.zeros(self._count + 1, dtype=np.bool_)
        fails[number[here & ~holds]] = True
        result: Chosen = here & ~fails[number]
        return result

    def _each(self, by_call: Amounts | NDArray[np.int64]) -> Amounts:
        result = np.zeros(self._at.shape)
        result[self._at] = by_call[self._call]
        return result


def _slots(places: Places, at: Chosen) -> NDArray[np.int64]:
    """Which of its rank's groups a call is of, -1 for none: those of one rank are told apart by their numbers."""
    slots = np.full(at.shape, -1, dtype=np.int64)
    for rank in range(at.shape[2]):
        own = at[..., rank]
        _, slots[..., rank][own] = np.unique(places.communicator[..., rank][own], return_inverse=True)
    return slots


def _round_trips(
    calls: _Exchanges, at: Chosen, sent: Amounts, received: Amounts, slots: NDArray[np.int64]
) -> tuple[Chosen, Chosen]:
    """Where tokens go out, and where they come back."""
    takes, returns = np.zeros_like(at), np.zeros_like(at)
    for slot in range(int(slots.max(initial=-1)) + 1):
        # The call that went out last, on each rank of each iteration; others went with it.
        out_sent, out_received = np.full((2, *at.shape[::2]), np.nan)
        first = np.full(at.shape, -1, dtype=np.int64)
        came_back = np.zeros_like(at)
        leader = np.full(at.shape[::2], -1, dtype=np.int64)
        for place in np.flatnonzero((slots == slot).any(axis=(0, 2))).tolist():
            here = at[:, place] & (slots[:, place] == slot)
            own_sent, own_received = sent[:, place], received[:, place]
            brings = calls.hold(_same(own_sent, out_received) & _same(own_received, out_sent), place, here)
            beside = calls.hold(_same(own_sent, out_sent) & _same(own_received, out_received), place, here) & ~brings
            goes = here & ~brings & ~beside
            leader = np.where(goes, place, leader)
            first[:, place] = np.where(goes | beside, leader, -1)
            iteration, rank = np.nonzero(brings)
            came_back[iteration, leader[brings], rank] = True
            returns[:, place] |= brings
            out_sent = np.where(goes, own_sent, np.where(brings, np.nan, out_sent))
            out_received = np.where(goes, own_received, np.where(brings, np.nan, out_received))
        iteration, position, rank = np.nonzero(first >= 0)
        takes[iteration, position, rank] |= came_back[iteration, first[iteration, position, rank], rank]
    return takes, returns


def _same(one: Amounts, other: Amounts) -> Chosen:
    result: Chosen = np.abs(one - other) <= _SAME
    return result
