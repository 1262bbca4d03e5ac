"""`python -m tests.bench.attribution`: CPU time and memory of attributing a large run; writes attribution.json.

1,024 ranks x 100 iterations x 100 collectives of all ranks, from the dense model to who owns how much, references
included; the same where tensor-parallel groups of 8 and data-parallel groups of 128 meet by turns; where ten buckets
are reduced behind each other on one stream while work goes on, and all ranks wait for the last; where only half of the
ranks wait at every other place, which no quick way knows (one iteration, not a hundred); and the cost of replaying what
findings blame. The peer, on the same machine in the same run, is sorting the same number of arrivals,
which any way of sharing a meeting's lateness must do. CPU time is of all threads. Each case runs in a process of its
own, so that its peak of memory is its own.
"""

import json
import resource
import sys
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from traceforge.attribute.findings.counterfactual import Counterfactual, blamed_transfers, blamed_work
from traceforge.attribute.ledger.blame_of_run import owned_ns
from traceforge.attribute.ledger.ledger_input import LedgerInput
from traceforge.attribute.ledger.rounding import round_to_sum
from traceforge.replay.model import StepModel
from traceforge.replay.reference import references

Durations = NDArray[np.int64]

RESULTS = Path(__file__).with_name("attribution.json")


# Collectives that are reduced behind each other before all ranks wait.
_BUCKETS = 10


@dataclass(frozen=True)
class Case:
    """A kind of run and what is measured of it.

    Attributes:
        kinds: causes of work.
        group_size: ranks of a tensor-parallel group, which meet by turns with data-parallel ones; 0 where all meet.
        waits: for each collective, for the last of ten `buckets`, or for each but half of the ranks for every other.
        iterations: at most so many.
    """

    kinds: int
    group_size: int = 0
    waits: Literal["each", "buckets", "some"] = "each"
    iterations: int = 1_000
    how: Literal["attribute", "settle"] = "attribute"


def run_of(case: Case, iterations: int, places: int, ranks: int) -> LedgerInput:
    """A run of a case; its times are those of no particular job."""
    rng = np.random.default_rng(0)
    iterations, kinds = min(iterations, case.iterations), case.kinds
    shape = (iterations, places + 1, ranks, kinds)
    work = rng.normal(1_000_000 / kinds, 30_000, shape).astype(np.int64).clip(0)
    work[:, -1] = 0
    usual_ns = 1_000_000 if case.waits == "buckets" else 300_000
    transfer = np.full((iterations, places, ranks), usual_ns, dtype=np.int64)
    transfer += rng.exponential(2_000, transfer.shape).astype(np.int64)
    group = np.zeros((places, ranks), dtype=np.int64)
    communicators = 1
    if case.group_size:
        tensor, data = np.arange(ranks) // case.group_size, np.arange(ranks) % case.group_size
        communicators = ranks // case.group_size + case.group_size
        group[0::2], group[1::2] = tensor, ranks // case.group_size + data
    awaited = np.repeat(np.arange(places)[:, None], ranks, axis=1)
    if case.waits == "buckets":
        awaited[np.arange(places) % _BUCKETS != _BUCKETS - 1] = -1
    if case.waits == "some":
        awaited[0::2, 1::2] = -1
    model = _timed(work, transfer, group, awaited)
    return LedgerInput(model, tuple(range(communicators)), np.broadcast_to(group, transfer.shape))


def _timed(work: Durations, transfer: Durations, group: Durations, awaited: Durations) -> StepModel:
    iterations, places, ranks = transfer.shape
    start, end = np.zeros((iterations, ranks), dtype=np.int64), np.zeros((iterations, ranks), dtype=np.int64)
    time = np.zeros(ranks, dtype=np.int64)
    queued = np.full(transfer.shape, -1, dtype=np.int64)
    for i in range(iterations):
        start[i] = busy = time
        for p in range(places):
            time = time + work[i, p].sum(axis=1)
            queued[i, p] = np.where(busy > time, p - 1, -1)
            last = np.zeros(int(group[p].max()) + 1, dtype=np.int64)
            np.maximum.at(last, group[p], np.maximum(time, busy))
            busy = last[group[p]] + transfer[i, p]
            time = np.where(awaited[p] >= 0, np.maximum(time, busy), time)
        end[i] = time
    return StepModel(
        iterations=np.arange(iterations),
        ranks=np.arange(ranks),
        start_ns=start,
        end_ns=end,
        calls=np.full(iterations, places),
        group=np.broadcast_to(group, transfer.shape),
        transfer_ns=transfer,
        awaited=np.broadcast_to(awaited, transfer.shape),
        kinds=tuple((f"cause{k}", None) for k in range(work.shape[3])),
        before_arrival_ns=work,
        before_wait_ns=np.zeros((iterations, places, ranks, work.shape[3]), dtype=np.int64),
        queued=queued if (queued >= 0).any() else None,
    )


def attribute(run: LedgerInput) -> dict[str, float]:
    """CPU seconds of the references, of the ledger, of sorting, and the peak of memory with the model's own."""
    arrivals = run.model.before_arrival_ns[:, :-1].sum(axis=3).astype(np.float64)
    begin = process_time()
    np.argsort(arrivals, axis=2)
    sorting = process_time() - begin
    del arrivals
    begin = process_time()
    of_length = references(run.model)
    middle = process_time()
    round_to_sum(owned_ns(run, of_length))
    return {
        "reference_cpu_s": round(middle - begin, 3),
        "ledger_cpu_s": round(process_time() - middle, 3),
        "sorting_cpu_s": round(sorting, 3),
        "peak_gb_model_included": _peak_gb(),
    }


def settle(run: LedgerInput) -> dict[str, float]:
    """CPU seconds and peak of memory of replaying what four findings blame, as findings that count are settled."""
    before = _peak_gb()
    begin = process_time()
    replays = Counterfactual(run.model)
    sources = [blamed_work(run.model, run.model.kinds[0][0], [rank]) for rank in range(3)]
    sources.append(blamed_transfers(run.model))
    replays.costs_ns(sources)
    for source in sources:
        replays.isolated_cost_ns(source)
    return {
        "replays_cpu_s": round(process_time() - begin, 3),
        "peak_gb_before": before,
        "peak_gb_model_included": _peak_gb(),
    }


def _peak_gb() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)


CASES = {
    "all_ranks_causes_1": Case(1),
    "all_ranks_causes_3": Case(3),
    "buckets_causes_1": Case(1, waits="buckets"),
    "buckets_causes_3": Case(3, waits="buckets"),
    "groups_causes_1": Case(1, group_size=8),
    "groups_causes_3": Case(3, group_size=8),
    "some_wait_one_iteration": Case(1, waits="some", iterations=1),
    "replays_of_four_findings": Case(1, group_size=8, how="settle"),
}


def measure(name: str, ranks: int, iterations: int, places: int) -> dict[str, float]:
    """One case."""
    case = CASES[name]
    run = run_of(case, iterations, places, ranks)
    return settle(run) if case.how == "settle" else attribute(run)


def main() -> None:
    """Measure and write the results."""
    ranks, iterations, places = (int(text) for text in sys.argv[1:4]) if len(sys.argv) > 3 else (1024, 100, 100)
    results: dict[str, object] = {"ranks": ranks, "iterations": iterations, "collectives": places}
    spawned = get_context("spawn")
    for name in CASES:
        with spawned.Pool(1) as pool:
            results[name] = pool.apply(measure, (name, ranks, iterations, places))
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
