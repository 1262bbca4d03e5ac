"""`python -m tests.bench.attribution`: CPU time and memory of attributing a large run; writes attribution.json.

1,024 ranks x 100 iterations x 100 collectives of all ranks, from the dense model to who owns how much, references
included. The peer, on the same machine in the same run, is sorting the same number of arrivals, which any way of
sharing a meeting's lateness must do. Groups of ranks take the general way, measured at 64 ranks.
"""

import json
import resource
import sys
from pathlib import Path
from time import process_time

import numpy as np

from tests.replay.models import THREE_KINDS, Plan, model_of
from traceforge.attribute.booking import Booked
from traceforge.attribute.delay import owned_ns, round_to_sum
from traceforge.replay.model import StepModel
from traceforge.replay.reference import references

RESULTS = Path(__file__).with_name("attribution.json")


def lockstep_run(iterations: int, places: int, ranks: int, kinds: int) -> StepModel:
    """A run in which all ranks meet at every place, worked out at once; times are those of no particular job."""
    rng = np.random.default_rng(0)
    shape = (iterations, places + 1, ranks, kinds)
    work = rng.normal(1_000_000 / kinds, 30_000, shape).astype(np.int64).clip(0)
    work[:, -1] = 0
    transfer = np.full((iterations, places, ranks), 300_000, dtype=np.int64)
    transfer += rng.exponential(2_000, transfer.shape).astype(np.int64)
    return _timed(work, transfer, np.zeros((places, ranks), dtype=np.int64))


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
            time = (time + work[i, p].sum(axis=1)).max() + transfer[i, p]
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


def grouped_run(iterations: int, places: int, ranks: int, group_size: int) -> StepModel:
    """A run whose ranks meet in tensor-parallel and data-parallel groups by turns."""
    rng = np.random.default_rng(1)
    work = rng.normal(1_000_000, 30_000, (iterations, places, ranks, 1)).astype(np.int64)
    tensor, data = np.arange(ranks) // group_size, np.arange(ranks) % group_size
    group = np.stack([tensor if p % 2 == 0 else data for p in range(places)])
    shape = (iterations, places, ranks)
    plan = Plan(
        calls=np.full(iterations, places),
        group=np.broadcast_to(group, shape).copy(),
        awaited=np.broadcast_to(np.arange(places)[:, None], shape).copy(),
        transfer_ns=np.full(shape, 300_000, dtype=np.int64),
        before_arrival_ns=np.concatenate([work, np.zeros((iterations, 1, ranks, 1), dtype=np.int64)], axis=1),
        before_wait_ns=np.zeros((*shape, 1), dtype=np.int64),
        first_start_ns=np.zeros(ranks, dtype=np.int64),
        pause_ns=np.zeros((iterations - 1, ranks), dtype=np.int64),
        kinds=THREE_KINDS[:1],
    )
    return model_of(plan)


def attribute(model: StepModel) -> tuple[float, float]:
    """CPU seconds of the references, and of the ledger."""
    begin = process_time()
    of_length = references(model)
    middle = process_time()
    run = Booked(model, (0,), np.zeros(model.group.shape, dtype=np.int64))
    round_to_sum(owned_ns(run, of_length))
    return middle - begin, process_time() - middle


def main() -> None:
    """Measure and write the results."""
    ranks, iterations, places = (int(text) for text in sys.argv[1:4]) if len(sys.argv) > 3 else (1024, 100, 100)
    results: dict[str, object] = {"ranks": ranks, "iterations": iterations, "collectives": places}
    for kinds in (1, 3):
        model = lockstep_run(iterations, places, ranks, kinds)
        arrivals = model.before_arrival_ns[:, :-1].sum(axis=3).astype(np.float64)
        begin = process_time()
        np.argsort(arrivals, axis=2)
        sorting = process_time() - begin
        reference_s, ledger_s = attribute(model)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        results[f"causes_{kinds}"] = {
            "reference_cpu_s": round(reference_s, 3),
            "ledger_cpu_s": round(ledger_s, 3),
            "sorting_cpu_s": round(sorting, 3),
            "peak_gb_model_included": round(peak, 2),
        }
        del model, arrivals
    grouped = grouped_run(2, 20, 64, 8)
    results["grouped_64_ranks_cpu_s_per_meeting"] = round(sum(attribute(grouped)) / 40, 5)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
