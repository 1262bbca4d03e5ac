"""How fast a large Kineto file becomes a database, beside its peers, in one run. In: sizes. Out: a table, a JSON file.

    python -m tests.bench.kineto_ingest --size-gb 1.2 --size-gb 4 --hta-python HTA_VENV/bin/python

Both readers of traceforge are measured into a file: the scanner in C, and the Python reader that installations without
it use; the scanner also into a folder, which is what large jobs are advised to have.
Each measured command is a process of its own, on one core where the platform can pin it; its CPU seconds (user and
system) and its peak memory are those that the kernel counted. All read the same .json.gz, which is generated first.
Not handled: repeats; ratios below 1.2 are ties.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from tests.bench.kineto_file import write_kineto_file
from traceforge.sources.kineto.native import Scanner

_RESULTS = Path(__file__).parent / "results" / "kineto_ingest.json"
_PACKAGES = ("duckdb", "isal", "msgspec", "numpy", "polars", "traceforge")
_INGEST = """
import sys
from functools import partial
from pathlib import Path
from traceforge import api
from traceforge.records import ReadOptions
from traceforge.store.database import Store
from traceforge.sources.kineto import SOURCE
from traceforge.store.ingest import ingest_files
class ChosenReader:
    name, recognises = SOURCE.name, SOURCE.recognises
    read = staticmethod(partial(SOURCE.read, native=sys.argv[3] == "native"))
with Store(sys.argv[2], threads=1) as store:
    ingest_files(store, [Path(sys.argv[1])], api.sources() | {"kineto": ChosenReader()}, run_name="bench",
                 executor=None,
                 options=ReadOptions())
"""
OURS, OURS_IN_FOLDER, OURS_IN_PYTHON = "traceforge", "traceforge, into a folder", "traceforge, Python reader"
_COMMANDS = {
    OURS: _INGEST,
    OURS_IN_FOLDER: _INGEST,
    OURS_IN_PYTHON: _INGEST,
    "isal inflate": "import sys; from isal import igzip; f = igzip.open(sys.argv[1])\nwhile f.read(1 << 20): pass",
}
_JSON_LOAD = "import gzip, json, sys; json.load(gzip.open(sys.argv[1]))"
_LARGEST_HELD_BYTES = 2 * 10**9  # beyond, peers need more memory than most machines have
_HTA = """
import sys
from hta.common.trace_parser import parse_trace_dataframe
from hta.configs.parser_config import ParserConfig
parse_trace_dataframe(sys.argv[1], ParserConfig.get_default_cfg())
"""


@dataclass(frozen=True)
class Cost:
    """What one process took: CPU seconds of user and system, and its memory at its highest, bytes."""

    cpu_s: float
    peak_memory_bytes: int


def cost_of(python: str, code: str, *arguments: str) -> Cost:
    """Run Python code in a process of its own and tell its cost.

    Raises:
        RuntimeError: the process failed.
    """
    environment = os.environ | {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([python, "-c", code, *arguments], env=environment, stdout=subprocess.DEVNULL)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{python} failed with status {status}")
    kib = 1 if sys.platform == "darwin" else 1024
    return Cost(round(usage.ru_utime + usage.ru_stime, 2), usage.ru_maxrss * kib)


def reading(name: str) -> str:
    """The code of a command that reads a file: paths of trace and database, and which reader, are its arguments."""
    return _COMMANDS[name]


def measure(size_bytes: int, folder: Path, hta_python: str | None) -> dict[str, object]:
    """Costs of all commands on one generated file, and what follows from them."""
    trace, database = folder / "rank0.json.gz", folder / "rank0.duckdb"
    events = write_kineto_file(trace, size_bytes)
    holds_in_memory = {} if size_bytes > _LARGEST_HELD_BYTES else {"json.load": (sys.executable, _JSON_LOAD)}
    commands = {name: (sys.executable, code) for name, code in _COMMANDS.items()} | holds_in_memory
    if hta_python and holds_in_memory:
        commands["Holistic Trace Analysis"] = (hta_python, _HTA)
    costs: dict[str, Cost] = {}
    database_bytes = 0
    for name, (python, code) in commands.items():
        reader = "python" if name == OURS_IN_PYTHON else "native"
        target = f"{folder}/database/" if name == OURS_IN_FOLDER else str(database)
        costs[name] = cost_of(python, code, str(trace), target, reader)
        if name == OURS:
            database_bytes = database.stat().st_size
        database.unlink(missing_ok=True)
        shutil.rmtree(folder / "database", ignore_errors=True)
    ours, in_folder = costs[OURS].cpu_s, costs[OURS_IN_FOLDER].cpu_s
    return {
        "json_bytes": size_bytes,
        "gz_bytes": trace.stat().st_size,
        "events": events,
        "costs": {name: asdict(cost) for name, cost in costs.items()},
        "times_the_cpu_of_traceforge": {name: round(cost.cpu_s / ours, 2) for name, cost in costs.items()},
        "times_the_cpu_into_a_folder": {name: round(cost.cpu_s / in_folder, 2) for name, cost in costs.items()},
        "times_the_cpu_of_the_python_reader": {
            name: round(cost.cpu_s / costs[OURS_IN_PYTHON].cpu_s, 2) for name, cost in costs.items()
        },
        "database_share_of_json": round(database_bytes / size_bytes, 4),
        "mb_of_json_per_cpu_s": round(size_bytes / 1e6 / ours),
    }


def main() -> None:
    """Measure every size that the command line names and write the results."""
    if Scanner is None:
        sys.exit("the scanner was not built: pip install -e . with a C compiler at hand")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size-gb", type=float, action="append", help="GB of JSON; may be given several times")
    parser.add_argument("--hta-python", help="a Python that has Holistic Trace Analysis; left out without")
    options = parser.parse_args()
    sizes = options.size_gb or [1.2]
    results: dict[str, object] = {
        "command": "python -m tests.bench.kineto_ingest " + " ".join(f"--size-gb {size}" for size in sizes),
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()},
        "versions": {name: version(name) for name in _PACKAGES},
    }
    runs = []
    _RESULTS.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="traceforge-bench-") as folder:
        for size in sizes:
            runs.append(measure(round(size * 1e9), Path(folder), options.hta_python))
            _RESULTS.write_text(json.dumps(results | {"runs": runs}, indent=2) + "\n", encoding="utf-8")
    print(_RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
