"""What an export of Nsight Systems costs to read, beside a bare read of its rows. In: kernels. Out: a JSON file.

    python -m tests.bench.nsys_ingest --kernels 5000000 --repeats 2

An export of one process holds so many kernels, each with the call that launched it. The peer reads the same columns
by Python's `sqlite3` and keeps nothing. Commands take turns; of all turns the least counts.
Not handled: NVTX ranges, several processes in a file, a cold page cache.
"""

import argparse
import json
import os
import platform
import sqlite3
import tempfile
from importlib.metadata import version
from pathlib import Path

from tests.bench.folder_ingest import INGEST, cost_of

_RESULTS = Path(__file__).parent / "results" / "nsys_ingest.json"
_PACKAGES = ("duckdb", "polars", "traceforge")
_PROCESS = (1 << 48) + (7 << 24)
_NAMES = 300
_SCHEMA = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER);
"""
_BARE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
for query in (
    "SELECT start, end, deviceId, streamId, correlationId, demangledName, shortName FROM CUPTI_ACTIVITY_KIND_KERNEL",
    "SELECT start, end, globalTid, correlationId, nameId FROM CUPTI_ACTIVITY_KIND_RUNTIME",
):
    cursor = connection.execute(query)
    while cursor.fetchmany(122_880):
        pass
"""


def write_export(path: Path, kernels: int) -> None:
    """An export with so many kernels, 1 us apart, each launched 500 ns before it starts."""
    connection = sqlite3.connect(path)
    connection.executescript(_SCHEMA)
    names = [(number, f"void kernel_{number}<float>(float*)") for number in range(_NAMES)]
    connection.executemany("INSERT INTO StringIds VALUES (?, ?)", names)
    launched = ((1000 * n, 1000 * n + 800, 0, 7, n, _PROCESS, n % _NAMES, n % _NAMES) for n in range(1, kernels + 1))
    connection.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?, ?)", launched)
    calls = ((1000 * n - 500, 1000 * n - 100, 0, _PROCESS + 7, n, 5) for n in range(1, kernels + 1))
    connection.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?, ?)", calls)
    connection.commit()
    connection.close()


def main() -> None:
    """Measure what the command line names and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    least: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="traceforge-bench-") as folder:
        export, database = Path(folder, "report.sqlite"), Path(folder, "job.duckdb")
        write_export(export, options.kernels)
        for _ in range(options.repeats):
            for name, code in (("bare sqlite3", _BARE), ("into a file", INGEST)):
                cost = cost_of(code, [str(export), str(database), "1"], 1)
                least[name] = {key: min(value, least.get(name, cost)[key]) for key, value in cost.items()}
                database.unlink(missing_ok=True)
        size_bytes = export.stat().st_size
    results = {
        "command": f"python -m tests.bench.nsys_ingest --kernels {options.kernels} --repeats {options.repeats}",
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()},
        "versions": {name: version(name) for name in _PACKAGES},
        "export_bytes": size_bytes,
        "kernels_a_cpu_s": round(options.kernels / least["into a file"]["cpu_s"]),
        "times_the_bare_read": round(least["into a file"]["cpu_s"] / least["bare sqlite3"]["cpu_s"], 1),
        "least_costs": least,
    }
    _RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(_RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
