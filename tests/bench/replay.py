"""`python -m tests.bench.replay`: CPU time of replaying a large run; writes replay.json.

1,024 ranks x 100 iterations x 100 collectives, of all ranks at once and of tensor- and data-parallel groups. The peer,
on the same machine in the same run, is one plain maximum over the ranks of the same arrivals, which any replay of them
must take at each place; and the same maximum place by place, as dependencies demand.
"""

import json
import resource
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import process_time

import numpy as np

from tests.bench.attribution import Case, run_of
from tests.replay.models import coupled_by
from traceforge.replay.coupling import Couplings
from traceforge.replay.engine import measured, record, replay
from traceforge.replay.model import StepModel
from traceforge.replay.outcome import outcomes
from traceforge.replay.policy import policies
from traceforge.replay.replay_input import ReplayInput
from traceforge.replay.sweep import combinations

RESULTS = Path(__file__).with_name("replay.json")


def in_groups(model: StepModel, size: int) -> StepModel:
    """The run with three of four collectives in tensor-parallel groups of `size`, the fourth across them."""
    iterations, places, ranks = model.group.shape
    tensor, data = np.arange(ranks) // size, np.arange(ranks) % size
    group = np.stack([data if place % 4 == 0 else tensor for place in range(places)])
    number = np.arange(iterations * places).reshape(iterations, places, 1) * ranks
    grouped = replace(model, group=group[None] + number)
    again = replay(grouped, measured(grouped))
    return replace(grouped, start_ns=again.start_ns, end_ns=again.end_ns)


def cpu_s(work: Callable[[], object]) -> float:
    """CPU seconds (user and system) of a piece of work."""
    begin = process_time()
    work()
    return round(process_time() - begin, 3)


def one_by_one(arrivals: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]") -> None:
    """The latest arrival of each place, place by place."""
    for iteration in arrivals:
        for place in iteration:
            place.max()


def measure(model: StepModel) -> dict[str, float]:
    """CPU seconds of replays of a run, and of the peers."""
    durations = measured(model)
    arrivals = durations.before_arrival_ns[:, :-1]
    recorded = record(model)
    pacing = policies()["bounded_delay"]
    run = ReplayInput(0, model, recorded, coupled_by(0.5, low=0.4, high=0.6))
    grid = [(pacing, parameters) for parameters in combinations(pacing, pacing.defaults)] + [(policies()["none"], {})]
    result = {
        "peer_one_maximum_cpu_s": cpu_s(lambda: arrivals.max(axis=2)),
        "peer_maximum_by_place_cpu_s": cpu_s(lambda: one_by_one(arrivals)),
        "replay_cpu_s": cpu_s(lambda: replay(model, measured(model))),
        "record_arrivals_cpu_s": cpu_s(lambda: record(model)),
        "replay_paced_coupled_cpu_s": cpu_s(
            lambda: replay(
                model,
                durations,
                lambda past: pacing.delay(past, pacing.defaults),
                couplings=Couplings(spread=0.5),
                recorded=recorded,
            )
        ),
        "sweep_of_20_policies_one_replay_each_cpu_s": cpu_s(
            lambda: [
                replay(
                    model,
                    durations,
                    lambda past, p=p, q=q: p.delay(past, q),  # type: ignore[misc]
                    couplings=Couplings(spread=0.5),
                    recorded=recorded,
                )
                for p, q in grid[:20]
            ]
        ),
        "sweep_of_20_policies_with_intervals_and_controls_cpu_s": cpu_s(lambda: outcomes(run, grid[:20])),
    }
    result["replay_over_maximum_by_place"] = round(result["replay_cpu_s"] / result["peer_maximum_by_place_cpu_s"], 1)
    return result


def main() -> None:
    """Measure and write the results."""
    ranks, iterations, places = (int(text) for text in sys.argv[1:4]) if len(sys.argv) > 3 else (1024, 100, 100)
    results: dict[str, object] = {"ranks": ranks, "iterations": iterations, "collectives": places}
    model = run_of(Case(kinds=1), iterations, places, ranks).model
    results["all_ranks"] = measure(model)
    results["groups_of_8"] = measure(in_groups(model, 8))
    results["peak_gb_model_included"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
