"""What is true of a job's parallel layout. In: a job that was run. Out: its part of `truth.json`.

A pipeline's schedule, why its ranks idle (`bubbles`), and what communication is not hidden behind work. Times are ns, a
list of iterations of a list of ranks. Jobs whose ranks all hold the whole model have none of this.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceforge.synth.bubbles import bubbles_of, exposed_ns
from traceforge.synth.scenario import Scenario, SimulatedJob


def parallel_truth(job: SimulatedJob) -> dict[str, Any]:
    """Truth of a pipeline; nothing of other jobs."""
    if job.scenario.cluster.pipeline_parallel == 1:
        return {}
    return {
        "pipeline": _pipeline(job.scenario),
        "bubble_ns": _listed(bubbles_of(job)),
        "exposed_ns": _listed(exposed_ns(job)),
    }


def _pipeline(scenario: Scenario) -> dict[str, Any]:
    cluster, pipeline = scenario.cluster, scenario.pipeline
    return {
        "schedule": pipeline.schedule,
        "microbatches": pipeline.microbatches,
        "chunks": pipeline.chunks,
        "stages": [list(cluster.ranks_of_stage(stage)) for stage in range(cluster.pipeline_parallel)],
        "layers": list(pipeline.layers_of(cluster.pipeline_parallel, scenario.workload)),
    }


def _listed(times: Mapping[str, NDArray[np.float64]]) -> dict[str, list[list[int]]]:
    return {kind: np.rint(one).astype(np.int64).tolist() for kind, one in times.items()}
