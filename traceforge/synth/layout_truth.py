"""What is true of a job's parallel layout. In: a job that was run. Out: its part of `truth.json`.

A pipeline's schedule, why its ranks idle (`bubbles`), what communication is not hidden behind work, and how many tokens
the experts of a rank get. Times are ns; all are lists of iterations, each a list of ranks. Where every rank holds the
whole model there is none of this.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceforge.synth.bubbles import bubbles_of, exposed_ns
from traceforge.synth.experts import tokens_received
from traceforge.synth.scenario import Scenario, SimulatedJob


def parallel_truth(job: SimulatedJob) -> dict[str, Any]:
    """Truth of pipelines, experts, shards and sequence parallelism; nothing of other jobs."""
    cluster = job.scenario.cluster
    truth: dict[str, Any] = {}
    if cluster.pipeline_parallel > 1:
        truth |= {"pipeline": _pipeline(job.scenario), "bubble_ns": _listed(bubbles_of(job)), "links": _links(job)}
    if cluster.expert_parallel > 1:
        truth["tokens_received"] = np.rint(tokens_received(job.load)).astype(np.int64).tolist()
    if (
        max(cluster.pipeline_parallel, cluster.expert_parallel, cluster.shard) > 1
        or job.scenario.workload.sequence_parallel
    ):
        truth["exposed_ns"] = _listed(exposed_ns(job))
    return truth


def _pipeline(scenario: Scenario) -> dict[str, Any]:
    cluster, pipeline = scenario.cluster, scenario.pipeline
    return {
        "schedule": pipeline.schedule,
        "microbatches": pipeline.microbatches,
        "chunks": pipeline.chunks,
        "stages": [list(cluster.ranks_of_stage(stage)) for stage in range(cluster.pipeline_parallel)],
        "layers": list(pipeline.layers_of(cluster.pipeline_parallel, scenario.workload)),
    }


def _links(job: SimulatedJob) -> list[dict[str, Any]]:
    """What the messages from one rank to another take in each iteration once both are there, all of them together."""
    sent: dict[tuple[int, int], list[NDArray[np.float64]]] = {}
    for role in job.roles:
        for part in (part for operation in role.program for part in operation.parts if part.sends):
            for number, source in enumerate(role.ranks):
                destination = job.roles[part.peer].ranks[number]
                sent.setdefault((source, destination), []).append(job.load.message_ns[part.message][:, number])
    return [
        {
            "source_rank": source, "destination_rank": destination, "messages": len(times),
            "transfer_ns": np.rint(np.sum(times, axis=0)).astype(np.int64).tolist(),
        }
        for (source, destination), times in sorted(sent.items())
    ]  # fmt: skip


def _listed(times: Mapping[str, NDArray[np.float64]]) -> dict[str, list[list[int]]]:
    return {kind: np.rint(one).astype(np.int64).tolist() for kind, one in times.items()}
