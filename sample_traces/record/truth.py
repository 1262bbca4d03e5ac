"""What was injected, as measured by those who injected it.

In:   each rank's steps.json (ns, monotonic clock) and the `Switched` times of a network fault.
Out:  the contents of truth.json.
Idea: nothing here is taken from the traces; they are what the truth is held against.
Not:  the cost of a fault in a perfect model; `step_excess_ns` is what the steps really took longer.
A run that something else disturbed is refused (`NotCalmError`), for its truth would not be the whole truth.
"""

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from run import RecordingError, Switched
from scenarios import (
    NIC_BITS_PER_S,
    RECORDED_STEPS,
    UPLINK_BITS_PER_S,
    WORLD_SIZE,
    Scenario,
)

SCHEMA_VERSION = 1
CALM = 1.3
"""A step may last this many times the median of its kind (faulty, clean)."""
Steps = list[dict[str, int]]
"""One rank's rows of steps.json; the row's index is its step."""


class NotCalmError(RecordingError):
    """Something that is not part of the scenario disturbed the run."""


def truth(scenario: Scenario, raw: Path, switched: Switched) -> dict[str, Any]:
    """Return truth.json's contents; raise `NotCalmError` if they would not explain the run."""
    ranks = [json.loads((raw / f"rank{rank}.steps.json").read_text()) for rank in range(WORLD_SIZE)]
    check_calm(scenario, ranks)
    if switched.on_ns:
        check_silence(ranks, scenario.steps[0], switched.on_ns)
        if scenario.steps[-1] < RECORDED_STEPS[-1]:
            check_silence(ranks, scenario.steps[-1] + 1, switched.off_ns)
    return {
        "schema_version": SCHEMA_VERSION,
        "scenario": scenario.name,
        "world_size": WORLD_SIZE,
        "hosts": [f"node{rank}" for rank in range(WORLD_SIZE)],
        "data_groups": scenario.data_groups,
        "tensor_groups": scenario.tensor_groups,
        "faults": [fault(scenario, ranks, switched)] if scenario.kind else [],
        "iterations": list(RECORDED_STEPS),
        "step_ns": per_rank(ranks, step_ns),
    }


def fault(scenario: Scenario, ranks: list[Steps], switched: Switched) -> dict[str, Any]:
    """Return one fault: what, who, when, how much."""
    common = {
        "kind": scenario.kind,
        "mode": scenario.mode,
        "rank": scenario.rank,
        "iterations": list(scenario.steps),
        "step_excess_ns": step_excess_ns(scenario, ranks),
    }
    if scenario.kind == "uplink_congestion":
        return common | uplink_congestion(scenario, switched)
    if scenario.kind == "slow_nic":
        return common | {
            "link": f"node{scenario.rank} <-> rack switch, both directions",
            "normal_bits_per_s": NIC_BITS_PER_S,
            "fault_bits_per_s": scenario.slow_nic_bits_per_s,
        }
    rows = [ranks[scenario.rank or 0][step] for step in scenario.steps]
    if scenario.kind == "input_stall":
        return common | {"injected_ns_per_iteration": [row["stall_ns"] for row in rows]}
    return common | {
        "injected_ns_per_iteration": [row["extra_cpu_ns"] for row in rows],
        "injected_wall_ns_per_iteration": [row["extra_wall_ns"] for row in rows],
        "thread_cpu_ns": per_rank(ranks, lambda row: row["cpu_ns"]),
    }


def uplink_congestion(scenario: Scenario, switched: Switched) -> dict[str, Any]:
    """Return the uplink's rate and what the other traffic took of it."""
    sent_bits = switched.measured["sent_bytes"] * 8
    return {
        "link": "uplink, rack 0 -> rack 1",
        "normal_bits_per_s": UPLINK_BITS_PER_S,
        "competing_tcp_flows": scenario.traffic_flows,
        "competing_bits_per_s": round(sent_bits * 1e9 / switched.measured["wall_ns"]),
    }


def step_excess_ns(scenario: Scenario, ranks: list[Steps]) -> list[int] | None:
    """Return how much longer than the median clean step each faulty one took; None without clean steps."""
    faulty, clean = slowest_ns(scenario, ranks)
    if not clean:
        return None
    return [round(duration_ns - statistics.median(clean)) for duration_ns in faulty]


def slowest_ns(scenario: Scenario, ranks: list[Steps]) -> tuple[list[int], list[int]]:
    """Return the slowest rank's time of each recorded step: of the faulty steps, of the clean ones."""
    faulty: list[int] = []
    clean: list[int] = []
    for step in RECORDED_STEPS:
        (faulty if step in scenario.steps else clean).append(max(step_ns(steps[step]) for steps in ranks))
    return faulty, clean


def per_rank(ranks: list[Steps], value: Callable[[dict[str, int]], int]) -> dict[str, list[int]]:
    """Return a value of every recorded step, by rank."""
    return {str(rank): [value(steps[i]) for i in RECORDED_STEPS] for rank, steps in enumerate(ranks)}


def step_ns(row: dict[str, int]) -> int:
    """Return how long a rank's step took, from asking for its batch to the optimizer's end."""
    return row["end_ns"] - row["start_ns"]


def check_calm(scenario: Scenario, ranks: list[Steps]) -> None:
    """Raise if a step lasted much longer than others of its kind."""
    for durations_ns in slowest_ns(scenario, ranks):
        if durations_ns and max(durations_ns) > CALM * statistics.median(durations_ns):
            raise NotCalmError(
                f"a step lasted {max(durations_ns) / 1e6:.0f} ms, the median of its kind is "
                f"{statistics.median(durations_ns) / 1e6:.0f} ms; is the machine busy?"
            )


def check_silence(ranks: list[Steps], step: int, switched_ns: int) -> None:
    """Raise unless every all-reduce of the step before had ended, and none of `step` had begun."""
    ended_ns = max(steps[step - 1]["backward_end_ns"] for steps in ranks)
    begun_ns = min(steps[step]["backward_start_ns"] for steps in ranks)
    if not ended_ns < switched_ns < begun_ns:
        raise NotCalmError(
            f"the network was switched {(switched_ns - ended_ns) / 1e6:.1f} ms after the traffic of step "
            f"{step - 1} and {(begun_ns - switched_ns) / 1e6:.1f} ms before that of step {step}"
        )
