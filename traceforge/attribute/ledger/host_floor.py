"""The least that hosts let iterations take. In: attribute.host_need and starvation, a model. Out: `HostFloor`.

Idea: ranks wait for the last one's device, and their own hosts work on meanwhile. Where those hosts need nearly as
long, the wait hides their work: without the last rank, the job would wait for the next host. Each host's own work is
summed over the run, as a host that is ahead makes up for a slow step. Hosts hold a job up by no more than its devices
stand idle for want of work: a span that seems to fetch input may wait for the device. Where hosts wait for their
devices in each step, what these have left to do is added: a faster host waits no less, but a faster device leaves less.
Not handled: that then the slowest host of each step counts, and not of the run.
"""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.replay.model import StepModel
from traceforge.replay.reference import Amounts
from traceforge.store.database import Store

_NEEDS = """
SELECT rank, iteration, host_ns, possible_ns, input_ns, least_awaited_ns
FROM attribute.host_need
WHERE run_id = ?
ORDER BY rank, iteration
"""

_STARVED = "SELECT iteration, starved_ns FROM attribute.starvation WHERE run_id = ?"

_HOSTS = "SELECT rank, host FROM align.rank WHERE run_id = ?"


@dataclass(frozen=True, slots=True)
class HostFloor:
    """Own work of hosts.

    Attributes:
        places: iterations of the model that count, shape (J,); not the first, which ends later by what devices have
            left to do when hosts are done, nor one that follows an iteration that was left out.
        ranks: places of the ranks whose hosts are known, shape (H,).
        host_ns: what each host needs for each, shape (J, H).
        possible_ns: the same if each fetches input for at least as long as the quickest host.
        input_ns: of it, fetching input, shape (J, H).
        role: number shared by ranks that do the same, shape (H,).
        machine: number shared by ranks of one host, of all ranks, shape (R,).
        starved_ns: for how long some device lacks work in each iteration, shape (J,).
        left_ns: what devices have left to do in each when hosts are done and wait for them, shape (J,).
    """

    places: NDArray[np.int64]
    ranks: NDArray[np.int64]
    host_ns: Amounts
    possible_ns: Amounts
    input_ns: Amounts
    role: NDArray[np.int64]
    machine: NDArray[np.int64]
    starved_ns: Amounts
    left_ns: Amounts

    @property
    def usual_ns(self) -> float:
        """What the usual host of the slowest role needs for the usual iteration; of two halves the faster one's.

        A role issues what it has by design, but none fetches input by design for longer than most hosts.
        """
        usual_input_ns = _usual(self.input_ns)
        roles = [self.role == one for one in np.unique(self.role)]
        longer_ns = [max(0.0, _usual(self.input_ns[:, own]) - usual_input_ns) for own in roles]
        return max(_usual(self.host_ns[:, own]) - longer for own, longer in zip(roles, longer_ns, strict=True))

    def without_doubt(self) -> "HostFloor":
        """As if nothing that hosts seem to do were a wait for their devices, however little these lack work."""
        return replace(self, host_ns=self.possible_ns, starved_ns=np.full(len(self.places), np.inf))

    def least_ns(self, but: frozenset[int]) -> float:
        """What the iterations that count take at least, in sum, if some ranks' hosts need no time.

        Other ranks of the same machine may be slow for the same reason, so that they are no measure, if there are more.
        Where no host is left, they would be as the usual one.
        """
        own = np.array(sorted(but), dtype=np.int64)
        is_own = np.isin(self.ranks, own)
        is_near = np.isin(self.machine[self.ranks], self.machine[own])
        others = ~(is_own if is_near.all() else is_near)
        if not others.any():
            return self.usual_ns * len(self.places)
        return float(self.host_ns[:, others].sum(axis=0).max())

    def lasted_ns(self, before_ns: Amounts, lasted_ns: Amounts, but: frozenset[int], by_devices_ns: Amounts) -> Amounts:
        """Iterations without some loss, no shorter in sum than the hosts of the other ranks allow, shape (I,).

        Args:
            before_ns: with it.
            lasted_ns: without it, as if hosts never were in the way.
            but: places of the ranks whose loss it is.
            by_devices_ns: what faster devices and transfers alone save of it.
        """
        saved_ns = float((before_ns - lasted_ns)[self.places].sum())
        left_ns = max(0.0, float((self.left_ns - by_devices_ns[self.places]).sum()))
        possible_ns = max(0.0, float(before_ns[self.places].sum()) - self.least_ns(but) - left_ns)
        possible_ns = max(possible_ns, saved_ns - float(self.starved_ns.sum()))
        if saved_ns <= possible_ns:
            return lasted_ns
        return before_ns - (before_ns - lasted_ns) * (possible_ns / saved_ns)

    def part_of_loss(self, model: StepModel, lost_ns: Amounts, by_devices_ns: Amounts) -> float:
        """How much of what the ledger holds is a loss, 0..1: the usual hosts would need the rest by themselves.

        Args:
            lost_ns: above the reference, shape (I,).
            by_devices_ns: of it, what devices and transfers lose.
        """
        lasted_ns = np.diff(model.end_ns.max(axis=1), prepend=model.start_ns[0].max())[self.places]
        loss_ns = float(lost_ns[self.places].mean())
        usual_ns = self.usual_ns + max(0.0, float((self.left_ns - by_devices_ns[self.places]).mean()))
        possible_ns = max(float(lasted_ns.mean()) - usual_ns, loss_ns - float(self.starved_ns.mean()))
        return float(np.clip(possible_ns / loss_ns, 0.0, 1.0)) if loss_ns > 0 else 1.0


def load_host_floor(store: Store, run_id: int, model: StepModel) -> HostFloor | None:
    """What hosts of a run need; None where none was looked at."""
    found = store.query(_NEEDS, [run_id])
    after_another = model.iterations[1:][np.diff(model.iterations) == 1]
    iterations = np.intersect1d(found["iteration"].to_numpy(), after_another)
    known = found["rank"].unique().sort().to_numpy()
    if not len(iterations) or not len(known):
        return None
    kept = found.filter(pl.col("iteration").is_in(iterations.tolist()))
    place = (np.searchsorted(iterations, kept["iteration"]), np.searchsorted(known, kept["rank"]))
    host_ns, possible_ns, input_ns = needs = np.zeros((3, len(iterations), len(known)))
    needs[:, *place] = kept.select("host_ns", "possible_ns", "input_ns").to_numpy().T
    ranks = np.searchsorted(model.ranks, known)
    role = np.zeros(len(ranks), dtype=np.int64) if model.role is None else model.role[ranks]
    host_of = dict(store.rows(_HOSTS, [run_id]))
    names = [host_of.get(rank) or f"of rank {rank}" for rank in model.ranks.tolist()]
    starved_of = dict(store.rows(_STARVED, [run_id]))
    left_of = dict(kept.select("iteration", "least_awaited_ns").iter_rows())
    return HostFloor(
        places=np.searchsorted(model.iterations, iterations),
        ranks=ranks,
        host_ns=host_ns,
        possible_ns=possible_ns,
        input_ns=input_ns,
        role=role,
        machine=np.unique(names, return_inverse=True)[1],
        starved_ns=np.array([float(starved_of.get(one) or 0) for one in iterations.tolist()]),
        left_ns=np.array([float(left_of[one]) for one in iterations.tolist()]),
    )


def _usual(amounts_ns: Amounts) -> float:
    return float(np.quantile(amounts_ns, 0.5, method="lower"))
