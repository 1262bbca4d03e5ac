"""The same made-up job at several scales, as one database; and what it truly does at others."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from traceforge import api
from traceforge.files import find_files
from traceforge.records import ReadOptions
from traceforge.store.database import Store
from traceforge.store.ingest import ingest_files
from traceforge.synth.cluster import Cluster
from traceforge.synth.folder import write_scenario
from traceforge.synth.load import Noise
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario, run

SCENARIO = Scenario("scaling", seed=7, iterations=14, workload=Workload(layers=2), noise=Noise())


def at_scale(hosts: int, **changes: object) -> Scenario:
    """The job on so many hosts of one device each."""
    return replace(SCENARIO, name=f"n{hosts}", cluster=Cluster(nodes=hosts, devices=1), **changes)  # type: ignore[arg-type]


def database_of(*scenarios: Scenario) -> Store:
    """All stages of these jobs, one run each, in memory."""
    store = Store(None, threads=1, is_kept=False)
    with tempfile.TemporaryDirectory() as folder:
        for scenario in scenarios:
            write_scenario(scenario, Path(folder, scenario.name), compressed=False)
            files = find_files([Path(folder, scenario.name)])
            ingest_files(store, files, api.sources(), run_name=scenario.name, executor=None, options=ReadOptions())
    api.analyze(store)
    return store


def true_pace(scenario: Scenario) -> float:
    """Iterations a second of the job as it was made, without any trace of it."""
    ends = run(scenario).events.iteration_ends_ns()
    return 1e9 / float(np.diff(ends).mean())
