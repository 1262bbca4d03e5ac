"""How much slower things get where ranks are early. In: how long ranks waited, then and now. Out: changed durations.

Without a coupling no delay can ever help (`engine`). Each coupling is one number; 0 means that it is not there.
`calibration` measures them from the run itself.

A measured duration already holds what the coupling cost in the recorded run. So only the change is added: the cost at
the replayed waits less the cost at the recorded ones. Where nothing else changes both are the same number, and the
replay stays exact for any couplings. Strengths come as columns, one a replayed variant (V).

Not modelled: which of a stretch's work is device work (its share is spread evenly over the stretch); of several
collectives under way at once, any but the last one issued; work that becomes so much longer that a stretch begins
after co-located ranks have begun to wait (all time from their arrival to its own counts as its work).
"""

from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.replay.model import StepModel
from traceforge.replay.rank_groups import Amounts, RankGroups, Times
from traceforge.thresholds import replay as thresholds


@dataclass(frozen=True, slots=True)
class Couplings:
    """Strengths of the couplings, dimensionless, as the engine uses them.

    Attributes:
        spread: extra transfer time a unit of mean wait of the collective (kappa): `x = x0 + spread * mean wait`.
        waiting: relative slow-down of device work while a collective on the same device waits (eta).
        transferring: the same while a collective on the same device transfers.
        host: relative slow-down of own work for each other rank of the same host that waits meanwhile (phi).
    """

    spread: float = 0.0
    waiting: float = 0.0
    transferring: float = 0.0
    host: float = 0.0

    def halfway_to(self, other: "Couplings") -> "Couplings":
        """The middle between these and others."""
        middle = (np.array(astuple(self)) + np.array(astuple(other))) / 2
        return Couplings(*middle.tolist())


NO_COUPLING = Couplings()


@dataclass(frozen=True, slots=True)
class Baseline:
    """The recorded run, as far as couplings need it; shapes (I, P, R).

    Attributes:
        arrival_ns: when each rank arrived.
        begun_ns: when its collective began, which may have had to wait for the rank's stream.
        spread_ns: mean wait over the group that it met.
        transfer_ns: as recorded.
        before_arrival_ns: the rank's own work before each arrival and the end, shape (I, P + 1, R).
        host: number of each rank's host, shape (R,); None where hosts are unknown.
        device_kinds: which of the model's kinds of work run on the device.
    """

    arrival_ns: Times
    begun_ns: Times
    spread_ns: Amounts
    transfer_ns: Times
    before_arrival_ns: Times
    host: NDArray[np.int64] | None
    device_kinds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Strengths:
    """Couplings of several variants, each a column (V, 1), or None where no variant has it."""

    spread: Amounts | None
    waiting: Amounts | None
    transferring: Amounts | None
    host: Amounts | None

    @property
    def overlap(self) -> bool:
        """Whether work is slowed by a collective under way."""
        return self.waiting is not None or self.transferring is not None


def strengths(couplings: list[Couplings]) -> Strengths:
    """The strengths of each variant."""
    columns = {
        name: np.array([[getattr(one, name)] for one in couplings])
        for name in ("spread", "waiting", "transferring", "host")
    }
    return Strengths(**{name: column if column.any() else None for name, column in columns.items()})


def more_transfer(spread: Amounts, now_ns: Amounts, then_ns: Amounts) -> Times:
    """By how much transfers grow where the mean wait of their group is another than recorded, ns.

    Where waits make transfers that make longer waits, nothing ends: what has grown this far grows no more, so that sums
    over a run stay integers of 64 bits.
    """
    return np.rint(np.minimum(spread * (now_ns - then_ns), thresholds.LONGEST_GROWTH_NS)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Cover:
    """A stretch of work and the collective under way beside it: waiting until `last`, transferring until `end`; ns."""

    begin_ns: Times
    last_ns: Times
    end_ns: Times


def more_work(work_ns: Times, share: Amounts, given: Strengths, now: Cover, then: Cover) -> Times:
    """By how much a stretch of work grows where a collective covers more or less of it than recorded, ns.

    Args:
        work_ns: work as recorded, shape (R,).
        share: share of it that runs on the device, shape (R,).
    """
    waiting = share * (0.0 if given.waiting is None else given.waiting)
    transferring = share * (0.0 if given.transferring is None else given.transferring)
    slowed = _slowed_then(work_ns, waiting, transferring, then)
    cost = _cost(work_ns - slowed, waiting, transferring, *_covered(now)) - slowed
    result: Times = np.maximum(np.rint(cost), -work_ns).astype(np.int64)
    return result


def slowed_by(
    work_ns: Times, share: Amounts, couplings: Couplings, begin_ns: Times, last_ns: Times, end_ns: Times
) -> Amounts:
    """What of recorded work (shape (R,)) is due to a collective beside it that waits until `last` and ends at `end`."""
    waiting, transferring = share * couplings.waiting, share * couplings.transferring
    return _slowed_then(work_ns, waiting, transferring, Cover(begin_ns, last_ns, end_ns))


def _slowed_then(work_ns: Times, waiting: Amounts, transferring: Amounts, cover: Cover) -> Amounts:
    """What of recorded work is due to what covered it."""
    wait, transfer = _covered(cover)
    waited = np.minimum(wait, work_ns)
    transferred = np.minimum(transfer, work_ns - waited)
    result: Amounts = waited * _slowed(waiting) + transferred * _slowed(transferring)
    return result


def _covered(cover: Cover) -> tuple[Times, Times]:
    wait = np.maximum(cover.last_ns - cover.begin_ns, 0)
    return wait, np.maximum(cover.end_ns - np.maximum(cover.last_ns, cover.begin_ns), 0)


def _slowed(eta: Amounts) -> Amounts:
    """Share of slowed work that is the slow-down."""
    result: Amounts = eta / (1 + eta)
    return result


def _cost(alone: Amounts, waiting: Amounts, transferring: Amounts, wait: Times, transfer: Times) -> Amounts:
    """What the collective adds to work that would take `alone`: first its wait covers it, then its transfer."""
    under_wait = np.minimum(alone * (1 + waiting), wait)
    left = alone - under_wait / (1 + waiting)
    under_transfer = np.minimum(left * (1 + transferring), transfer)
    result: Amounts = under_wait * _slowed(waiting) + under_transfer * _slowed(transferring)
    return result


def with_host_contention(base_ns: Amounts, host: NDArray[np.int64], phi: Amounts) -> Amounts:
    """Arrivals where the ranks of a host slow one another down by waiting; shapes (V, R).

    While k ranks of its host wait, a rank works at the rate 1 / (1 + phi k).

    Args:
        base_ns: arrivals if nobody did.
    """
    order, steps, waiting = _by_host(base_ns, host)
    return _moved(base_ns, order, np.cumsum(steps * phi * waiting, axis=-1), waiting)


def without_host_contention(arrival_ns: Amounts, host: NDArray[np.int64], phi: Amounts) -> Amounts:
    """The inverse of `with_host_contention`."""
    order, steps, waiting = _by_host(arrival_ns, host)
    return _moved(arrival_ns, order, -np.cumsum(steps * (1 - 1 / (1 + phi * waiting)), axis=-1), waiting)


def _by_host(times_ns: Amounts, host: NDArray[np.int64]) -> tuple[NDArray[np.int64], Amounts, Amounts]:
    """Ranks by host and time; time since the arrival before on the host; how many of the host have arrived."""
    order = np.lexsort((times_ns, np.broadcast_to(host, times_ns.shape)), axis=-1)
    hosts, times = np.sort(host), np.take_along_axis(times_ns, order, axis=-1)
    begins = np.flatnonzero(np.diff(hosts, prepend=hosts[0] - 1))
    waiting = np.arange(len(hosts)) - np.repeat(begins, np.diff(np.append(begins, len(hosts))))
    steps = np.diff(times, axis=-1, prepend=times[..., :1])
    return order, np.where(waiting > 0, steps, 0.0), waiting.astype(np.float64)


def _moved(times_ns: Amounts, order: NDArray[np.int64], total: Amounts, waiting: Amounts) -> Amounts:
    """The times moved by running totals within each host."""
    at_begin = np.maximum.accumulate(np.where(waiting == 0, np.arange(len(waiting)), 0))
    # One row of times may meet the strengths of several variants.
    moved = np.take_along_axis(times_ns, order, axis=-1) + (total - total[..., at_begin])
    result = np.empty(moved.shape)
    np.put_along_axis(result, np.broadcast_to(order, moved.shape), moved, axis=-1)
    return result


def device_share(work_ns: Times, device_kinds: Sequence[int]) -> Amounts:
    """Share of each stretch that runs on the device, shape as `work_ns` without its kinds."""
    total, device = work_ns.sum(axis=-1), work_ns[..., list(device_kinds)].sum(axis=-1)
    share: Amounts = np.divide(device, total, out=np.zeros(total.shape), where=total > 0)
    return share


def baseline(
    model: StepModel,
    met: RankGroups,
    arrival_ns: Times,
    begun_ns: Times,
    host: NDArray[np.int64] | None,
    on_device: Collection[str],
) -> Baseline:
    """The recorded run from when its ranks arrived and its collectives began, shape (I, P, R)."""
    spread = np.zeros(begun_ns.shape)
    for i, calls in enumerate(model.calls.tolist()):
        for number in np.unique(met.at[i, :calls]).tolist():
            layout, alike = met.layouts[number], np.flatnonzero(met.at[i, :calls] == number)
            begun = begun_ns[i, alike]
            spread[i, alike] = layout.mean(layout.latest(begun) - begun)
    device_kinds = tuple(k for k, (name, _) in enumerate(model.kinds) if name in on_device)
    own_work = model.before_arrival_ns.sum(axis=3)
    return Baseline(arrival_ns, begun_ns, spread, model.transfer_ns, own_work, host, device_kinds)
