"""Why hosts are late, by what they do longer. In: a run's ledger input, attribute.host_time. Out: the same run, its
work by these causes.

Idea: the device of a host that is behind waits for all that its host does: for input, too, which the other hosts fetch
for as long, but ahead of their devices. So what devices show is divided as what their hosts spend longer than the usual
host. Where that explains little of it, nothing is recorded of what makes a host late, and what is fetched, say, for no
longer than usual counts to that.
Not handled: hosts that are late by both.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceforge.attribute.cause import of_hosts
from traceforge.attribute.ledger.ledger_input import LAUNCHING, STALLED, LedgerInput, load_ledger_input, same_role
from traceforge.replay.model import StepModel
from traceforge.replay.reference import Amounts
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds

_TIMES = """
SELECT rank, iteration, cause, SUM(host_ns) AS host_ns
FROM attribute.host_time
WHERE run_id = $1 AND LIST_CONTAINS($2, rank) AND LIST_CONTAINS($3, iteration) AND LIST_CONTAINS($4, cause)
GROUP BY ALL
"""


def load_judged_input(store: Store, run_id: int) -> LedgerInput | None:
    """A run as the ledger judges it; None where no iteration was recorded by all ranks."""
    run = store.once(load_ledger_input, run_id)
    if run is None:
        return None
    spent_ns = load_host_times(store, run_id, run.model)
    return run if spent_ns is None else replace(run, model=by_what_takes_longer(run.model, spent_ns))


def load_host_times(store: Store, run_id: int, model: StepModel) -> Amounts | None:
    """What hosts spend on the model's kinds of work, ns, shape (I, R, K), NaN where not known.

    None where some host was not looked at: against what others do their work would not show who is slow.
    """
    names = [name for name, _ in model.kinds]
    times = store.query(_TIMES, [run_id, model.ranks.tolist(), model.iterations.tolist(), names])
    if times["rank"].n_unique() < len(model.ranks):
        return None
    result = np.full((len(model.iterations), len(model.ranks), len(names)), np.nan)
    iteration, rank = (times[name].to_numpy() for name in ("iteration", "rank"))
    place = (np.searchsorted(model.iterations, iteration), np.searchsorted(model.ranks, rank))
    result[*place, [names.index(cause) for cause in times["cause"]]] = times["host_ns"].to_numpy()
    return result


def longer_ns(model: StepModel, spent_ns: Amounts) -> Amounts:
    """How much more than is usual in its role each rank has, same shape; no role pauses longer than most ranks.

    Args:
        spent_ns: shape (I, R, K), NaN where not known.
    """
    is_known = ~np.isnan(spent_ns).all(axis=(0, 1))
    of_ranks = np.full(spent_ns.shape[1:], np.nan)
    of_ranks[:, is_known] = np.nanmedian(spent_ns[..., is_known], axis=0)
    longer = spent_ns.copy()
    for ranks in same_role(model):
        usual = np.quantile(of_ranks[ranks], 0.5, axis=0, method="lower")
        if model.pauses is not None:
            of_all = np.quantile(of_ranks, 0.5, axis=0, method="lower")
            usual = np.where(model.pauses, np.minimum(usual, of_all), usual)
        longer[:, ranks] -= usual
    return longer


def by_what_takes_longer(model: StepModel, spent_ns: Amounts) -> StepModel:
    """The model with work of hosts moved between causes.

    Args:
        spent_ns: what hosts spend on each kind, whether their devices wait or not, shape (I, R, K); NaN where that is
            not known.
    """
    is_known = ~np.isnan(spent_ns).all(axis=(0, 1))
    seen = ~np.isnan(spent_ns[..., is_known]).any(axis=(1, 2))
    if not is_known.any() or not seen.any():
        return model
    work_ns = (model.before_arrival_ns[seen].sum(axis=1) + model.before_wait_ns[seen].sum(axis=1)).astype(np.float64)
    shown_ns = work_ns.sum(axis=0)
    longer = (longer_ns(model, one).sum(axis=0) for one in (work_ns, np.nan_to_num(spent_ns[seen])))
    shown_longer, spent_longer = (np.maximum(0.0, one) for one in longer)
    of_hosts = shown_longer * _of_hosts(model)
    shown_longer, spent_longer = shown_longer * is_known, spent_longer * is_known
    # Devices show more than hosts take longer, as the others wait meanwhile; far more where hosts are late by what
    # nothing is recorded of.
    is_explained = spent_longer.sum(axis=1) >= thresholds.EXPLAINED_BY_HOST * of_hosts.sum(axis=1)
    reasons = np.where(is_explained[:, None], spent_longer, _unrecorded(model, of_hosts))
    due_ns = np.where(is_explained, shown_longer.sum(axis=1), of_hosts.sum(axis=1))[:, None] * _shares(reasons)
    giving = np.maximum(0.0, shown_longer - np.maximum(due_ns, spent_longer))
    taking = np.where(reasons > 0, np.maximum(0.0, due_ns - of_hosts), 0.0)
    moved_ns = np.minimum(giving.sum(axis=1), taking.sum(axis=1))
    given = moved_ns[:, None] * _shares(giving) / np.maximum(shown_ns, 1.0)
    if not given.any():
        return model
    return replace(
        model,
        before_arrival_ns=_moved(model.before_arrival_ns, given, _shares(taking)),
        before_wait_ns=_moved(model.before_wait_ns, given, _shares(taking)),
    )


def _unrecorded(model: StepModel, of_hosts: Amounts) -> Amounts:
    """Of kinds that stand for what nothing is recorded of, the one that a rank shows most of, shape (R, K)."""
    is_one = np.array([name in (STALLED, LAUNCHING) for name, _ in model.kinds])
    shown = np.where(is_one, of_hosts, 0.0)
    is_most = shown == shown.max(axis=1, keepdims=True)
    is_enough = shown >= thresholds.EXPLAINED_BY_HOST * of_hosts.sum(axis=1, keepdims=True)
    return np.where(is_most & is_enough, shown, 0.0)


def _of_hosts(model: StepModel) -> NDArray[np.bool_]:
    """Kinds of work that are a host's, while its device waits, shape (K,)."""
    return np.array([of_hosts(name) for name, _ in model.kinds])


def _shares(amounts: Amounts) -> Amounts:
    total = amounts.sum(axis=1, keepdims=True)
    shares: Amounts = np.divide(amounts, total, out=np.zeros_like(amounts), where=total > 0)
    return shares


def _moved(work_ns: NDArray[np.int64], given: Amounts, taken: Amounts) -> NDArray[np.int64]:
    """Work, shape (I, P, R, K), of which each kind gives a share to those that take, to the ns."""
    leaving = np.rint(work_ns * given).astype(np.int64)
    arriving = np.rint(leaving.sum(axis=-1, keepdims=True) * taken).astype(np.int64)
    rest = leaving.sum(axis=-1) - arriving.sum(axis=-1)  # of rounding; the kind that takes most takes it
    ranks = np.arange(len(taken))
    arriving[:, :, ranks, taken.argmax(axis=1)] += rest
    moved: NDArray[np.int64] = work_ns - leaving + arriving
    return moved
