"""What it costs to ask for the health of very many ranks. In: a number of ranks. Out: a table, a JSON file.

    python -m tests.bench.health --ranks 100000 [--iterations 20] [--repeats 3]

A database of a small job gets a run of so many ranks, eight a host, whose rows are made by SQL: of `align.rank`,
`timeline.iteration`, `timeline.rank_iteration`, `timeline.phase` and what is made of them. One host is slow by a tenth.
Then `sql --name rank_health` and `host_health` are asked, each in a process of its own. CPU seconds are of user and
system, wall seconds beside them, the least of all repeats. Not handled: traces of as many ranks (see `many_ranks`).
"""

import argparse
import json
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.bench.results_file import keep_results
from tests.bench.whole_job import cost_of, write_traces
from traceforge import api
from traceforge.store.database import Store
from traceforge.synth.program import Workload

_RESULTS = Path(__file__).parent / "results" / "health.json"
_PACKAGES = ("duckdb", "polars", "traceforge")
_SLOW_HOST = 7
_COMMAND = """
import sys
from traceforge.cli import main
sys.argv = ["traceforge", "sql", *sys.argv[1:], "--format", "json"]
main()
"""
# Durations in ns: of 100 ms some 80 compute, with scatter of up to 1 %, 8 go to transfer and the host, the rest waits.
_ROWS = f"""
INSERT INTO meta.run BY NAME
  SELECT * REPLACE (9 AS run_id, 'made' AS run_name, $ranks AS world_size) FROM meta.run LIMIT 1;
INSERT INTO align.rank BY NAME
  SELECT 9 AS run_id, r AS rank, 0 AS source_id, 'node' || r // 8 AS host, true AS has_device
  FROM RANGE($ranks) AS _(r);
INSERT INTO timeline.role BY NAME SELECT 9 AS run_id, r AS rank, 0 AS role, NULL AS stage FROM RANGE($ranks) AS _(r);
INSERT INTO timeline.iteration BY NAME
  SELECT 9 AS run_id, i AS iteration, i * 100_000_000 AS start_ns, 100_000_000 AS duration_ns, $ranks AS ranks,
    false AS is_warmup, false AS is_partial
  FROM RANGE($iterations) AS _(i);
CREATE TEMP TABLE work AS
  SELECT i AS iteration, r AS rank,
    CAST(80_000_000 * (1 + 0.01 * RANDOM() + CASE WHEN r // 8 = {_SLOW_HOST} THEN 0.1 ELSE 0 END) AS BIGINT) AS work_ns
  FROM RANGE($iterations) AS _(i), RANGE($ranks) AS __(r);
INSERT INTO timeline.rank_iteration BY NAME
  SELECT 9 AS run_id, iteration, rank, iteration * 100_000_000 AS start_ns, 100_000_000 AS duration_ns,
    0 AS hidden_communication_ns
  FROM work;
INSERT INTO timeline.phase BY NAME
  SELECT 9 AS run_id, iteration, rank, phase,
    CASE phase WHEN 'compute' THEN work_ns WHEN 'transfer' THEN 5_000_000 WHEN 'runtime' THEN 2_000_000
      WHEN 'input' THEN 500_000 WHEN 'idle' THEN 500_000 ELSE 92_000_000 - work_ns END AS duration_ns
  FROM work, UNNEST(['compute', 'wait', 'transfer', 'runtime', 'input', 'idle']) AS _(phase)
  ORDER BY iteration, rank
"""


def write_database(path: Path, ranks: int, iterations: int) -> None:
    """A database with a run of so many ranks that never were."""
    with tempfile.TemporaryDirectory(prefix="traceforge-bench-") as scratch:
        write_traces(Path(scratch), 8, 4, Workload(buckets=2))
        with Store(path) as store:
            api.ingest([Path(scratch)], store, run="small", jobs=1)
    with Store(path) as store:
        for statement in _ROWS.replace("$ranks", str(ranks)).replace("$iterations", str(iterations)).split(";"):
            store.execute(statement)


def measure(ranks: int, iterations: int, repeats: int) -> dict[str, Any]:
    """Cost of each question.

    Raises:
        RuntimeError: a process failed, or the slow host is not the first.
    """
    with tempfile.TemporaryDirectory(prefix="traceforge-bench-") as scratch:
        database = Path(scratch) / "job.duckdb"
        # In a process of its own: what this one ever held counts as memory of all that it starts.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as generator:
            generator.submit(write_database, database, ranks, iterations).result()
        found: dict[str, Any] = {"database_bytes": database.stat().st_size}
        for name in ("rank_health", "host_health"):
            costs, walls_s = [], []
            for _ in range(repeats):
                began = time.perf_counter()
                costs.append(cost_of(_COMMAND, database, "--name", name))
                walls_s.append(time.perf_counter() - began)
            answer = json.loads(costs[0].printed)
            first = next(row for row in answer["rows"] if row[0] == 9)
            if f"node{_SLOW_HOST}" not in first:
                raise RuntimeError(f"{name} names {first}")
            found[name] = {
                "cpu_s": round(min(one.cpu_s for one in costs), 2),
                "wall_s": round(min(walls_s), 2),
                "peak_memory_bytes": max(one.peak_memory_bytes for one in costs),
            }
        return found


def main() -> None:
    """Measure what the command line names and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=100_000)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=_RESULTS, help="where the results are written")
    options = parser.parse_args()
    command = (
        f"python -m tests.bench.health --ranks {options.ranks} --iterations {options.iterations}"
        f" --repeats {options.repeats}"
    )
    found = {
        "ranks": options.ranks,
        "iterations": options.iterations,
        **measure(options.ranks, options.iterations, options.repeats),
    }
    keep_results(options.output, command, _PACKAGES, found)


if __name__ == "__main__":
    main()
