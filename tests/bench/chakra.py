"""Speed of execution traces, beside upstream's tools. In: a corpus of real traces. Out: a table of CPU seconds.

    TRACEFORGE_CORPUS=... POLARS_MAX_THREADS=1 python -m tests.bench.chakra [--factor 16] [--upstream PYTHON]

Every measurement is a process of its own (user + system time, peak memory). `--upstream` names a Python that has
mlc-chakra 1.0.0 with pandas < 3; without it, upstream's rows are left out.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.chakra_inputs import converted_et, lean_et, linked_pair

_BARE_PARSE = """
import sys, time
from chakra.schema.protobuf.et_def_pb2 import Node
data, place, frames = open(sys.argv[1], "rb").read(), 0, []
while place < len(data):
    size = shift = 0
    while True:
        byte = data[place]; place += 1
        size |= (byte & 127) << shift; shift += 7
        if byte < 128: break
    frames.append((place, place + size)); place += size
begin = time.process_time()
for start, end in frames[1:]:
    Node.FromString(data[start:end])
print(time.process_time() - begin)
"""
_COLUMNS = """
import sys, time
from pathlib import Path
from traceforge.sources.chakra.reader import read_file
from traceforge.records import ReadOptions
begin = time.process_time()
print(read_file(Path(sys.argv[1]), lambda batch: None, ReadOptions()).stored_count, file=sys.stderr)
print(time.process_time() - begin)
"""
_DECODE = """
import sys, time
from pathlib import Path
from traceforge.reading.collection import no_garbage_collection
from traceforge.reading.json_elements import ElementReader
from traceforge.reading.stream import ByteStream
from traceforge.sources.pytorch_et.issues import new_log
from traceforge.sources.pytorch_et.layout import layout_of
begin, issues, count = time.process_time(), new_log(), 0
with ByteStream(Path(sys.argv[1])) as stream, no_garbage_collection():
    for unit in ElementReader(stream, stream.read(65536), layout_of(issues), issues).units():
        count += len(unit) if isinstance(unit, list) else 0
print(count, file=sys.stderr)
print(time.process_time() - begin)
"""
_READ_ET = _COLUMNS.replace("sources.chakra", "sources.pytorch_et")
_STAGES = """
import sys, time
from pathlib import Path
from traceforge.api import STAGES, sources
from traceforge.records import ReadOptions
from traceforge.store.database import Store
from traceforge.store.ingest import ingest_files
from traceforge.store.stage import build_stage
paths = [Path(name) for name in sys.argv[2:]]
with Store(Path(sys.argv[1]), threads=1) as store:
    ingest_files(store, paths, sources(), run_name="job", executor=None, options=ReadOptions())
    for stage in STAGES[:STAGES.index("graph")]:
        build_stage(store, f"traceforge.{stage}")
    begin = time.process_time()
    build_stage(store, "traceforge.graph")
    print(store.query("SELECT method, matched_count, operation_count, name_agreement FROM graph.link").rows(),
        file=sys.stderr)
    print(time.process_time() - begin)
"""


def measured(command: list[str], folder: Path) -> dict[str, float | str]:
    """CPU seconds and peak MB of a whole process, and what it printed: seconds of the part that counts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    watched = ["/usr/bin/env", "python3", "-c", _WATCH, *command]
    environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
    done = subprocess.run(watched, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    *said, peak = done.stdout.split()
    return {
        "whole_cpu_s": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2),
        "part_cpu_s": round(float(said[-1]), 3) if said and done.returncode == 0 else float("nan"),
        "peak_mb": round(int(peak) / 1024),
        "said": done.stderr.strip()[-160:],
    }


_WATCH = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(done.returncode)
"""


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--factor", type=int, default=16)
    arguments.add_argument("--upstream", type=Path)
    given = arguments.parse_args()
    corpus = Path(os.environ["TRACEFORGE_CORPUS"])
    with tempfile.TemporaryDirectory(prefix="traceforge-bench-") as name:
        folder = Path(name)
        found = measurements(corpus, given.factor, given.upstream, folder)
    print(json.dumps(found, indent=1))


def measurements(corpus: Path, factor: int, upstream: Path | None, folder: Path) -> dict[str, object]:
    """All rows, by what was measured."""
    ours = [sys.executable, "-c"]
    root = Path(__file__).parents[2]
    os.environ["PYTHONPATH"] = str(root)
    converted, lean = folder / "converted.et", folder / "lean.et"
    nodes = converted_et(corpus, 46, converted)
    lean_et(300_000, lean)
    host, device, operations = linked_pair(corpus, factor, folder)
    rows: dict[str, object] = {
        "inputs": {
            "converted.et": [nodes, converted.stat().st_size],
            "lean.et": [300_000, lean.stat().st_size],
            "execution trace": [operations, host.stat().st_size],
            "timeline": device.stat().st_size,
        }
    }
    for path in (converted, lean):
        rows[f"{path.name}: into columns"] = measured([*ours, _COLUMNS, str(path)], root)
        if upstream:
            rows[f"{path.name}: bare parse by upb"] = measured([str(upstream), "-c", _BARE_PARSE, str(path)], folder)
    rows["execution trace: decoded"] = measured([*ours, _DECODE, str(host)], root)
    rows["execution trace: into columns"] = measured([*ours, _READ_ET, str(host)], root)
    rows["linked and stored"] = measured([*ours, _STAGES, str(folder / "job.duckdb"), str(host), str(device)], root)
    if upstream:
        linker = [str(upstream.parent / "chakra_trace_link"), "--rank", "0", "--chakra-host-trace", host.name]
        linker += ["--chakra-device-trace", device.name, "--output-file", "linked.json"]
        rows["chakra_trace_link"] = measured(linker, folder)
    return rows


if __name__ == "__main__":
    main()
