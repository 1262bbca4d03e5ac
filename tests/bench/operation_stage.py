"""What the stage `operation` takes beside the reading of its file. In: sizes. Out: a table, a JSON file.

    python -m tests.bench.operation_stage --size-mb 300 --size-mb 1200 [--no-shapes]

One big rank is generated, read, aligned and laid out in time, each by a process of its own on one core; then one
process builds the stage and another only opens the same database, which is what the first spends without it. CPU
seconds are those of user and system, memory is the highest of the process, interpreter and libraries among it. The
limits are a quarter of the CPU of reading, and 300 MB. Traces hold shapes, which cost most; without them the stage has
less to do.
Not handled: repeats; shares that differ by less than a fifth of themselves are ties.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.bench.kineto_file import write_kineto_file
from tests.bench.kineto_ingest import OURS, cost_of, reading
from tests.bench.results_file import keep_results

_RESULTS = Path(__file__).parent / "results" / "operation_stage.json"
_PACKAGES = ("duckdb", "msgspec", "numpy", "polars", "traceforge")
_BUILD = """
import json, sys
from pathlib import Path
from time import process_time
from traceforge import api
from traceforge.store.database import Store
from traceforge.store.stage import build_stage
begun = []
with Store(Path(sys.argv[1]), threads=1) as store:
    store.query("SELECT COUNT(*) FROM meta.source")
    for stage in sys.argv[3:]:
        build_stage(store, f"traceforge.{stage}", lambda table, share: begun.append((table, process_time())))
    begun.append(("", process_time()))
spent = {name: round(until - since, 2) for (name, since), (_, until) in zip(begun, begun[1:])}
Path(sys.argv[2]).write_text(json.dumps(spent))
"""
_SHARE_ASKED, _MEMORY_ASKED_BYTES = 0.25, 300 * 10**6


def measure(size_bytes: int, folder: Path, *, has_shapes: bool) -> dict[str, Any]:
    """Cost of reading one rank, and of the stage."""
    trace, database, spent = folder / "rank0.json.gz", folder / "rank0.duckdb", folder / "spent.json"
    events = write_kineto_file(trace, size_bytes, has_shapes=has_shapes)
    read = cost_of(sys.executable, reading(OURS), str(trace), str(database), "native")
    before = cost_of(sys.executable, _BUILD, str(database), str(spent), "align", "timeline")
    opened = cost_of(sys.executable, _BUILD, str(database), str(spent))
    built = cost_of(sys.executable, _BUILD, str(database), str(spent), "operation")
    own_s = round(built.cpu_s - opened.cpu_s, 2)
    return {
        "json_bytes": size_bytes,
        "events": events,
        "has_shapes": has_shapes,
        "costs": {
            "read": asdict(read),
            "align and timeline": asdict(before),
            "open alone": asdict(opened),
            "open and build operation": asdict(built),
        },
        "cpu_s_of_tables": {name: cpu_s for name, cpu_s in json.loads(spent.read_text()).items() if cpu_s},
        "cpu_of_the_stage_by_that_of_reading": round(own_s / read.cpu_s, 3),
        "is_within_limits": own_s <= _SHARE_ASKED * read.cpu_s and built.peak_memory_bytes <= _MEMORY_ASKED_BYTES,
    }


def main() -> None:
    """Measure every size that the command line names and keep the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size-mb", type=int, action="append", help="MB of JSON; may be given several times")
    parser.add_argument("--no-shapes", action="store_true", help="record no inputs of operations, and no steps")
    options = parser.parse_args()
    sizes, runs = options.size_mb or [300], []
    command = "python -m tests.bench.operation_stage " + " ".join(f"--size-mb {size}" for size in sizes)
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="traceforge-bench-") as folder:
            runs.append(measure(size * 10**6, Path(folder), has_shapes=not options.no_shapes))
    keep_results(_RESULTS, command + " --no-shapes" * options.no_shapes, _PACKAGES, {"runs": runs})


if __name__ == "__main__":
    main()
