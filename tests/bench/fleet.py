"""What a history of thousands of runs costs to ask. In: a number of runs. Out: a table, a JSON file.

    python -m tests.bench.fleet --runs 10000 [--jobs 50] [--hosts 400] [--repeats 3]

Summaries are made, not recorded: jobs take turns, each run on 16 of the hosts; one host is accused in some of its
runs, and every tenth job gets slower for good. Each question is a process of its own, as a user asks it; what an empty
process of the same command takes (`--help`) stands beside it. CPU seconds are of user and system, the least of all
repeats. Not handled: a cold page cache.
"""

import argparse
import random
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.bench.results_file import keep_results
from tests.bench.whole_job import cost_of
from tests.history.made import made
from traceforge.history.addition import add_summaries
from traceforge.history.summary import Summary

_RESULTS = Path(__file__).parent / "results" / "fleet.json"
_PACKAGES = ("duckdb", "numpy", "polars", "traceforge")
_HOSTS_A_RUN = 16
_AT_ONCE = 1_000
_COMMAND = """
import sys
from traceforge.cli import main
sys.argv = ["traceforge", *sys.argv[1:]]
main()
"""


def summaries(runs: int, jobs: int, hosts: int) -> list[Summary]:
    """Summaries of so many runs."""
    draw = random.Random(0)  # noqa: S311 - a made fleet is no secret
    names = [f"node{number:04d}" for number in range(hosts)]
    found = []
    for number in range(runs):
        job, turn = number % jobs, number // jobs
        own = draw.sample(names, _HOSTS_A_RUN)
        is_slower = job % 10 == 0 and turn > runs // jobs // 2
        guilty = names[0] if names[0] in own and draw.random() < 0.5 else None
        iteration_ms = (100.0 + job) * draw.gauss(1, 0.01) * (1.2 if is_slower else 1)
        found.append(made(number, iteration_ms, job=f"job{job:03d}", hosts=own, guilty=guilty, hours=8.0))
    return found


def write_history(path: Path, runs: int, jobs: int, hosts: int) -> None:
    """A history of so many made runs."""
    kept = summaries(runs, jobs, hosts)
    for start in range(0, runs, _AT_ONCE):
        add_summaries(path, kept[start : start + _AT_ONCE])


def measure(runs: int, jobs: int, hosts: int, repeats: int) -> dict[str, Any]:
    """What each question costs.

    Raises:
        RuntimeError: a process failed.
    """
    with tempfile.TemporaryDirectory(prefix="traceforge-bench-") as scratch:
        history, page = Path(scratch) / "fleet.duckdb", Path(scratch) / "fleet.html"
        # In a process of its own: what this one ever held counts as memory of all that it starts.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as generator:
            generator.submit(write_history, history, runs, jobs, hosts).result()
        named = ("fleet_runs", "fleet_hosts", "fleet_findings", "fleet_losses")
        questions = {
            "--help": ["--help"],
            **{f"sql --name {name}": ["sql", history, "--name", name] for name in named},
            "sql: mean of each job": [
                "sql", history, "SELECT job, AVG(mean_iteration_ns) FROM history.run GROUP BY job ORDER BY job",
            ],
            "history report": ["history", "report", history, "-o", page],
            "history report --job": ["history", "report", history, "--job", "job000", "-o", page],
            "history metrics": ["history", "metrics", history],
        }  # fmt: skip
        costs = {name: [cost_of(_COMMAND, *words) for _ in range(repeats)] for name, words in questions.items()}
        return {
            "history_bytes": history.stat().st_size,
            "html_bytes": page.stat().st_size,
            "cpu_s": {name: round(min(one.cpu_s for one in own), 2) for name, own in costs.items()},
            "peak_memory_bytes": {name: max(one.peak_memory_bytes for one in own) for name, own in costs.items()},
        }


def main() -> None:
    """Measure what the command line names and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--hosts", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=_RESULTS, help="where the results are written")
    options = parser.parse_args()
    command = (
        f"python -m tests.bench.fleet --runs {options.runs} --jobs {options.jobs} --hosts {options.hosts}"
        f" --repeats {options.repeats}"
    )
    found = {
        "runs": options.runs,
        **measure(options.runs, options.jobs, options.hosts, options.repeats),
    }
    keep_results(options.output, command, _PACKAGES, found)


if __name__ == "__main__":
    main()
