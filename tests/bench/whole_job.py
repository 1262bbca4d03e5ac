"""How the cost of a whole job grows with its ranks. In: numbers of ranks. Out: a table by stage, a JSON file.

    python -m tests.bench.whole_job --ranks 128 --ranks 512 --ranks 1024 [--iterations 20] [--buckets 2] [--jobs 1]

From .json.gz files to a report, by one process of its own for each number of ranks: CPU seconds (user and system, of
children, too) by stage and by the scope of tables, the highest memory of the process and its children together, and the
size of the database. Beside it, in the same run, what only unpacking the files takes, and `json.load` of each. The
traces are generated first, rank by rank: a data-parallel job of all-reduces among all ranks, whose lists of ranks are
shortened as PyTorch shortens them.
What counts is the exponent: 1 is cost in proportion to the number of ranks. Each file is read once, whatever the
number of ranks, so that less than 1 shows costs that do not depend on it.
Not handled: repeats; exponents that differ by less than 0.05 are ties. Memory of children is looked at now and then,
and only on Linux.
"""

import argparse
import gzip
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any

from traceforge.synth.cluster import Cluster
from traceforge.synth.kineto import trace_text
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario, run

_RESULTS = Path(__file__).parent / "results" / "whole_job.json"
_PACKAGES = ("duckdb", "msgspec", "numpy", "polars", "traceforge")
_DEVICES = 8
_CODE = """
import json, sys
from pathlib import Path
from time import process_time
from traceforge import api
from traceforge.store.database import Store
from traceforge.store.stage import stage_documents
begun = []
def on_table(table, share):
    begun.append((table, process_time()))
stages = {"start": process_time()}
start = process_time()
with Store(Path(sys.argv[2])) as store:
    api.ingest([Path(sys.argv[1])], store, run="bench", jobs=int(sys.argv[3]), on_table=on_table)
end = process_time()
stages["ingest"] = begun[0][1] - start
scope_of = {one.name: one.scope or "run" for stage in api.STAGES for one in stage_documents(f"traceforge.{stage}")}
scopes = {}
for (table, since), (_, until) in zip(begun, [*begun[1:], ("", end)], strict=True):
    stage = table.partition(".")[0]
    stages[stage] = stages.get(stage, 0) + until - since
    scopes[scope_of[table]] = scopes.get(scope_of[table], 0) + until - since
start = process_time()
with api.open_built(Path(sys.argv[2])) as store:
    api.report(store)
stages["report"] = process_time() - start
print(json.dumps([stages, scopes]))
"""
_PEERS = {
    "inflate": """
import sys
from pathlib import Path
from isal import igzip
for path in Path(sys.argv[1]).iterdir():
    with igzip.open(path) as file:
        while file.read(1 << 20): pass
""",
    "json.load": """
import gzip, json, sys
from pathlib import Path
for path in Path(sys.argv[1]).iterdir(): json.load(gzip.open(path))
""",
}
_LOOK_S = 0.1


def write_traces(folder: Path, ranks: int, iterations: int, workload: Workload) -> int:
    """Generate a job; returns the bytes of its JSON."""
    cluster = Cluster(max(1, ranks // _DEVICES), min(ranks, _DEVICES))
    job = run(Scenario(f"{ranks} ranks", 0, iterations, cluster=cluster, workload=workload))
    written = 0
    for rank in range(ranks):
        text = trace_text(job, rank).encode()
        written += len(text)
        (folder / f"rank{rank}.pt.trace.json.gz").write_bytes(gzip.compress(text, 1, mtime=0))
    return written


def measure(ranks: int, iterations: int, buckets: int, jobs: int) -> dict[str, Any]:
    """Cost of one job.

    Raises:
        RuntimeError: a process failed.
    """
    with tempfile.TemporaryDirectory(prefix="traceforge-bench-") as scratch:
        folder, database = Path(scratch) / "job", Path(scratch) / "job.duckdb"
        folder.mkdir()
        json_bytes = write_traces(folder, ranks, iterations, Workload(buckets=buckets))
        cost = cost_of(_CODE, folder, database, jobs)
        stages, scopes = ({name: round(spent, 2) for name, spent in one.items()} for one in json.loads(cost.printed))
        return {
            "ranks": ranks,
            "json_bytes": json_bytes,
            "cpu_s": round(cost.cpu_s, 2),
            "cpu_s_by_stage": stages,
            "cpu_s_by_scope": scopes,
            "peak_memory_bytes": cost.peak_memory_bytes,
            "database_bytes": database.stat().st_size,
            "cpu_s_of_peers": {name: round(cost_of(code, folder).cpu_s, 2) for name, code in _PEERS.items()},
        }


@dataclass(frozen=True)
class Cost:
    """What a process and its children took: CPU seconds of user and system, and their highest memory together."""

    cpu_s: float
    peak_memory_bytes: int
    printed: str


def cost_of(code: str, *arguments: object) -> Cost:
    """Run Python code in a process of its own.

    Raises:
        RuntimeError: it failed.
    """
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        highest, done = [0], Event()
        watcher = Thread(target=_watch, args=(process.pid, highest, done))
        watcher.start()
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        done.set()
        watcher.join()
        process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise RuntimeError(f"the process failed with status {status}")
    kib = 1 if sys.platform == "darwin" else 1024
    return Cost(usage.ru_utime + usage.ru_stime, max(usage.ru_maxrss * kib, highest[0]), printed)


def _watch(pid: int, highest: list[int], done: Event) -> None:
    """Note the highest memory of a process with its children, what they share counted once, until it is done."""
    while not done.wait(_LOOK_S):
        highest[0] = max(highest[0], sum(map(_own_bytes, _with_children(pid))))


def _with_children(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return []
    return [pid, *(found for child in children for found in _with_children(int(child)))]


def _own_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0  # it has just ended
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def exponents(jobs: list[dict[str, Any]]) -> dict[str, float]:
    """Exponents of cost by ranks, from each number of ranks to the next and from the first to the last."""
    pairs = [*pairwise(jobs), *([(jobs[0], jobs[-1])] if len(jobs) > 2 else [])]
    return {
        f"{amount}, {few['ranks']} to {many['ranks']} ranks": round(
            math.log(many[amount] / few[amount]) / math.log(many["ranks"] / few["ranks"]), 2
        )
        for amount in ("cpu_s", "peak_memory_bytes", "database_bytes")
        for few, many in pairs
    }


def main() -> None:
    """Measure every number of ranks that the command line names and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, action="append", help=f"a multiple of {_DEVICES}; may be given again")
    parser.add_argument("--iterations", type=int, default=20, help="of the job")
    parser.add_argument("--buckets", type=int, default=2, help="all-reduces of each iteration")
    parser.add_argument("--jobs", type=int, default=1, help="files read at once")
    parser.add_argument("--output", type=Path, default=_RESULTS, help="where the results are written")
    options = parser.parse_args()
    sizes = options.ranks or [128, 512, 1_024]
    jobs = [measure(ranks, options.iterations, options.buckets, options.jobs) for ranks in sizes]
    given = " ".join(f"--ranks {ranks}" for ranks in sizes)
    results = {
        "command": f"python -m tests.bench.whole_job {given} --iterations {options.iterations} "
        f"--buckets {options.buckets} --jobs {options.jobs}",
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()},
        "versions": {name: version(name) for name in _PACKAGES},
        "exponents": exponents(jobs),
        "jobs": jobs,
    }
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(options.output.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
