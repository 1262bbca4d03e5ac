"""What more workers save of a whole job. In: a job's size, numbers of workers. Out: a table, a JSON file.

    python -m tests.bench.by_jobs --ranks 16 --layers 600 --jobs 1 --jobs 2 [--iterations 40] [--repeats 2]

From .json.gz files to a report, by `ingest` into a folder database and `report` of it, as one process with so many
workers. Wall seconds; CPU seconds (user and system) of the main process and of its workers together. The traces are
generated first. The numbers of workers take turns, and of all turns the least counts.
`parallel_share` is the part of the CPU seconds with two or more workers that workers spend; `speed_up` is wall seconds
with the first number of workers over those with this one, which means something on idle cores only.
`most_speed_up` is what the CPU seconds allow: those with the first number over those of the main process and
one worker's part, as if workers always had work and nothing else ran.
Not handled: a cold page cache; that DuckDB uses all cores in one process, too, which makes `speed_up` less.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tests.bench.results_file import keep_results
from tests.bench.whole_job import write_traces
from traceforge.synth.program import Workload

_RESULTS = Path(__file__).parent / "results" / "by_jobs.json"
_PACKAGES = ("duckdb", "msgspec", "numpy", "polars", "traceforge")
_CODE = """
import json, resource, sys
from pathlib import Path
from time import perf_counter
def cpu_s(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime
def main():
    start = perf_counter()
    from traceforge import api
    from traceforge.store.database import Store
    with Store(sys.argv[2]) as store:
        api.ingest([Path(sys.argv[1])], store, run="bench", jobs=int(sys.argv[3]))
    with api.open_built(Path(sys.argv[2])) as store:
        api.report(store)
    print(json.dumps({
        "wall_s": perf_counter() - start,
        "cpu_s_of_main": cpu_s(resource.RUSAGE_SELF),
        "cpu_s_of_workers": cpu_s(resource.RUSAGE_CHILDREN),
    }))
if __name__ == "__main__":
    main()
"""


def measure(traces: Path, scratch: Path, workers: list[int], repeats: int) -> dict[int, dict[str, float]]:
    """The least cost with each number of workers."""
    least: dict[int, dict[str, float]] = {}
    for turn in range(repeats):
        for count in workers:
            command = [sys.executable, "-c", _CODE, str(traces), f"{scratch}/{turn}-{count}/", str(count)]
            cost = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            least[count] = {name: min(spent, least.get(count, cost)[name]) for name, spent in cost.items()}
    return least


def judged(least: dict[int, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Costs with what they come to."""
    first = next(iter(least.values()))
    one = first["cpu_s_of_main"] + first["cpu_s_of_workers"]
    found = {}
    for count, cost in least.items():
        main, workers = cost["cpu_s_of_main"], cost["cpu_s_of_workers"]
        ratios = {"speed_up": first["wall_s"] / cost["wall_s"]}
        if count > 1:
            ratios |= {"parallel_share": workers / (main + workers), "most_speed_up": one / (main + workers / count)}
        found[f"jobs {count}"] = {name: round(value, 3) for name, value in (cost | ratios).items()}
    return found


def main() -> None:
    """Measure what the command line names and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=16, help="files; a multiple of 8, or less")
    parser.add_argument("--layers", type=int, default=600, help="of the model: 600 make files of 91 MB of JSON")
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--buckets", type=int, default=24, help="all-reduces of each iteration")
    parser.add_argument("--jobs", type=int, action="append", help="workers; may be given again, 1 first")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--output", type=Path, default=_RESULTS, help="where the results are written")
    options = parser.parse_args()
    workers, workload = options.jobs or [1, 2], Workload(layers=options.layers, buckets=options.buckets)
    with tempfile.TemporaryDirectory(prefix="traceforge-bench-") as scratch:
        traces = Path(scratch) / "traces"
        traces.mkdir()
        # In a process of its own: memory that this one ever held would count for all that it starts.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as generator:
            json_bytes = generator.submit(write_traces, traces, options.ranks, options.iterations, workload).result()
        least = measure(traces, Path(scratch), workers, options.repeats)
    given = " ".join(f"--jobs {count}" for count in workers)
    command = (
        f"python -m tests.bench.by_jobs --ranks {options.ranks} --layers {options.layers} {given}"
        f" --iterations {options.iterations} --buckets {options.buckets} --repeats {options.repeats}"
    )
    found = {"ranks": options.ranks, "json_bytes": json_bytes, "least_costs": judged(least)}
    keep_results(options.output, command, _PACKAGES, found)


if __name__ == "__main__":
    main()
