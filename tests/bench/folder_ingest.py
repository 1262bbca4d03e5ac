"""What a folder database costs to fill, beside a file and beside `json.load`. In: sizes. Out: a table, a JSON file.

    python -m tests.bench.folder_ingest --size-mb 300 --files 12 --file-mb 40 --repeats 3

One large trace is read by one process on one core; many of middle size by one and by two workers. Each measured command
is a process of its own; CPU seconds (user and system) are those of it and of the workers that it waited for. Commands
take turns, and of all turns the least counts: what else runs on a machine only ever adds. Stages are not built.
Not handled: a cold page cache; ratios below 1.1 are ties.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.kineto_file import write_kineto_file
from tests.bench.results_file import keep_results

_RESULTS = Path(__file__).parent / "results" / "folder_ingest.json"
_PACKAGES = ("duckdb", "isal", "msgspec", "numpy", "polars", "traceforge")
INGEST = """
import sys
from contextlib import nullcontext
from pathlib import Path
from traceforge import api
from traceforge.files import find_files
from traceforge.records import ReadOptions
from traceforge.store.database import Store
from traceforge.store.ingest import ingest_files
from traceforge.store.workers import ReaderPool
if __name__ == "__main__":
    jobs = int(sys.argv[3])
    with Store(sys.argv[2], threads=1 if jobs == 1 else None) as store:
        with nullcontext() if jobs == 1 else ReaderPool(jobs) as executor:
            ingest_files(store, find_files([Path(sys.argv[1])]), api.sources(), run_name="bench", executor=executor,
                         options=ReadOptions())
"""
_JSON_LOAD = """
import gzip, json, sys
from pathlib import Path
for path in sorted(Path(sys.argv[1]).iterdir()):
    json.load(gzip.open(path))
"""


def cost_of(code: str, arguments: list[str], cores: int) -> dict[str, float]:
    """CPU and wall seconds and the peak memory (bytes, of the largest process) of one command.

    Raises:
        RuntimeError: it failed.
    """
    environment = os.environ | {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], env=environment)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(process.pid, set(sorted(os.sched_getaffinity(0))[-cores:]))
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"the command failed with status {status}")
    kib = 1 if sys.platform == "darwin" else 1024
    wall_s = time.perf_counter() - began
    cpu_s = usage.ru_utime + usage.ru_stime
    return {"cpu_s": round(cpu_s, 2), "wall_s": round(wall_s, 2), "peak_memory_bytes": usage.ru_maxrss * kib}


def measure(traces: Path, scratch: Path, jobs: tuple[int, ...], repeats: int) -> dict[str, dict[str, float]]:
    """The least cost of each command over some rounds, and the size of each database."""
    commands = {"json.load": (_JSON_LOAD, "", 1)}
    for count in jobs:
        commands[f"file, jobs {count}"] = (INGEST, str(scratch / "job.duckdb"), count)
        commands[f"folder, jobs {count}"] = (INGEST, f"{scratch / 'job'}/", count)
    least: dict[str, dict[str, float]] = {}
    for _ in range(repeats):
        for name, (code, database, count) in commands.items():
            cost = cost_of(code, [str(traces), database, str(count)], count)
            if database:
                path = Path(database)
                files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
                cost["database_bytes"] = sum(one.stat().st_size for one in files)
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            least[name] = {key: min(value, least.get(name, cost)[key]) for key, value in cost.items()}
    return least


def main() -> None:
    """Measure what the command line names and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size-mb", type=int, default=300, help="JSON of the one large trace")
    parser.add_argument("--files", type=int, default=12)
    parser.add_argument("--file-mb", type=int, default=40, help="JSON of each of many traces")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="traceforge-bench-") as folder:
        scratch = Path(folder)
        one, many = scratch / "one", scratch / "many"
        one.mkdir()
        many.mkdir()
        write_kineto_file(one / "rank0.json.gz", options.size_mb * 10**6)
        write_kineto_file(many / "rank0.json.gz", options.file_mb * 10**6)
        for rank in range(1, options.files):
            shutil.copy(many / "rank0.json.gz", many / f"rank{rank}.json.gz")
        measured = {
            f"one trace of {options.size_mb} MB": measure(one, scratch, (1,), options.repeats),
            f"{options.files} traces of {options.file_mb} MB": measure(many, scratch, (1, 2), options.repeats),
        }
    command = (
        f"python -m tests.bench.folder_ingest --size-mb {options.size_mb} --files {options.files}"
        f" --file-mb {options.file_mb} --repeats {options.repeats}"
    )
    keep_results(_RESULTS, command, _PACKAGES, {"least_costs": measured})


if __name__ == "__main__":
    main()
