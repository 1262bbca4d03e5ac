"""What short questions cost from the start of the process. In: a sample. Out: a table, a JSON file.

    python -m tests.bench.start_up [--repeats 9]

Each command is a process of its own that finds its modules compiled, as after a first use; CPU seconds are of user and
system, the median of all repeats. An empty process of Python and one that imports DuckDB stand beside them.
"""

import argparse
import os
import statistics
import tempfile
from pathlib import Path

from tests.bench.results_file import keep_results
from tests.bench.whole_job import cost_of
from tests.conftest import ROOT
from traceforge import api
from traceforge.store.database import Store

_RESULTS = Path(__file__).parent / "results" / "start_up.json"
_PACKAGES = ("duckdb", "traceforge")
_COMMAND = "import sys; from traceforge.cli import main; sys.argv[0] = 'traceforge'; main()"


def measure(repeats: int) -> dict[str, float]:
    """CPU seconds of each command."""
    with tempfile.TemporaryDirectory(prefix="traceforge-bench-") as scratch:
        database = Path(scratch) / "job.duckdb"
        with Store(database) as store:
            api.ingest([ROOT / "sample_traces" / "healthy"], store, jobs=1)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(scratch) / "compiled")
        questions = {
            "an empty process": ("pass",),
            "import duckdb": ("import duckdb",),
            "traceforge --help": (_COMMAND, "--help"),
            "traceforge sql DB 'select 1'": (_COMMAND, "sql", database, "select 1"),
            "traceforge info DB": (_COMMAND, "info", database),
            "traceforge info DB --json": (_COMMAND, "info", database, "--json"),
        }
        for words in questions.values():
            cost_of(*words)
        return {
            name: round(statistics.median(cost_of(*words).cpu_s for _ in range(repeats)), 3)
            for name, words in questions.items()
        }


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    command = f"python -m tests.bench.start_up --repeats {options.repeats}"
    found = {
        "cpu_s": measure(options.repeats),
    }
    keep_results(_RESULTS, command, _PACKAGES, found)


if __name__ == "__main__":
    main()
