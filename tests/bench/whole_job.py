"""How the cost of a whole job grows with its ranks. In: numbers of ranks. Out: a table by stage, a JSON file.

    python -m tests.bench.whole_job --ranks 128 --ranks 512 --ranks 1024 [--iterations 20]

From .json.gz files to a report, by one process of its own for each number of ranks: CPU seconds (user and system) by
stage, its peak memory and the size of the database. The traces are generated first, rank by rank: a data-parallel job
of two all-reduces among all ranks an iteration, whose lists of ranks are shortened as PyTorch shortens them.
What counts is the exponent: 1 is cost in proportion to the number of ranks. Each file is read once, whatever the
number of ranks, so that less than 1 shows costs that do not depend on it.
Not handled: repeats; exponents that differ by less than 0.05 are ties.
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
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

from traceforge.synth.cluster import Cluster
from traceforge.synth.kineto import trace_text
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
spent = {"start": process_time()}
build = api.build_stage
def timed(store, package, on_table):
    start = process_time()
    build(store, package, on_table)
    spent[package.rpartition(".")[2]] = process_time() - start
api.build_stage = timed
start = process_time()
with Store(Path(sys.argv[2])) as store:
    api.ingest([Path(sys.argv[1])], store, run="bench", jobs=1)
spent["ingest"] = process_time() - start - sum(spent[stage] for stage in api.STAGES)
start = process_time()
with api.open_built(Path(sys.argv[2])) as store:
    api.report(store)
spent["report"] = process_time() - start
print(json.dumps(spent))
"""


def write_traces(folder: Path, ranks: int, iterations: int) -> int:
    """Generate a job; returns the bytes of its JSON."""
    job = run(Scenario(f"{ranks} ranks", 0, iterations, cluster=Cluster(ranks // _DEVICES, _DEVICES)))
    written = 0
    for rank in range(ranks):
        text = trace_text(job, rank).encode()
        written += len(text)
        (folder / f"rank{rank}.pt.trace.json.gz").write_bytes(gzip.compress(text, 1, mtime=0))
    return written


def measure(ranks: int, iterations: int) -> dict[str, Any]:
    """Cost of one job.

    Raises:
        RuntimeError: the process failed.
    """
    with tempfile.TemporaryDirectory(prefix="traceforge-bench-") as scratch:
        folder, database = Path(scratch) / "job", Path(scratch) / "job.duckdb"
        folder.mkdir()
        json_bytes = write_traces(folder, ranks, iterations)
        command = [sys.executable, "-c", _CODE, str(folder), str(database)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            printed = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            raise RuntimeError(f"the job failed with status {status}")
        stages = {stage: round(spent, 2) for stage, spent in json.loads(printed).items()}
        kib = 1 if sys.platform == "darwin" else 1024
        return {
            "ranks": ranks,
            "json_bytes": json_bytes,
            "cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
            "cpu_s_by_stage": stages,
            "peak_memory_bytes": usage.ru_maxrss * kib,
            "database_bytes": database.stat().st_size,
        }


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
    parser.add_argument("--iterations", type=int, default=20, help="two collective calls of each rank in each")
    options = parser.parse_args()
    sizes = options.ranks or [128, 512, 1_024]
    jobs = [measure(ranks, options.iterations) for ranks in sizes]
    given = " ".join(f"--ranks {ranks}" for ranks in sizes)
    results = {
        "command": f"python -m tests.bench.whole_job {given} --iterations {options.iterations}",
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()},
        "versions": {name: version(name) for name in _PACKAGES},
        "exponents": exponents(jobs),
        "jobs": jobs,
    }
    _RESULTS.parent.mkdir(exist_ok=True)
    _RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(_RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
