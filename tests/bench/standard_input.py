"""What a tar on standard input costs to read, beside a small one. In: sizes. Out: a JSON file.

    python -m tests.bench.standard_input --files 8 --file-mb 400

Traces of PyTorch's profiler come as a tar of plain JSON, of gzip files, and as a compressed tar (gzip), from a pipe, as
`aws s3 cp … - | traceforge ingest - --db job.duckdb` has it; by each the large job and one of a tenth of its members'
size. Peak memory is that of the largest process (user and system CPU that of all), and the ratio of both sizes' peaks
says whether memory grows with the tar. Not handled: speed of the network, the disk that the copy needs.
"""

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.kineto_file import write_kineto_file
from tests.bench.results_file import keep_results

_RESULTS = Path(__file__).parent / "results" / "standard_input.json"
_PACKAGES = ("duckdb", "isal", "msgspec", "polars", "traceforge")
_KINDS = {"tar of .json": "cf", "tar of .json.gz": "cf", "tar.gz of .json": "czf"}


def write_job(folder: Path, files: int, file_mb: int, *, is_plain: bool) -> None:
    """Files of ranks, of one content."""
    folder.mkdir()
    first = folder / "rank0.json.gz"
    write_kineto_file(first, file_mb * 10**6)
    if is_plain:
        with gzip.open(first) as packed, (folder / "rank0.json").open("wb") as plain:
            shutil.copyfileobj(packed, plain, 1024 * 1024)
        first.unlink()
        first = folder / "rank0.json"
    for rank in range(1, files):
        os.link(first, folder / first.name.replace("rank0", f"rank{rank}"))


def cost_of_pipe(folder: Path, options: str, database: Path) -> dict[str, float]:
    """Bytes that came, CPU and wall seconds, and the peak memory of a command that reads a folder's tar from a pipe.

    Raises:
        RuntimeError: it failed.
    """
    # Hard links would come as links: --hard-dereference writes each as a file.
    tar = ["tar", "--hard-dereference", f"-{options}", "-", "-C", str(folder), "."]
    counted = subprocess.run(f"{' '.join(tar)} | wc -c", shell=True, capture_output=True, check=True)  # noqa: S602
    began = time.perf_counter()
    with subprocess.Popen(tar, stdout=subprocess.PIPE) as source:
        command = [sys.executable, "-m", "traceforge", "ingest", "-", "--db", str(database), "--quiet"]
        process = subprocess.Popen(command, stdin=source.stdout)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"the command failed with status {status}")
    wall_s, cpu_s = time.perf_counter() - began, usage.ru_utime + usage.ru_stime
    database.unlink()
    return {
        "tar_bytes": int(counted.stdout),
        "cpu_s": round(cpu_s, 2),
        "wall_s": round(wall_s, 2),
        "peak_memory_bytes": usage.ru_maxrss * 1024,
    }


def main() -> None:
    """Measure what the command line names and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--file-mb", type=int, default=400, help="JSON of each trace")
    options = parser.parse_args()
    found: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory(prefix="traceforge-bench-") as scratch:
        for kind, flags in _KINDS.items():
            costs = {}
            for name, file_mb in (("large", options.file_mb), ("small", options.file_mb // 10)):
                folder = Path(scratch, "job")
                write_job(folder, options.files, file_mb, is_plain=not kind.endswith("gz"))
                costs[name] = cost_of_pipe(folder, flags, Path(scratch, "job.duckdb"))
                shutil.rmtree(folder)
            growth = costs["large"]["peak_memory_bytes"] / costs["small"]["peak_memory_bytes"]
            found[kind] = {**costs, "peak_memory_growth": round(growth, 2)}
    command = f"python -m tests.bench.standard_input --files {options.files} --file-mb {options.file_mb}"
    keep_results(_RESULTS, command, _PACKAGES, {"by_kind": found})


if __name__ == "__main__":
    main()
