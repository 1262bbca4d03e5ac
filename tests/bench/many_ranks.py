"""What a job of thousands of ranks costs in parts. In: numbers of ranks. Out: a table, a JSON file.

    python -m tests.bench.many_ranks --ranks 1000 --ranks 10000 [--parts 20] [--iterations 10] [--buckets 2]

Small traces are generated rank by rank; `ingest --part` reads them into a folder, one part after another as if each
were a machine, and `merge` makes the database, each in a process of its own. CPU seconds are of user and system;
memory is the highest of a process and its children. `merge` is also told by stage and by its costliest tables, and
`report` renders the page of what it made.
Not handled: parts at the same time; repeats; a cold page cache.
"""

import argparse
import json
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.bench.results_file import keep_results
from tests.bench.whole_job import cost_of, write_traces
from traceforge.synth.program import Workload

_RESULTS = Path(__file__).parent / "results" / "many_ranks.json"
_PACKAGES = ("duckdb", "msgspec", "numpy", "polars", "traceforge")
_DEAREST = 12
_PART = """
import sys
from traceforge.cli import main
sys.argv = ["traceforge", "ingest", sys.argv[1], "--db", sys.argv[2], "--part", sys.argv[3], "--jobs", "1", "--quiet"]
main()
"""
_MERGE = """
import json, sys
from pathlib import Path
from time import process_time
from traceforge.job_array import merge
begun = [("merge of parts", process_time())]
merge(Path(sys.argv[1]), on_table=lambda table, share: begun.append((table, process_time())))
ends = [*(when for _, when in begun[1:]), process_time()]
print(json.dumps([(table, end - start) for (table, start), end in zip(begun, ends, strict=True)]))
"""
_REPORT = """
import sys
from pathlib import Path
from traceforge import api
with api.open_built(Path(sys.argv[1])) as store:
    print(len(api.report(store).html.encode()))
"""


def measure(ranks: int, parts: int, iterations: int, buckets: int) -> dict[str, Any]:
    """Cost of one job, from its traces to its database.

    Raises:
        RuntimeError: a process failed.
    """
    with tempfile.TemporaryDirectory(prefix="traceforge-bench-") as scratch:
        traces, database = Path(scratch) / "job", Path(scratch) / "database"
        traces.mkdir()
        # In a process of its own: what this one ever held counts as memory of all that it starts.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as generator:
            json_bytes = generator.submit(write_traces, traces, ranks, iterations, Workload(buckets=buckets)).result()
        read = [cost_of(_PART, traces, f"{database}/", f"{part}/{parts}") for part in range(1, parts + 1)]
        merged, reported = cost_of(_MERGE, database), cost_of(_REPORT, f"{database}/")
        cpu_s = sum(part.cpu_s for part in read)
        return {
            "ranks": ranks,
            "trace_bytes": size_of(traces),
            "json_bytes": json_bytes,
            "parts": {
                "number": parts,
                "cpu_s": round(cpu_s, 1),
                "cpu_ms_per_rank": round(1e3 * cpu_s / ranks, 1),
                "peak_memory_bytes": max(part.peak_memory_bytes for part in read),
            },
            "merge": {
                "cpu_s": round(merged.cpu_s, 1),
                "cpu_ms_per_rank": round(1e3 * merged.cpu_s / ranks, 1),
                "peak_memory_bytes": merged.peak_memory_bytes,
                **by_table(json.loads(merged.printed)),
            },
            "report": {
                "cpu_s": round(reported.cpu_s, 1),
                "peak_memory_bytes": reported.peak_memory_bytes,
                "page_bytes": int(reported.printed),
            },
            "facts_bytes": size_of(database / "facts"),
            "catalogue_bytes": (database / "catalogue.duckdb").stat().st_size,
        }


def by_table(spent: list[tuple[str, float]]) -> dict[str, dict[str, float]]:
    """CPU seconds of the main process by stage, and those of the costliest tables."""
    stages: dict[str, float] = {}
    for table, cpu_s in spent:
        stage = table.partition(".")[0]
        stages[stage] = stages.get(stage, 0.0) + cpu_s
    dearest = sorted(spent, key=lambda one: -one[1])[:_DEAREST]
    return {
        "cpu_s_by_stage": {stage: round(cpu_s, 1) for stage, cpu_s in stages.items()},
        "cpu_s_of_dearest": {table: round(cpu_s, 1) for table, cpu_s in dearest},
    }


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())


def main() -> None:
    """Measure every number of ranks that the command line names and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, action="append", help="a multiple of 8; may be given again")
    parser.add_argument("--parts", type=int, default=20, help="of the job array")
    parser.add_argument("--iterations", type=int, default=10, help="of the job")
    parser.add_argument("--buckets", type=int, default=2, help="all-reduces of each iteration")
    parser.add_argument("--output", type=Path, default=_RESULTS, help="where the results are written")
    options = parser.parse_args()
    sizes = options.ranks or [1_000, 10_000]
    jobs = [measure(ranks, options.parts, options.iterations, options.buckets) for ranks in sizes]
    given = " ".join(f"--ranks {ranks}" for ranks in sizes)
    command = (
        f"python -m tests.bench.many_ranks {given} --parts {options.parts}"
        f" --iterations {options.iterations} --buckets {options.buckets}"
    )
    keep_results(options.output, command, _PACKAGES, {"jobs": jobs})


if __name__ == "__main__":
    main()
