"""What is searched. In: the ledger of a run and its model. Out: arrays over judged iterations, ranks and causes.

Two views of the same losses. `cost_ns` is the ledger: what each rank's work of each cause costs the job, so that of
ranks that are late together one may own all. `own_ns` is each rank's own work above the reference, which shows who is
slow alike even where only one of them is waited for. A rank is held against those of its role (its stage). What a host
does longer than the others shows who is slow where devices wait for hosts: `host_ns`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.attribute.cause import causes
from traceforge.attribute.findings.coupling_scenarios import NOTHING_KNOWN, CouplingScenarios
from traceforge.attribute.ledger.host_floor import HostFloor
from traceforge.attribute.ledger.ledger_input import LedgerInput
from traceforge.replay.model import StepModel
from traceforge.replay.reference import references
from traceforge.thresholds.attribute import EXPLAINED_BY_HOST

Delays = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """What findings of one run are made from; durations in ns, shape (iterations,).

    Attributes:
        pace_ns: what an iteration takes of the job's time (attribute.pace).
        messages: iteration, low and high rank of both ends, size_bytes, transfer_ns; None where none was recorded.
        even_routing: by rank with a hot expert, the share of its extra work that even routing would save.
        uneven_ns: what all-to-alls take longer because of them, shape (I, P, R); None where that is not known.
        couplings: what it shows, or leaves open, of what waiting slows down.
        alone: its model with what work takes if no collective slows it; None where that is as recorded.
        host_floor: what its hosts need for themselves; None where that was not looked at.
        host_longer_ns: how much longer than the usual one each host takes for each kind of the ledger's model, whether
            its device waits or not, shape (I, R, K), NaN where not known; None where that was not looked at.
        nics: by (host, NIC) the communicators that pass it, each with the ranks that use it there; empty without logs.
    """

    run_id: int
    ledger: LedgerInput
    iterations: list[int]
    durations_ns: Delays
    pace_ns: float
    residual_ns: int
    hosts: list[str | None]
    members: dict[int, list[int]]
    has_device: bool
    messages: pl.DataFrame | None = None
    nics: Mapping[tuple[str, str], Mapping[int, Sequence[int]]] = field(default_factory=dict)
    even_routing: Mapping[int, float] = field(default_factory=dict)
    couplings: CouplingScenarios = NOTHING_KNOWN
    alone: StepModel | None = None
    uneven_ns: NDArray[np.int64] | None = None
    host_floor: HostFloor | None = None
    host_longer_ns: Delays | None = None

    @property
    def places(self) -> list[int]:
        """Places of the judged iterations in the model."""
        found: list[int] = np.searchsorted(self.ledger.model.iterations, self.iterations).tolist()
        return found

    @property
    def ranks(self) -> list[int]:
        """Ranks in the order of the arrays."""
        found: list[int] = self.ledger.model.ranks.tolist()
        return found

    def ranks_on(self, owner: int) -> Sequence[int]:
        """Ranks of a communicator, or at both ends of a message path."""
        path = self.ledger.paths.get(owner)
        return self.members.get(owner, []) if path is None else (path.low_rank, path.high_rank)

    def communicator_of(self, owner: int) -> int:
        """A communicator, or the one whose messages take a path."""
        path = self.ledger.paths.get(owner)
        return owner if path is None else path.communicator_id

    @property
    def shares_cores(self) -> bool:
        """Whether ranks without devices share a host: they take its cores from one another."""
        return not self.has_device and len(set(self.hosts)) < len(self.hosts)

    @property
    def is_one_host(self) -> bool:
        """Whether all ranks that communicate are known to be of one host."""
        seen = set(self.ranks)
        is_whole = all(seen.issuperset(members) for members in self.members.values())
        return is_whole and None not in self.hosts and len(set(self.hosts)) == 1


@dataclass(slots=True)
class LostTime:
    """Losses of work, ns, shape (judged iterations, ranks, causes); what is explained is set to zero.

    Attributes:
        explained: causes and ranks of which all iterations are explained.
    """

    causes: tuple[str, ...]
    cost_ns: Delays
    own_ns: Delays
    host_ns: Delays
    explained: set[tuple[int, int]] = field(default_factory=set)

    def of(self, numbers: Sequence[int]) -> tuple[Delays, Delays]:
        """Cost and own work above the reference of some causes together, shape (iterations, ranks)."""
        chosen = list(numbers)
        return self.cost_ns[..., chosen].sum(axis=2), self.own_ns[..., chosen].sum(axis=2)

    def slower(self, numbers: Sequence[int]) -> Delays:
        """What ranks do longer by some causes together: their hosts, where that explains it, else their own work."""
        chosen = list(numbers)
        own = self.own_ns[..., chosen].sum(axis=2)
        hosts: Delays = np.where(np.isnan(self.host_ns), self.own_ns, self.host_ns)[..., chosen].sum(axis=2)
        longest = [one.mean(axis=0).max(initial=0.0) for one in (hosts, own)]
        return hosts if longest[0] >= EXPLAINED_BY_HOST * longest[1] else own

    def take_out(self, numbers: Sequence[int], ranks: Sequence[int], iterations: Sequence[int] | None = None) -> None:
        """Set what is explained to zero, in all iterations by default."""
        if iterations is None:
            self.explained |= set(product(numbers, ranks))
        rows = range(len(self.cost_ns)) if iterations is None else iterations
        block = np.ix_(list(rows), list(ranks), list(numbers))
        self.cost_ns[block] = 0.0
        self.own_ns[block] = 0.0
        self.host_ns[block] = 0.0


def lost_time(run: JudgedRun, delays: pl.DataFrame) -> LostTime:
    """Losses of work; `delays` are the run's rows of attribute.delay: iteration, owner, cause, delay_ns."""
    present = set(delays["cause"])
    names = tuple(n for n, cause in causes().items() if cause.claims_transfer is None and n in present)
    cost = [by_owner(run, delays.filter(pl.col("cause") == name), run.ranks) for name in names]
    shape = (len(run.iterations), len(run.ranks), 0)
    # Ranks that wait for a slow one are slowed: as recorded, all would seem slow alike.
    own = own_work_ns(run.alone or run.ledger.model)[run.places]
    kinds = [name for name, _ in run.ledger.model.kinds]
    columns = [own[..., kinds.index(name)] if name in kinds else np.zeros(shape[:2]) for name in names]
    if not names:
        return LostTime((), np.zeros(shape), np.zeros(shape), np.zeros(shape))
    hosts = np.full(own.shape, np.nan) if run.host_longer_ns is None else run.host_longer_ns[run.places]
    longer = [hosts[..., kinds.index(name)] if name in kinds else np.full(shape[:2], np.nan) for name in names]
    return LostTime(names, np.stack(cost, axis=2), np.stack(columns, axis=2), np.stack(longer, axis=2))


def own_work_ns(model: StepModel) -> Delays:
    """Each rank's own work above the reference by cause, ns, shape (I, R, K)."""
    result: Delays = model.before_arrival_ns.sum(axis=1).astype(np.float64)
    for calls, reference in references(model).items():
        alike = model.calls == calls
        result[alike] += model.before_wait_ns[alike, :calls].sum(axis=1)
        result[alike] -= reference.before_arrival_ns.sum(axis=0) + reference.before_wait_ns.sum(axis=0)
    return result


def by_owner(run: JudgedRun, own: pl.DataFrame, owners: Sequence[int]) -> Delays:
    """Rows of the ledger as an array, shape (judged iterations, owners)."""
    result = np.zeros((len(run.iterations), len(owners)))
    place = {iteration: i for i, iteration in enumerate(run.iterations)}
    column = {owner: c for c, owner in enumerate(owners)}
    for iteration, owner, delay_ns in own.select("iteration", "owner", "delay_ns").iter_rows():
        if iteration in place and owner in column:
            result[place[iteration], column[owner]] = delay_ns
    return result
