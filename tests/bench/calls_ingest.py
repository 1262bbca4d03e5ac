"""What reading traces full of collectives costs, beside `json.load`, in one run. In: a size. Out: a JSON file.

    python -m tests.bench.calls_ingest [--size-mb 100] [--repeats 3]

The trace is that of a rank of a generated data-parallel job, 1,000 all-reduces in 7,200 events, over and over until the
file has the size; the arguments of calls are about half of its text. Costs are taken as in `folder_ingest`, and reading
alone (text to columns, nothing stored) is weighed against `json.load`, too.
Not handled: other kinds of communication; ratios that differ by less than 1.2 are ties.
"""

import argparse
import gzip
import json
import os
import platform
import tempfile
from importlib.metadata import version
from pathlib import Path

from tests.bench.folder_ingest import measure
from tests.bench.whole_job import cost_of
from traceforge.synth.cluster import Cluster
from traceforge.synth.kineto import trace_text
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario, run

_RESULTS = Path(__file__).parent / "results" / "calls_ingest.json"
_PACKAGES = ("duckdb", "msgspec", "numpy", "polars", "traceforge")
_READ = """
import sys
from pathlib import Path
from traceforge.records import ReadOptions
from traceforge.sources.kineto.reader import read_file
(path,) = Path(sys.argv[1]).iterdir()
read_file(path, lambda batch: None, ReadOptions(), native=sys.argv[2] == "native")
"""


def write_calls_file(path: Path, size_bytes: int) -> int:
    """A file of at least so much text, compressed; returns how many events it has."""
    job = run(Scenario("calls", 0, 10, cluster=Cluster(4, 8), workload=Workload(buckets=100)))
    trace = json.loads(trace_text(job, 0))
    events = ",\n".join(json.dumps(event) for event in trace.pop("traceEvents"))
    times = -(-size_bytes // len(events))
    with gzip.open(path, "wt", compresslevel=1, encoding="utf-8") as file:
        file.write(json.dumps(trace)[:-1] + ', "traceEvents": [\n' + events)
        for _ in range(times - 1):
            file.write(",\n" + events)
        file.write("]}")
    return times * (events.count(",\n") + 1)


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size-mb", type=int, default=100, help="JSON of the trace")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="traceforge-bench-") as folder:
        traces = Path(folder) / "traces"
        traces.mkdir()
        count = write_calls_file(traces / "rank0.json.gz", options.size_mb * 10**6)
        costs = measure(traces, Path(folder), (1,), options.repeats)
        for name in ("native", "Python"):
            least = min(cost_of(_READ, traces, name).cpu_s for _ in range(options.repeats))
            costs[f"reading alone, {name} reader"] = {"cpu_s": round(least, 2)}
    peer = costs["json.load"]["cpu_s"]
    results = {
        "command": f"python -m tests.bench.calls_ingest --size-mb {options.size_mb} --repeats {options.repeats}",
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()},
        "load_average_at_the_end": round(os.getloadavg()[0], 1),
        "versions": {name: version(name) for name in _PACKAGES},
        "events": count,
        "least_costs": costs,
        "times_faster_than_json_load": {name: round(peer / cost["cpu_s"], 1) for name, cost in costs.items()},
    }
    _RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(_RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
