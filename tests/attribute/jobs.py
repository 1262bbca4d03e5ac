"""Jobs whose blame is worked by hand. In: what is late, where and by how much. Out: models, blame as a dict, traces."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tests.given import MS, US, Trace
from tests.replay.models import lockstep_model
from tests.stories import told
from traceforge.attribute.ledger.propagation import Blame, blame_iteration
from traceforge.replay.model import StepModel
from traceforge.replay.reference import references
from traceforge.vocabulary import vocabulary

DISTURBED = 2
"""The iteration, of five, in which something happens; the others tell what is normal."""


def disturbed(
    late_ns: Mapping[tuple[int, int], int],
    *,
    places: int = 1,
    ranks: int,
    transfer_ns: int = 10,
    groups: Sequence[Sequence[int]] | None = None,
) -> StepModel:
    """Five iterations of 100 ns at each place on each rank, and in one of them more or less by (place, rank)."""
    work = np.full((5, places, ranks), 100)
    for (place, rank), amount in late_ns.items():
        work[DISTURBED, place, rank] += amount
    return lockstep_model(work, transfer_ns=transfer_ns, groups=groups)


def blame_of(model: StepModel, iteration: int = DISTURBED) -> Blame:
    """Blame of one iteration against the run's own references."""
    return blame_iteration(model, iteration, references(model)[int(model.calls[iteration])])


def late_by(blame: Blame) -> dict[tuple[int, int], float]:
    """What each (rank, kind of work) owns; those that own nothing are left out."""
    return {(int(r), int(k)): float(blame.work_ns[r, k]) for r, k in np.argwhere(np.abs(blame.work_ns) > 1e-9)}


def excess_of(blame: Blame) -> float:
    """The iteration's time above its time at reference durations, ns."""
    return float(blame.work_ns.sum() + blame.transfers_ns.sum() + blame.early_ns)


Loss = Callable[[Trace, int, int], Trace]


def _on_host(category: str, name: str) -> Loss:
    return lambda trace, start, end: trace.host_work(name, start, end, category)


STALLS: Mapping[str, Loss] = {
    "slow_compute": lambda trace, start, end: trace.kernel(start, end),
    "slow_copy": lambda trace, start, end: trace.copy(start, end),
    "unexplained": lambda trace, start, end: trace,
    **{one.cause: _on_host(*one.example) for one in reversed(vocabulary().activities) if one.cause and one.example},
}
"""How a rank loses the time between two instants, by the cause that should own it."""


def traces_of(
    late_ns: Mapping[tuple[int, int], int],
    *,
    by: str = "slow_compute",
    iterations: int = 5,
    ranks: int = 3,
    transfer_ns: Sequence[int] = (),
) -> list[Trace]:
    """Traces of a plain job: 100 us of compute, then an all-reduce of 10 us (or as given by iteration).

        rank 0   |compute 100·······|wait····|transfer|
        rank 1   |late····|compute 100·······|transfer|

    Args:
        late_ns: time lost before the compute, by iteration and rank.
        by: how it is lost: a key of `STALLS`.
    """
    traces = [Trace(rank) for rank in range(ranks)]
    now = 0
    for i in range(iterations):
        arrivals = [now + late_ns.get((i, rank), 0) + 100 * US for rank in range(ranks)]
        end = max(arrivals) + (transfer_ns[i] if transfer_ns else 10 * US)
        for trace, arrival in zip(traces, arrivals, strict=True):
            begin = arrival - 100 * US
            trace.step(i, now, end)
            if begin > now:
                STALLS[by](trace, now, begin)
            trace.kernel(begin, arrival).collective(arrival, end)
        now = end
    return traces


def sleeping_job(clock_ns: int = 0) -> list[Trace]:
    """Four ranks on gloo, twelve steps: rank 2 sleeps 5 ms between its product and the all-reduce.

    rank 2       |mm 2 ms|sleep 5 ms|all-reduce 1 ms|mul 2 ms|
    the others   |mm 2 ms|all-reduce wait      ·····|mul 2 ms|
    """
    traces = [Trace(rank, host=f"node{rank}", clock_ns=clock_ns * rank) for rank in range(4)]
    for trace in traces:
        for number in range(12):
            start = number * 10 * MS
            arrival = start + (7 if trace.rank == 2 else 2) * MS
            trace.step(number, start, start + 10 * MS).host_work("aten::mm", start, start + 2 * MS)
            trace.gloo(arrival, start + 8 * MS).host_work("aten::mul", start + 8 * MS, start + 10 * MS)
    return traces


def verdict_of(*traces: Trace, world_size: int | None = None) -> dict[str, object]:
    """The verdict on a run of these traces; its module's text has to name `attribute.verdict`."""
    with told(*traces, world_size=world_size) as store:
        (verdict,) = store.query("FROM attribute.verdict").to_dicts()
        return verdict


def one_always_late_and_one_now_and_then(now_and_then_ns: int) -> list[Trace]:
    """Rank 2 is 30 us late at the first of two all-reduces, rank 0 by so much at each fifth of the second."""
    traces = [Trace(rank) for rank in range(4)]
    for i, now in enumerate(range(0, 20 * 200 * US, 200 * US)):
        second_ns = now_and_then_ns if i % 5 == 4 else 0
        for rank, trace in enumerate(traces):
            done, again = now + 50 * US + 30 * US * (rank == 2), now + 130 * US + second_ns * (rank == 0)
            trace.step(i, now, now + 200 * US).kernel(now, done).collective(done, now + 90 * US)
            trace.kernel(now + 90 * US, again).collective(again, now + 140 * US + second_ns)
    return traces
