"""`python -m tests.bench.attribution`: CPU time and memory of attributing a large run; writes attribution.json.

1,024 ranks x 100 iterations x 100 collectives of all ranks, from the dense model to who owns how much, references
included; the same where tensor-parallel groups of 8 and data-parallel groups of 128 meet by turns; and the cost of
replaying what findings blame. The peer, on the same machine in the same run, is sorting the same number of arrivals,
which any way of sharing a meeting's lateness must do. CPU time is of all threads. Each case runs in a process of its
own, so that its peak of memory is its own.
"""

import json
import resource
import sys
from multiprocessing import get_context
from pathlib import Path
from time import process_time

import numpy as np

from traceforge.attribute.booking import Booked
from traceforge.attribute.counterfactual import Counterfactual, transfer_source, work_source
from traceforge.attribute.delay import owned_ns, round_to_sum
from traceforge.replay.model import StepModel
from traceforge.replay.reference import references

RESULTS = Path(__file__).with_name("attribution.json")


def run_of(iterations: int, places: int, ranks: int, kinds: int, group_size: int) -> Booked:
    """A run in which all ranks wait at every place, worked out at once; times are those of no particular job.

    Args:
        group_size: ranks of a tensor-parallel group, which meet by turns with data-parallel ones; 0 where all meet.
    """
    rng = np.random.default_rng(0)
    shape = (iterations, places + 1, ranks, kinds)
    work = rng.normal(1_000_000 / kinds, 30_000, shape).astype(np.int64).clip(0)
    work[:, -1] = 0
    transfer = np.full((iterations, places, ranks), 300_000, dtype=np.int64)
    transfer += rng.exponential(2_000, transfer.shape).astype(np.int64)
    group = np.zeros((places, ranks), dtype=np.int64)
    communicators = 1
    if group_size:
        tensor, data = np.arange(ranks) // group_size, np.arange(ranks) % group_size
        communicators = ranks // group_size + group_size
        group[0::2], group[1::2] = tensor, ranks // group_size + data
    model = _timed(work, transfer, group)
    return Booked(model, tuple(range(communicators)), np.broadcast_to(group, transfer.shape))


def _timed(
    work: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]",
    transfer: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]",
    group: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]",
) -> StepModel:
    iterations, places, ranks = transfer.shape
    start, end = np.zeros((iterations, ranks), dtype=np.int64), np.zeros((iterations, ranks), dtype=np.int64)
    time = np.zeros(ranks, dtype=np.int64)
    for i in range(iterations):
        start[i] = time
        for p in range(places):
            last = np.zeros(int(group[p].max()) + 1, dtype=np.int64)
            np.maximum.at(last, group[p], time + work[i, p].sum(axis=1))
            time = last[group[p]] + transfer[i, p]
        end[i] = time
    return StepModel(
        iterations=np.arange(iterations),
        ranks=np.arange(ranks),
        start_ns=start,
        end_ns=end,
        calls=np.full(iterations, places),
        group=np.broadcast_to(group, transfer.shape),
        transfer_ns=transfer,
        awaited=np.broadcast_to(np.arange(places)[:, None], transfer.shape),
        kinds=tuple((f"cause{k}", None) for k in range(work.shape[3])),
        before_arrival_ns=work,
        before_wait_ns=np.zeros((iterations, places, ranks, work.shape[3]), dtype=np.int64),
    )


def attribute(run: Booked) -> dict[str, float]:
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


def settle(run: Booked) -> dict[str, float]:
    """CPU seconds and peak of memory of replaying what four findings blame, as findings that count are settled."""
    before = _peak_gb()
    begin = process_time()
    replays = Counterfactual(run.model)
    sources = [work_source(run.model, run.model.kinds[0][0], [rank]) for rank in range(3)]
    sources.append(transfer_source(run.model))
    replays.costs_ns(sources)
    for source in sources:
        replays.harm_ns(source)
    return {
        "replays_cpu_s": round(process_time() - begin, 3),
        "peak_gb_before": before,
        "peak_gb_model_included": _peak_gb(),
    }


def _peak_gb() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)


CASES = {
    "all_ranks_causes_1": (1, 0, attribute),
    "all_ranks_causes_3": (3, 0, attribute),
    "groups_causes_1": (1, 8, attribute),
    "groups_causes_3": (3, 8, attribute),
    "replays_of_four_findings": (1, 8, settle),
}


def measure(name: str, ranks: int, iterations: int, places: int) -> dict[str, float]:
    """One case."""
    kinds, group_size, how = CASES[name]
    return how(run_of(iterations, places, ranks, kinds, group_size))


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
