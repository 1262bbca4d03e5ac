"""Runs every recipe of attack once and writes what came of it to RESULTS.md: exit code, CPU seconds, peak memory.

    .venv/bin/python -m tests.fuzz.recipes            # all; about five minutes
    .venv/bin/python -m tests.fuzz.recipes names gz   # those whose name holds one of the words

A recipe passes where the command ends with the documented exit code, within 60 CPU seconds and 1 GB.
"""

import gzip
import io
import os
import pickle
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import zstandard

from tests.conftest import ROOT
from traceforge.synth.cluster import Cluster
from traceforge.synth.folder import write_scenario
from traceforge.synth.scenario import Scenario

_CPU_S, _PEAK_MB = 60, 1000
_RESULTS = ROOT / "tests/fuzz/RESULTS.md"
# Between us and the command: a child's peak counts from the memory of the process that started it.
_MEASURE = """import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stderr=subprocess.STDOUT).returncode
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print("#", code, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3)"""
_TOP = """# What attacks come to

Written by `python -m tests.fuzz.recipes`: each recipe once, `--jobs 1`. As promised means: the documented exit code, no
traceback, at most 60 CPU seconds and 1 GB.

| recipe | input MB | exit code | CPU s | peak MB | as promised |
|---|---|---|---|---|---|"""
_HEAD = b'{"schemaVersion":1,"distributedInfo":{"rank":0,"world_size":1},"traceEvents":[\n'
_LINE = '{"ph":"X","cat":"cpu_op","name":"%s","pid":1,"tid":%d,"ts":%d.000,"dur":0.500,"args":{%s}}'
_THREAD = '{"ph":"M","name":"thread_name","pid":1,"tid":%d,"ts":0.0,"args":{"name":"thread %d of the pool"}}'
_DUMP = """{"version": "2.9", "pg_config": {}, "pg_status": {}, "entries": [
{"collective_seq_id": 1, "time_created_ns": -9223372036854775809, "profiling_name": "nccl:all_reduce"}]}"""
_INIT = "node1:100:200 [0] NCCL INFO ncclCommInitRank comm 0x%x rank 0 nranks 8 cudaDev 0 busId 1b000 - Init START\n"

_GROUP = '{"pg_name":"%d","pg_desc":"group %d","backend_config":"cuda:nccl","pg_size":8,"ranks":[0,1,2,3,4,5,6,7]}'

Made = Callable[[Path], None]


def job(folder: Path, ranks: int = 2) -> list[Path]:
    """Traces of a small job, one a rank."""
    write_scenario(Scenario("job", iterations=6, cluster=Cluster(1, ranks)), folder)
    return sorted(folder.glob("rank*"))


def kineto(path: Path, events: Iterator[str]) -> None:
    with path.open("wb") as file:
        file.write(_HEAD)
        for number, event in enumerate(events):
            file.write(b",\n" * bool(number) + event.encode())
        file.write(b"]}\n")


def event(number: int, name: str = "aten::mm", args: str = "", tid: int = 1) -> str:
    return _LINE % (name, tid, number, args)


def damaged_gzip(folder: Path) -> None:
    file = job(folder)[0]
    data = bytearray(file.read_bytes())
    data[5000:5020] = bytes(20)
    file.write_bytes(data)


def cut_zstd(folder: Path) -> None:
    for file in job(folder):
        data = zstandard.compress(gzip.decompress(file.read_bytes()))
        file.unlink()
        (folder / f"{file.stem}.zst").write_bytes(data[: len(data) // 2] if "rank0" in file.name else data)


def archive(folder: Path, change: Callable[[bytes], bytes], name: str = "") -> None:
    files, data = job(folder / "inside", 3), io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for file in files:
            tar.add(file, name or file.name)
    (folder / "job.tar").write_bytes(change(data.getvalue()))
    for file in (folder / "inside").iterdir():
        file.unlink()
    (folder / "inside").rmdir()


def third_header(data: bytes) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        at = tar.getmembers()[2].offset
    return data[:at] + bytes(range(256)) * 2 + data[at + 512 :]


def odd(text: Callable[[], str]) -> Made:
    return lambda folder: kineto(folder / "rank0.json", iter([event(0), text(), event(2)]))


def dump(data: bytes) -> Made:
    head = pickle.dumps({"version": "2.9", "entries": [], "pg_config": {}}, 2)[:-1]
    return lambda folder: (folder / "dump_0").write_bytes(head + data) and None


def bomb(suffix: str) -> Made:
    def made(folder: Path) -> None:
        opened = gzip.open if suffix == "gz" else zstandard.open
        with opened(folder / f"rank0.json.{suffix}", "wb") as file:
            file.write(_HEAD)
            for _ in range(2048):
                file.write(b" " * 1024 * 1024)

    return made


def inspector_line(folder: Path) -> None:
    with gzip.open(folder / "inspector.jsonl.gz", "wb", compresslevel=1) as file:
        file.write(b'{"header": {"id": "0x1", "rank": 0, "n_ranks": 2, "nnodes": 1}, "coll_perf": {"coll": "')
        for _ in range(2048):
            file.write(b"a" * 1024 * 1024)


def lines(path: str, *, count: int, text: Callable[[int], str]) -> Made:
    def made(folder: Path) -> None:
        with (folder / path).open("w") as file:
            file.writelines(text(number) for number in range(count))

    return made


def database(folder: Path) -> None:
    with duckdb.connect(str(folder / "job.duckdb")) as connection:
        connection.execute("CREATE SCHEMA meta")
        connection.execute("CREATE VIEW meta.run AS SELECT content AS run_name FROM read_text('/etc/passwd')")


def late_line(folder: Path) -> None:
    other = "".join(f"epoch {number} loss 0.1\n" for number in range(4248))
    (folder / "job.out").write_text(f"{other}n1:9:9 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n")


def process_groups(folder: Path) -> None:
    listed = ",".join(_GROUP % (number, number) for number in range(1_000_000)).encode()
    (folder / "a.json").write_bytes(
        _HEAD.replace(b'"world_size":1', b'"world_size":1,"pg_config":[%b]' % listed) + event(0).encode() + b"]}"
    )


def fifo(folder: Path) -> None:
    job(folder)
    os.mkfifo(folder / "pipe")
    (folder / "zero").symlink_to("/dev/zero")


RECIPES: dict[str, tuple[Made, int, str]] = {
    "a database whose view reads /etc/passwd": (database, 3, "report"),
    "20 damaged bytes in one rank's gz": (damaged_gzip, 0, "ingest"),
    "zstd cut in half": (cut_zstd, 0, "ingest"),
    "one event with 130 MiB of arguments": (odd(lambda: event(1, args='"a":"' + "x" * (130 << 20) + '"')), 0, "ingest"),
    "tar with a corrupt third header": (lambda folder: archive(folder, third_header), 0, "ingest"),
    "tar twice, one behind the other": (lambda folder: archive(folder, lambda data: data * 2), 0, "ingest"),
    "tar whose members have one name": (lambda folder: archive(folder, bytes, "rank0.json.gz"), 0, "ingest"),
    "tar cut in half": (lambda folder: archive(folder, lambda data: data[: len(data) // 2]), 0, "ingest"),
    "a step with 23 digits": (odd(lambda: event(1, "ProfilerStep#" + "9" * 23)), 0, "ingest"),
    "2^62 elements": (odd(lambda: event(1, "record_param_comms", '"In msg nelems": 4611686018427387904')), 0, "ingest"),
    "rank 2^40": (lambda folder: (folder / "a.json").write_bytes(
        _HEAD.replace(b'"rank":0', b'"rank":1099511627776') + event(0).encode() + b"]}") and None, 0, "ingest"),
    "a dump's time of -2^63-1": (
        lambda folder: (folder / "dump_0.json").write_text(_DUMP) and None,
        0,
        "ingest",
    ),
    "pickle with a huge memo index": (dump(b"r\xff\xff\xff\x7f" * 400 + b"."), 0, "ingest"),
    "pickle of nested lists": (dump(b"]" * 490 + b"a" * 489 + b"."), 3, "ingest"),
    "pickle with a lone surrogate": (dump(b"X\x03\x00\x00\x00\xed\xa0\x80."), 3, "ingest"),
    "gz bomb, 2 GiB of blanks": (bomb("gz"), 0, "ingest"),
    "zst bomb, 2 GiB of blanks": (bomb("zst"), 0, "ingest"),
    "gz of one Inspector line of 2 GiB": (inspector_line, 3, "ingest"),
    "fifo and a link to /dev/zero among traces": (fifo, 0, "ingest"),
    "a name of 100 MB": (odd(lambda: event(1, "n" * 100_000_000)), 0, "ingest"),
    "3 million thread names": (
        lambda folder: kineto(folder / "a.json", (_THREAD % (n, n) for n in range(3_000_000))), 0, "ingest"),
    "2 million names, one an event": (
        lambda folder: kineto(folder / "a.json", (event(n, f"operation {n}") for n in range(2_000_000))), 0, "ingest"),
    "a million process groups before the events": (process_groups, 0, "ingest"),
    "1.2 million unique log lines": (lines("log", count=1_200_000, text=lambda n: (
        f"node1:100:200 [0] NCCL INFO something unique happened {n * 7919} and {n} then more of it\n")), 0, "ingest"),
    "a million hosts in a log": (lines("log", count=1_000_000, text=lambda n: (
        f"host{n:07d}:{n}:{n} [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n")), 0, "ingest"),
    "a million communicators in a log": (
        lines("log", count=1_000_000, text=lambda n: _INIT % (0x55D000000000 + n * 64)), 0, "ingest"),
    "a log whose first NCCL line is line 4,249": (late_line, 0, "ingest"),
}  # fmt: skip


def ran(name: str, made: Made, expected: int, verb: str) -> tuple[str, bool]:
    """A row of the table, and whether the recipe ended as it should."""
    with tempfile.TemporaryDirectory(prefix="recipe-") as place:
        folder = Path(place, "in")
        folder.mkdir()
        made(folder)
        size_mb = sum(one.stat().st_size for one in folder.iterdir() if one.is_file() and not one.is_symlink()) / 1e6
        what = [str(folder), "--jobs", "1", "--db", f"{place}/out.duckdb"]
        what = [str(folder / "job.duckdb"), "-o", f"{place}/x.html"] if verb == "report" else what
        command = [sys.executable, "-m", "traceforge", verb, *what]
        process = subprocess.run(
            [sys.executable, "-IS", "-c", _MEASURE, *command], capture_output=True, text=True, check=False
        )
        output, _, said = process.stdout.rpartition("#")
        code, cpu_s, peak_mb = (float(word) for word in said.split())
    is_fine = code == expected and cpu_s <= _CPU_S and peak_mb <= _PEAK_MB and "Traceback" not in output
    mark = "yes" if is_fine else "NO"
    return f"| {name} | {size_mb:.1f} | {code:.0f} | {cpu_s:.1f} | {peak_mb:.0f} | {mark} |", is_fine


def main(words: list[str]) -> int:
    """Run the recipes whose names hold one of some words, or all."""
    chosen = {name: one for name, one in RECIPES.items() if not words or any(word in name for word in words)}
    known, mark, others = _RESULTS.read_text(encoding="utf-8").partition("\n## ")
    kept = known.splitlines()
    rows = {name: f"| {name} | not measured | | | | |" for name in RECIPES}
    rows |= {name: line for line in kept for name in RECIPES if line.startswith(f"| {name} |")}
    fine = []
    for name, (made, expected, verb) in chosen.items():
        rows[name], is_fine = ran(name, made, expected, verb)
        print(rows[name], flush=True)
        fine.append(is_fine)
        _RESULTS.write_text("\n".join([_TOP, *rows.values()]) + "\n" + mark + others, encoding="utf-8")
    return int(not all(fine))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
