"""What a run would have been without something, or with nothing else. In: a model and what is blamed. Out: replays.

A finding is costed by replaying the run without it, for every set of findings: the mean over all orders in
which they could be fixed (Shapley) is a finding's cost, so that costs add up where findings hide one another. For one
finding alone it is what removing it saves; for two, the mean of what removing one saves with the other there and not.
Couplings that the run itself shows (`replay.calibration`) are replayed too: where waiting slows transfers down, what
makes ranks wait costs that as well.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from traceforge.attribute.cause import cause_of_work, of_hosts
from traceforge.attribute.findings.step_pace import step_paces
from traceforge.attribute.ledger.host_floor import HostFloor
from traceforge.replay.coupling import NO_COUPLING, Couplings
from traceforge.replay.engine import Durations, measured, record, replay
from traceforge.replay.model import StepModel
from traceforge.replay.reference import Amounts, Reference, by_rank, references
from traceforge.replay.unslowed import unslowed
from traceforge.stats import MEDIAN_ERROR, SD_PER_MAD
from traceforge.thresholds import attribute as thresholds
from traceforge.thresholds.replay import TRANSFER_QUANTILE

# Work that collectives under way on the same device slow down.
_ON_DEVICE = cause_of_work("compute", None)


@dataclass(frozen=True, slots=True)
class BlamedTime:
    """What is blamed: time above the reference, ns.

    Attributes:
        rank_places: whose work it is; empty for transfers.
        before_arrival_ns: excess work, shape (I, P + 1, those ranks).
        before_wait_ns: shape (I, P, those ranks).
        transfer_ns: excess of transfers, shape (I, P, R); None for work alone. Of a hot expert both are blamed.
        is_of_hosts: whether devices stand idle meanwhile.
    """

    rank_places: tuple[int, ...]
    before_arrival_ns: NDArray[np.int64]
    before_wait_ns: NDArray[np.int64]
    transfer_ns: NDArray[np.int64] | None = None
    is_of_hosts: bool = False

    def rank_seconds_ns(self) -> Amounts:
        """Time above the reference by iteration: summed over ranks, of a transfer as long as it holds up its ranks."""
        if self.transfer_ns is not None and self.is_transfer:
            own = self.transfer_ns.max(axis=2, initial=0).sum(axis=1)
        else:
            own = self.before_arrival_ns.sum(axis=(1, 2)) + self.before_wait_ns.sum(axis=(1, 2))
        return np.asarray(own, dtype=np.float64)

    @property
    def is_transfer(self) -> bool:
        """Whether no work is blamed."""
        return self.transfer_ns is not None and not self.rank_places

    def scaled(self, shares: Sequence[float]) -> "BlamedTime":
        """A share of each rank's work."""
        arrival, wait = (_whole(work * np.asarray(shares)) for work in (self.before_arrival_ns, self.before_wait_ns))
        return replace(self, before_arrival_ns=arrival, before_wait_ns=wait)


def working_alone(model: StepModel, couplings: Couplings) -> StepModel:
    """The model with what work takes if no collective slows it; the model itself where none is known to."""
    if not (couplings.waiting or couplings.transferring):
        return model
    return unslowed(model, record(model, on_device={_ON_DEVICE}), couplings)


def blamed_work(
    model: StepModel,
    causes: str | Sequence[str],
    rank_places: Sequence[int],
    *,
    in_turns: bool = False,
    iterations: Sequence[int] | None = None,
) -> BlamedTime:
    """Work of some ranks by one cause or several, as far as it exceeds the reference over an iteration.

    Where work is above the reference at one place and below at another, only what is above in sum is blamed, as noise
    would else be fixed as well. In a step that is longer or shorter for all ranks, so is the reference (`step_pace`).

    Args:
        model: with work by cause (see `ledger_input.by_cause`).
        in_turns: whether the ranks lose it in turns; then only those that are struck are blamed, and work that is only
            divided unevenly is held against its mean.
        iterations: places of the iterations in which they are blamed; all by default.
    """
    chosen = [causes] if isinstance(causes, str) else causes
    kinds = [k for k, (name, _) in enumerate(model.kinds) if name in chosen]
    ranks = list(rank_places)
    arrivals = np.zeros((*model.before_arrival_ns.shape[:2], len(ranks)), dtype=np.int64)
    waits = np.zeros((*model.before_wait_ns.shape[:2], len(ranks)), dtype=np.int64)
    of_length = references(model)
    paces = step_paces(model, of_length, kinds, ranks)
    differences = [
        _differences(model, i, of_length[calls], paces[i], kinds, ranks) for i, calls in enumerate(model.calls)
    ]
    beyond = np.stack([one.sum(axis=(0, 2)) + other.sum(axis=(0, 2)) for one, other in differences])
    beyond = np.maximum(0, _of_turns(beyond) if in_turns else beyond)
    for i in range(len(differences)) if iterations is None else iterations:
        arrival, wait = differences[i]
        above = np.maximum(0, arrival).sum(axis=(0, 2)) + np.maximum(0, wait).sum(axis=(0, 2))
        part = np.divide(beyond[i], above, out=np.zeros(len(ranks)), where=above > 0)
        arrivals[i, : len(arrival)] = _whole(part * np.maximum(0, arrival).sum(axis=2))
        waits[i, : len(wait)] = _whole(part * np.maximum(0, wait).sum(axis=2))
    return BlamedTime(tuple(ranks), arrivals, waits, is_of_hosts=all(map(of_hosts, chosen)))


def _differences(
    model: StepModel, i: int, reference: Reference, pace: float, kinds: list[int], ranks: list[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Work of an iteration less the reference at its pace, before arrivals and waits; shape (places, ranks, kinds)."""
    calls = int(model.calls[i])
    arrival = model.before_arrival_ns[i, : calls + 1][:, ranks][..., kinds]
    wait = model.before_wait_ns[i, :calls][:, ranks][..., kinds]
    return (
        arrival - _whole(pace * _of_ranks(reference.before_arrival_ns, ranks)[..., kinds]),
        wait - _whole(pace * _of_ranks(reference.before_wait_ns, ranks)[..., kinds]),
    )


def _of_ranks(work_ns: Amounts, ranks: list[int] | slice) -> Amounts:
    """Reference work with an axis of ranks, shape (places, ranks or 1, K)."""
    result: Amounts = work_ns[:, ranks] if work_ns.ndim > 2 else work_ns[:, None]
    return result


def _of_turns(beyond_ns: NDArray[np.int64]) -> Amounts:
    """Of work above the reference what ranks lose in turns, shape (I, ranks).

    Work that is only divided unevenly is held against its mean. Where some ranks are struck and the others hardly take
    more than the reference, that of the others is noise, which would stay.
    """
    if mean := _mean_if_even(beyond_ns):
        return np.asarray(beyond_ns - mean)
    struck_ns = float(np.median(beyond_ns.max(axis=1)))
    is_struck = beyond_ns >= struck_ns / 2
    others = np.quantile(beyond_ns[~is_struck], 1 - thresholds.RESIDUAL_TAIL) if not is_struck.all() else struck_ns
    is_clear = others <= thresholds.ROTATING_OTHERS * struck_ns
    return np.where(is_struck | (not is_clear), beyond_ns, 0).astype(np.float64)


def _mean_if_even(beyond_ns: NDArray[np.int64]) -> float:
    """Mean of work that lies about its median evenly to both sides, 0 of other work; shape (I, ranks).

    What one rank has more another has less where work is only divided unevenly, and the mean
    estimates better than the median what an even division would give. Rare losses lie to one side, and raise the mean.
    What all ranks lose in all iterations, somewhere else each time, lies evenly too, far from the reference.
    """
    mean, spread = float(beyond_ns.mean()), float(beyond_ns.std())
    error = MEDIAN_ERROR * spread / np.sqrt(beyond_ns.size)
    is_even = abs(mean - float(np.median(beyond_ns))) <= thresholds.EVEN_ERRORS * error
    return mean if is_even and abs(mean) <= spread else 0.0


def blamed_transfers(
    model: StepModel, places: NDArray[np.bool_] | None = None, iterations: Sequence[int] | None = None
) -> BlamedTime:
    """Transfers, as far as they exceed clean ones: those of the same place that are not blamed, or its first quartile.

    Args:
        places: those blamed, shape (I, P, R); all by default.
        iterations: places of the iterations in which they are blamed; all by default.
    """
    blamed = np.broadcast_to(True, model.group.shape) if places is None else places
    if iterations is not None:
        is_affected = np.isin(np.arange(len(model.iterations)), iterations)
        blamed = blamed & is_affected[:, None, None]
    blamed = blamed & (model.group >= 0)
    of_length = references(model)
    excess = np.zeros(model.transfer_ns.shape, dtype=np.int64)
    for calls, reference in of_length.items():
        alike = np.flatnonzero(model.calls == calls)
        for p in range(calls):
            transfer, is_blamed = model.transfer_ns[alike, p], blamed[alike, p]
            clean = transfer[~is_blamed & (model.group[alike, p] >= 0)]
            # Collectives of several roles at one place are not alike.
            is_clean = len(clean) >= thresholds.CLEAN_TRANSFERS and reference.transfer_ns.ndim == 1
            expected = np.median(clean) if is_clean else reference.transfer_ns[p]
            above = np.maximum(0, transfer - np.rint(expected).astype(np.int64))
            excess[alike, p] = np.where(is_blamed, above, 0)
    none = np.zeros((len(model.iterations), 0, 0), dtype=np.int64)
    return BlamedTime((), none, none, excess)


class Counterfactual:
    """Replays of one run, each without some sources; kept, as several questions ask for the same ones."""

    def __init__(self, model: StepModel, couplings: Couplings = NO_COUPLING, hosts: HostFloor | None = None) -> None:
        """Prepare to replay a run.

        Args:
            model: the run.
            couplings: what waiting slows down.
            hosts: what hosts need for themselves; None where that is not known.
        """
        self._model, self._couplings, self._measured, self._hosts = model, couplings, measured(model), hosts
        self._recorded = record(model, on_device={_ON_DEVICE}) if couplings != NO_COUPLING else None
        self._kept: dict[frozenset[int], Amounts] = {}
        self._clean: Durations | None = None
        self._clean_ns: Amounts = np.zeros(0)

    @property
    def couplings(self) -> Couplings:
        """What waiting slows down."""
        return self._couplings

    @property
    def calls(self) -> NDArray[np.int64]:
        """Collectives of each iteration, shape (I,)."""
        return self._model.calls

    def coupled_by(self, couplings: Couplings) -> "Counterfactual":
        """The same run with other couplings; it shares what does not depend on them."""
        other = copy(self)
        other._couplings, other._kept, other._clean_ns = couplings, {}, np.zeros(0)
        if other._recorded is None and couplings != NO_COUPLING:
            other._recorded = record(self._model, on_device={_ON_DEVICE})
        return other

    def limited_by(self, hosts: HostFloor | None) -> "Counterfactual":
        """The same run with hosts that need another time for themselves, or none; it shares the replays."""
        other = copy(self)
        other._hosts = hosts
        return other

    def without_ns(self, sources: Sequence[BlamedTime]) -> Amounts:
        """Iterations without some sources, from one completion to the next, ns, shape (I,)."""
        lasted = self._replayed_without(sources)
        if self._hosts is None or not sources:
            return lasted
        before = self._replayed_without([])
        by_devices = before - self._replayed_without([one for one in sources if not one.is_of_hosts])
        return self._hosts.lasted_ns(before, lasted, _ranks_of(sources), by_devices)

    def _replayed_without(self, sources: Sequence[BlamedTime]) -> Amounts:
        """The same as if hosts never were in the way."""
        key = frozenset(map(id, sources))
        if key not in self._kept:
            self._kept[key] = self._lasted(_changed(self._measured, sources, -1))
        return self._kept[key]

    def isolated_cost_ns(self, source: BlamedTime) -> Amounts:
        """By how much a source alone would lengthen iterations in which all else is at its reference, shape (I,)."""
        if self._clean is None:
            self._clean = self._reference()
        if not len(self._clean_ns):
            self._clean_ns = self._lasted(self._clean)
        lasted = self._lasted(_changed(self._clean, [source], 1))
        if self._hosts is not None:
            by_devices = np.zeros(len(lasted)) if source.is_of_hosts else lasted - self._clean_ns
            return lasted - self._hosts.lasted_ns(lasted, self._clean_ns, _ranks_of([source]), by_devices)
        return lasted - self._clean_ns

    def costs_ns(self, sources: Sequence[BlamedTime]) -> Amounts:
        """What each source costs, ns, shape (sources, I): the mean over all orders of fixing them; at most 4."""
        count = len(sources)
        result = np.zeros((count, len(self._model.iterations)))
        for player in range(count):
            others = [n for n in range(count) if n != player]
            for size in range(count):
                weight = 1 / (count * comb(count - 1, size))
                for fixed in combinations(others, size):
                    before = self.without_ns([sources[n] for n in fixed])
                    after = self.without_ns([sources[n] for n in (*fixed, player)])
                    result[player] += weight * (before - after)
        return result

    def _lasted(self, durations: Durations) -> Amounts:
        run = replay(self._model, durations, couplings=self._couplings, recorded=self._recorded)
        lasted: Amounts = np.diff(run.end_ns.max(axis=1), prepend=self._model.start_ns[0].max()).astype(np.float64)
        return lasted

    def _reference(self) -> Durations:
        # Where all ranks have the same, it is held once.
        count, places, ranks = self._model.group.shape
        of_length = references(self._model)
        held = ranks if any(one.transfer_ns.ndim > 1 for one in of_length.values()) else 1
        arrival = np.zeros((count, places + 1, held), dtype=np.int64)
        wait, transfer = (np.zeros((count, places, held), dtype=np.int64) for _ in range(2))
        for calls, reference in of_length.items():
            alike = self._model.calls == calls
            arrival[alike, : calls + 1] = _whole(_of_ranks(reference.before_arrival_ns, slice(None)).sum(axis=2))
            wait[alike, :calls] = _whole(_of_ranks(reference.before_wait_ns, slice(None)).sum(axis=2))
            transfer[alike, :calls] = _whole(by_rank(reference.transfer_ns))
        return Durations(*(np.broadcast_to(one, (*one.shape[:2], ranks)) for one in (arrival, wait, transfer)))


def _ranks_of(sources: Sequence[BlamedTime]) -> frozenset[int]:
    """Places of the ranks whose work is blamed."""
    return frozenset(place for source in sources for place in source.rank_places)


def _changed(durations: Durations, sources: Sequence[BlamedTime], sign: int) -> Durations:
    """Durations with sources added (1) or taken away (-1); what no source touches is not copied."""
    work = [source for source in sources if source.rank_places]
    transfer = durations.transfer_ns
    for source in sources:
        if source.transfer_ns is not None:
            transfer = transfer + sign * source.transfer_ns
    return Durations(
        _with_work(durations.before_arrival_ns, [(s.rank_places, s.before_arrival_ns) for s in work], sign),
        _with_work(durations.before_wait_ns, [(s.rank_places, s.before_wait_ns) for s in work], sign),
        transfer,
    )


def _with_work(
    work_ns: NDArray[np.int64], changes: Sequence[tuple[tuple[int, ...], NDArray[np.int64]]], sign: int
) -> NDArray[np.int64]:
    """Work with changes to some ranks; the same array where none changes anything."""
    changes = [(ranks, change) for ranks, change in changes if change.any()]
    if not changes:
        return work_ns
    result = work_ns.copy()
    for ranks, change in changes:
        result[..., list(ranks)] += sign * change
    return result


def transfer_noise_ns(model: StepModel, source: BlamedTime) -> float:
    """Standard deviation of the iteration's clean transfers taken together, ns: how well their sum is known."""
    if source.transfer_ns is None:
        return 0.0
    hit = (source.transfer_ns > 0).any(axis=(0, 2))
    variance = 0.0
    for p in np.flatnonzero(hit).tolist():
        clean = model.transfer_ns[:, p][(source.transfer_ns[:, p] == 0) & (model.group[:, p] >= 0)]
        own = clean if len(clean) >= thresholds.CLEAN_TRANSFERS else model.transfer_ns[:, p].ravel()
        low, middle = np.quantile(own, [TRANSFER_QUANTILE, 0.5])
        variance += (SD_PER_MAD * float(middle - low)) ** 2
    return float(np.sqrt(variance))


def _whole(durations_ns: Amounts) -> NDArray[np.int64]:
    return np.rint(durations_ns).astype(np.int64)
