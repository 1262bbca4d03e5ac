"""Generated pipelines up to the timeline. In: a scenario. Out: `Simulated`: a store, and what is true."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.given import built
from traceforge import api
from traceforge.records import ReadOptions
from traceforge.store.database import Store
from traceforge.store.ingest import ingest_files
from traceforge.synth.folder import write_scenario
from traceforge.synth.scenario import Scenario, SimulatedJob, run

ASKED = [
    f"timeline.{name}"
    for name in (
        "bubble", "message", "microbatch", "other_schedule", "phase", "pipeline", "rank_iteration", "schedule"
    )
]  # fmt: skip
"""What tests of pipelines ask."""


@dataclass(frozen=True)
class Simulated:
    """A job that was generated and read again."""

    store: Store
    job: SimulatedJob
    truth: dict[str, Any]


def simulated(scenario: Scenario, folder: Path) -> Simulated:
    """A job written to a folder, read into memory, with the tables that tell of pipelines."""
    write_scenario(scenario, folder, compressed=False)
    store = Store(None, threads=1, is_kept=False)
    files = sorted(folder.glob("*.json"))
    traces = [path for path in files if path.name != "truth.json"]
    ingest_files(store, traces, api.sources(), run_name="job", executor=None, options=ReadOptions())
    return Simulated(built(store, *ASKED), run(scenario), json.loads((folder / "truth.json").read_text()))


def truth_alone(scenario: Scenario, folder: Path) -> dict[str, Any]:
    """What is true of a job of which no trace is written."""
    write_scenario(scenario, folder, left_out=frozenset(range(scenario.cluster.ranks)))
    found: dict[str, Any] = json.loads((folder / "truth.json").read_text())
    return found
