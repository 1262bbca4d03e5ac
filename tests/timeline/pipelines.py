"""Generated pipelines up to the timeline. In: a scenario. Out: `Simulated`: a store, and what is true."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traceforge import api
from traceforge.records import ReadOptions
from traceforge.store.database import Store
from traceforge.store.ingest import ingest_files
from traceforge.store.stage import build_stage
from traceforge.synth.folder import write_scenario
from traceforge.synth.scenario import Scenario, SimulatedJob, run


@dataclass(frozen=True)
class Simulated:
    """A job that was generated and read again."""

    store: Store
    job: SimulatedJob
    truth: dict[str, Any]


def simulated(scenario: Scenario, folder: Path) -> Simulated:
    """A job written to a folder, read into memory, its stages built up to the timeline."""
    write_scenario(scenario, folder, compressed=False)
    store = Store(None, threads=1, is_kept=False)
    files = sorted(folder.glob("*.json"))
    traces = [path for path in files if path.name != "truth.json"]
    ingest_files(store, traces, api.sources(), run_name="job", executor=None, options=ReadOptions())
    for stage in ("align", "timeline"):
        build_stage(store, f"traceforge.{stage}")
    return Simulated(store, run(scenario), json.loads((folder / "truth.json").read_text()))
