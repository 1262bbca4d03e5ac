"""What the ledger is made from. In: a run's model. Out: the same run, its work by cause, and who met in which group.

Kinds of work are added up by the cause that claims them, so that what one kind gains and another of the same cause
loses cancels. A rank that came after a collective was over never waited for it (the graph gives late ranks the
waits of the others, at no cost); such waits are dropped.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.attribute.cause import UNEXPLAINED, cause_of_work, causes
from traceforge.replay.model import StepModel, load_model, started
from traceforge.replay.rank_groups import rank_groups
from traceforge.replay.reference import references
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds

# Several messages between two ranks may be one call.
_TRANSFERS = """
SELECT DISTINCT collective_id, c.communicator_id,
  LEAST(m.source_rank, m.destination_rank) AS low_rank, GREATEST(m.source_rank, m.destination_rank) AS high_rank
FROM timeline.collective AS c
LEFT JOIN timeline.message AS m USING (run_id, collective_id)
WHERE run_id = ?
ORDER BY collective_id
"""

ON_DEVICE = "SELECT COALESCE(BOOL_OR(has_device), false) FROM align.rank WHERE run_id = ?"

_LACKING = """
SELECT DISTINCT c.communicator_id
FROM timeline.collective AS c
JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE c.run_id = ? AND NOT c.complete AND NOT i.is_partial
"""

# Host activities that only a trace of the host's operations shows.
_HOST_OPERATIONS = frozenset({"operation", "launch"})
_STANDING = frozenset({"stall", "unnamed"})
# A device does nothing of its own: it is idle, or has nothing to run but communication that it does not await.
_GAPS = ("idle", "transfer", "wait", "communication")
_COMPUTING = cause_of_work("compute", None)
STALLED, LAUNCHING = cause_of_work("runtime", "unnamed"), cause_of_work("runtime", "operation")
"""Causes of a host that does nothing on record, and of one that launches late."""


@dataclass(frozen=True, slots=True)
class MessagePath:
    """Two ranks between which messages of a communicator go, either way."""

    communicator_id: int
    low_rank: int
    high_rank: int


@dataclass(frozen=True, slots=True)
class LedgerInput:
    """A run ready for the ledger.

    Attributes:
        model: kinds of work are (cause, None); waits that never were are gone.
        communicators: who owns slow transfers, length C: communicator ids, ascending, after the ids of message paths.
        communicator: index of the owner of each place's transfer, 0 where there is none, shape (I, P, R).
        lacking: indices of the communicators with collectives of which members were not recorded.
        paths: message paths by id; ids are negative.
    """

    model: StepModel
    communicators: tuple[int, ...]
    communicator: NDArray[np.int64]
    lacking: frozenset[int] = frozenset()
    paths: Mapping[int, MessagePath] = field(default_factory=dict)


def load_ledger_input(store: Store, run_id: int) -> LedgerInput | None:
    """A run as its devices show it; None where no iteration was recorded by all ranks."""
    model = store.once(load_model, run_id)
    if model is None:
        return None
    rows = store.query(_TRANSFERS, [run_id])
    collectives, (owners, paths) = rows["collective_id"].to_numpy(), _with_paths(rows)
    ids, index = np.unique(owners, return_inverse=True)
    has_device = bool(store.value(ON_DEVICE, [run_id]))
    plain = by_cause(without_empty_waits(model), has_device=has_device)
    plain = with_pauses(with_even_boundaries(_with_usual_parts(without_false_waits(plain))))
    plain = replace(plain, pauses=np.array([causes()[name].is_pause(has_device) for name, _ in plain.kinds]))
    if not len(ids):
        return LedgerInput(plain, (0,), np.zeros(model.group.shape, dtype=np.int64))
    place = np.searchsorted(collectives, np.maximum(model.group, 0)).clip(0, len(collectives) - 1)
    communicator = np.where(model.group >= 0, index[place], 0)
    incomplete = set(store.query(_LACKING, [run_id])["communicator_id"])
    of = [paths[number].communicator_id if number in paths else number for number in ids.tolist()]
    lacking = frozenset(c for c, number in enumerate(of) if number in incomplete)
    return LedgerInput(plain, tuple(ids.tolist()), communicator, lacking, paths)


def _with_paths(rows: pl.DataFrame) -> tuple[NDArray[np.int64], dict[int, MessagePath]]:
    """Owner of each transfer: its communicator, or the negative id of the path that a message takes; and the paths."""
    of_path = ["communicator_id", "low_rank", "high_rank"]
    known = rows.drop_nulls("low_rank").select(of_path).unique().sort(of_path)
    known = known.with_columns(path=-1 - pl.int_range(pl.len(), dtype=pl.Int64))
    owned = rows.join(known, on=of_path, how="left", maintain_order="left").select(
        pl.coalesce("path", pl.col("communicator_id").cast(pl.Int64))
    )
    return owned.to_series().to_numpy(), {path: MessagePath(*ends) for *ends, path in known.iter_rows()}


def by_cause(model: StepModel, *, has_device: bool = True) -> StepModel:
    """The model with work added up by cause; kinds are (cause, None).

    With the host's operations on record, a device that is idle while its host does none of them is kept idle by its
    host: between two launches that come late, or in a stall, whichever is the greater on that rank. No role lets its
    device idle by design; what hosts without devices do, their role may. Communication that runs meanwhile and is not
    awaited changes nothing: it hides the gap.
    """
    gaps = _GAPS if has_device else _GAPS[:1]
    names = [cause_of_work(phase, activity) for phase, activity in model.kinds]
    of_nobody = [activity == "unnamed" and phase in gaps for phase, activity in model.kinds]
    unnamed = [k for k, name in enumerate(names) if of_nobody[k] and name == UNEXPLAINED.name]
    launching = [k for k, (_, activity) in enumerate(model.kinds) if activity in _HOST_OPERATIONS]
    targets = sorted({*names, *((STALLED, LAUNCHING) if unnamed and launching else ())})
    member = np.array([[name == target for target in targets] for name in names], dtype=np.int64)
    of_rank = np.broadcast_to(member.reshape(len(names), len(targets)), (len(model.ranks), len(names), len(targets)))
    if unnamed and launching:
        of_rank = of_rank.copy()
        of_rank[:, unnamed] = 0
        standing = [k for k, (_, activity) in enumerate(model.kinds) if activity in _STANDING]
        late, stalled = (_above_typical(model, of, among_all=has_device) for of in (launching, standing))
        is_late = late > stalled
        for rank, late in enumerate(is_late.tolist()):
            of_rank[rank, unnamed, targets.index(LAUNCHING if late else STALLED)] = 1
    return replace(
        model,
        kinds=tuple((target, None) for target in targets),
        before_arrival_ns=np.einsum("iprk,rkc->iprc", model.before_arrival_ns, of_rank),
        before_wait_ns=np.einsum("iprk,rkc->iprc", model.before_wait_ns, of_rank),
    )


def _above_typical(model: StepModel, kinds: list[int], *, among_all: bool) -> NDArray[np.float64]:
    """Work of some kinds in iterations with more of it than is typical of the role, ns of the whole run, shape (R,).

    Iterations with less do not count against it: ranks that lose time in turns have about as much of it in sum.

    Args:
        among_all: no more is typical of a role than of all ranks.
    """
    total = model.before_arrival_ns[..., kinds].sum(axis=(1, 3)) + model.before_wait_ns[..., kinds].sum(axis=(1, 3))
    above: NDArray[np.float64] = total.astype(np.float64)
    most = np.median(total) if among_all else np.inf
    for ranks in same_role(model):
        above[:, ranks] -= min(np.median(total[:, ranks]), most)
    result: NDArray[np.float64] = np.maximum(0.0, above).sum(axis=0)
    return result


def same_role(model: StepModel) -> list[NDArray[np.int64]]:
    """Places of the ranks of each role."""
    role = np.zeros(len(model.ranks), dtype=np.int64) if model.role is None else model.role
    return [np.flatnonzero(role == one) for one in np.unique(role)]


def without_empty_waits(model: StepModel) -> StepModel:
    """The model without the waits in which no rank's time passed."""
    awaited = np.where(_blocked_ns(model) > 0, model.awaited, -1)
    return _with_usual_parts(replace(model, awaited=awaited))


def without_false_waits(model: StepModel) -> StepModel:
    """The model, by cause, without waits of ranks that do after them what the others do before.

    Such a rank's device stood idle while communication ran, but did not wait for it: its host came late. The time
    counts as work of the cause by which the rank lost most in that iteration, compute apart.
    """
    computing = np.array([name == _COMPUTING for name, _ in model.kinds])
    is_false = (
        _false_waits(model, computing) if 0 < computing.sum() < len(computing) and model.group.shape[1] else np.zeros(0)
    )
    if not is_false.any():
        return model
    lost = model.before_arrival_ns.sum(axis=1) + model.before_wait_ns.sum(axis=1)
    above = lost.copy()
    for ranks in same_role(model):
        above[:, ranks] -= np.median(lost[:, ranks], axis=(0, 1)).astype(np.int64)
    above[..., computing] = np.iinfo(np.int64).min
    loser = above.argmax(axis=2)
    before, blocked = model.before_wait_ns.copy(), _blocked_ns(model)
    # Who has not lost as much elsewhere in the iteration has no host that comes late, and does wait.
    is_false &= above.max(axis=2)[:, None] >= blocked
    for i, p, rank in zip(*np.nonzero(is_false), strict=True):
        before[i, p, rank, loser[i, rank]] += blocked[i, p, rank]
    return replace(model, before_wait_ns=before, awaited=np.where(is_false, -1, model.awaited))


def _false_waits(model: StepModel, computing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Waits before which a rank has computed less than others of its role have there, and after which it makes up."""
    result = np.zeros(model.awaited.shape, dtype=np.bool_)
    for ranks in same_role(model):
        own = replace(
            model,
            awaited=model.awaited[:, :, ranks],
            before_arrival_ns=model.before_arrival_ns[:, :, ranks],
            before_wait_ns=model.before_wait_ns[:, :, ranks],
        )
        result[:, :, ranks] = _false_waits_of_role(own, computing)
    return result


def _false_waits_of_role(model: StepModel, computing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    arrivals = model.before_arrival_ns[..., computing].sum(axis=3)
    done = np.cumsum(arrivals[:, :-1] + model.before_wait_ns[..., computing].sum(axis=3), axis=1)
    total = done[:, -1] + arrivals[:, -1]
    result = np.zeros(done.shape, dtype=np.bool_)
    for p in range(done.shape[1]):
        waits = model.awaited[:, p] >= 0
        alike = model.calls > p
        if not waits.any():
            continue
        is_usual = waits[alike].mean() >= 0.5
        # Where most ranks do not wait, all that they do until the next arrival counts as done before.
        entries = waits if is_usual else alike[:, None] & ~waits
        reached = done[:, p] if is_usual else done[:, p] + arrivals[:, p + 1]
        expected = float(np.median(reached[entries]))
        missing = expected - done[:, p]
        made_up = missing + total - float(np.median(total[entries]))
        result[:, p] = (
            waits
            & (missing > thresholds.MISSING_COMPUTE * expected)
            & (made_up > thresholds.REAPPEARING_COMPUTE * missing)
        )
    return result


def _blocked_ns(model: StepModel) -> NDArray[np.int64]:
    """Time that each rank stands still in each wait, shape (I, P, R)."""
    ends, blocked = np.zeros(model.group.shape, dtype=np.int64), np.zeros(model.group.shape, dtype=np.int64)
    time, met = model.start_ns.copy(), rank_groups(model.group)
    rank, iteration = np.arange(len(model.ranks))[None, :], np.arange(len(model.iterations))[:, None]
    arrival_work, wait_work = model.before_arrival_ns.sum(axis=3), model.before_wait_ns.sum(axis=3)
    for p in range(model.group.shape[1]):
        time = time + arrival_work[:, p]
        start = time if model.queued is None else started(time, ends, model.queued[:, p])
        for number in np.unique(met.at[:, p]).tolist():
            alike = met.at[:, p] == number
            ends[alike, p] = met.layouts[number].latest(start[alike]) + model.transfer_ns[alike, p]
        time = time + wait_work[:, p]
        awaited = model.awaited[:, p]
        end = ends[iteration, np.maximum(awaited, 0), rank]
        blocked[:, p] = np.where(awaited >= 0, np.maximum(0, end - time), 0)
        time = time + blocked[:, p]
    return blocked


def _with_usual_parts(model: StepModel) -> StepModel:
    """The model with work around the place of a wait divided, on ranks that do not wait, as on those that do.

    Without a wait it makes no difference to the rank on which side its work stands, but it does to the reference.
    """
    before, after = model.before_wait_ns.copy(), model.before_arrival_ns.copy()
    for ranks in same_role(model):
        own = slice(None) if model.role is None else ranks
        parts = _usual_parts(before[:, :, own], after[:, :, own], model.awaited[:, :, own] >= 0, model.calls)
        before[:, :, own], after[:, :, own] = parts
    return replace(model, before_wait_ns=before, before_arrival_ns=after)


def _usual_parts(
    before: NDArray[np.int64], after: NDArray[np.int64], waits: NDArray[np.bool_], calls: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    for p in range(waits.shape[1]):
        alike = calls > p
        if not alike.any() or waits[alike, p].mean() < 0.5:
            before_share: NDArray[np.float64] | float = 0.0
        else:
            usual = np.median(before[:, p][waits[:, p]], axis=0)
            total = usual + np.median(after[:, p + 1][waits[:, p]], axis=0)
            before_share = np.divide(usual, total, out=np.zeros_like(usual), where=total > 0)
        both = before[:, p] + after[:, p + 1]
        moved = np.where((alike[:, None] & ~waits[:, p])[..., None], np.rint(both * before_share) - before[:, p], 0)
        before[:, p] += moved.astype(np.int64)
        after[:, p + 1] -= moved.astype(np.int64)
    return before, after


def with_even_boundaries(model: StepModel) -> StepModel:
    """The model with each rank's iterations cut at the same place of the program.

    A rank's iteration ends with its host or with its last collective, whichever is later, so that the device's work
    near the end falls into this iteration on one rank and into the next one on another. Where no rank communicates for
    whole iterations (gradients that are accumulated), a host ahead of its device ends all of these early. What a rank
    has more than the reference in one part of what lies between two meetings, and less in another, is put where the
    reference has it.
    """
    head, start, end = model.before_arrival_ns.copy(), model.start_ns.copy(), model.end_ns.copy()
    of_length = references(model)
    for first, parts in _between_meetings(model.calls):
        usual = [np.rint(of_length[int(model.calls[i])].before_arrival_ns[p]) for i, p in parts]
        over = np.array([head[i, p] - own for (i, p), own in zip(parts, usual, strict=True)]).astype(np.int64)
        more, less = np.maximum(0, over).cumsum(axis=0), np.maximum(0, -over).cumsum(axis=0)
        moved = np.minimum(more[-1], less[-1])
        if not moved.any():
            continue
        later = np.minimum(more, moved) - np.minimum(less, moved)
        for (i, p), change in zip(parts, np.diff(later, axis=0, prepend=0), strict=True):
            head[i, p] -= change
        boundary = slice(first, first + len(parts) - 1)
        end[boundary] -= later[:-1].sum(axis=2)
        start[first + 1 : first + len(parts)] -= later[:-1].sum(axis=2)
    return replace(model, before_arrival_ns=head, start_ns=start, end_ns=end)


def _between_meetings(calls: NDArray[np.int64]) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """What lies between the last meeting of one iteration and the first of another: its first iteration, and its parts.

    Parts are (iteration, position). After the last meeting no rank waits for what is done there.
    """
    parts: list[tuple[int, int]] = []
    for i, count in enumerate(calls.tolist()):
        parts.append((i, 0))
        if count:
            if len(parts) > 1:
                yield parts[0][0], parts
            parts = [(i, count)]


def with_pauses(model: StepModel) -> StepModel:
    """The model with what a rank spends between two marked iterations as work of the later one: its host stalls.

    Marks of the profiler leave no time between them; others may, and a rank that pauses there comes late as well.
    """
    follows = np.diff(model.iterations) == 1
    pause = np.where(follows[:, None], np.maximum(0, model.start_ns[1:] - model.end_ns[:-1]), 0)
    if not pause.any():
        return model
    names = [name for name, _ in model.kinds]
    kinds = model.kinds if STALLED in names else (*model.kinds, (STALLED, None))
    padding = [(0, 0)] * 3 + [(0, len(kinds) - len(names))]
    arrival, wait = (np.pad(work, padding) for work in (model.before_arrival_ns, model.before_wait_ns))
    arrival[1:, 0, :, [name for name, _ in kinds].index(STALLED)] += pause
    start = model.start_ns.copy()
    start[1:] -= pause
    return replace(model, kinds=kinds, before_arrival_ns=arrival, before_wait_ns=wait, start_ns=start)
