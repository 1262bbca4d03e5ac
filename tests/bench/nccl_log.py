"""How fast NCCL's logs are read: CPU seconds against a plain Python line scan of the same file, in one run.

    python -m tests.bench.nccl_log [--gigabytes 1] [--results tests/bench/nccl_log.json]

The log is generated in NCCL's grammar: eight processes of one host, random buffers, four operations, choices by rank 0.
Reading hands typed rows of all tables to a function that counts them; nothing is stored. Both take turns twice, and the
better time of each counts; imports are done before, with a log of 1 MB. Not a timed test: the figures are the ratio to
the scan, once without and once with time stamps, and the largest resident memory.
"""

import argparse
import json
import platform
import random
import resource
import tempfile
import time
from collections import Counter
from pathlib import Path

from traceforge.records import Batch, ReadOptions
from traceforge.sources.nccl_log import SOURCE

_PROCESSES = 8
_OPERATIONS = (("AllReduce", 7), ("AllGather", 9), ("ReduceScatter", 9), ("Broadcast", 4))
_COUNTS = (1_048_576, 25_503_912, 4_194_304, 768, 2_097_152)
_HOST = "node-03.cluster"


def write_log(path: Path, size_bytes: int, *, is_stamped: bool) -> None:
    """A log of about a size."""
    rng = random.Random(5)  # noqa: S311  # the same log each time, no secret
    comms = [0x55F36FFB11F0 + 0x1000 * number for number in range(_PROCESSES)]
    with path.open("w", encoding="ascii") as file:
        for rank, comm in enumerate(comms):
            file.write(
                f"{_HOST}:{4711 + rank}:{4711 + rank} [{rank}] NCCL INFO comm {comm:#x} rank {rank} "
                f"nranks {_PROCESSES} cudaDev {rank} nvmlDev {rank} busId {0x10000 + rank * 0x1000:x} "
                "commId 0xd0eaa3973aece91a - Init COMPLETE\n"
            )
        turn = clock_us = 0
        while file.tell() < size_bytes:
            lines = []
            for _ in range(500):
                turn += 1
                op, datatype = _OPERATIONS[turn % 4]
                count = rng.choice(_COUNTS)
                for rank, comm in enumerate(comms):
                    clock_us += 1_370
                    lines.append(
                        f"{_stamp(clock_us) if is_stamped else ''}{_HOST}:{4711 + rank}:{4911 + rank} [{rank}] "
                        "NCCL INFO "
                        f"{op}: opCount {turn:x} sendbuff 0x7f{rng.getrandbits(32):08x}00 recvbuff "
                        f"0x7f{rng.getrandbits(32):08x}00 count {count} datatype {datatype} op 0 root 0 comm {comm:#x} "
                        f"[nranks={_PROCESSES}] stream {comm + 0x77:#x}\n"
                    )
                if turn % 3 == 0:
                    lines.append(
                        f"{_HOST}:4711:4911 [0] NCCL INFO {op}: {count * 4} Bytes -> Algo RING proto SIMPLE "
                        "channel{Lo..Hi}={0..15}\n"
                    )
            file.write("".join(lines))


def _stamp(clock_us: int) -> str:
    second, fraction = divmod(clock_us, 1_000_000)
    return f"[2026-03-03 {second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}.{fraction:06}] "


def _scan(path: Path) -> float:
    start = time.process_time()
    with path.open("rb") as file:
        found = sum(b"opCount" in line for line in file)
    assert found
    return time.process_time() - start


def measure(path: Path) -> dict[str, object]:
    """Speed of both, their ratio, the rows and the memory."""
    megabytes = path.stat().st_size / 1e6
    rows: Counter[str] = Counter()

    def count(batch: Batch) -> None:
        rows[batch.table] += batch.rows.height

    scans, reads = [], []
    for _ in range(2):
        scans.append(_scan(path))
        rows.clear()
        start = time.process_time()
        SOURCE.read(path, count, ReadOptions())
        reads.append(time.process_time() - start)
    scan, read = min(scans), min(reads)
    return {
        "megabytes": round(megabytes),
        "scan_mb_per_cpu_s": round(megabytes / scan),
        "read_mb_per_cpu_s": round(megabytes / read),
        "ratio": round(scan / read, 3),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3),
        "rows": dict(rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--results", type=Path)
    arguments = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="traceforge-bench-") as folder:
        path = Path(folder, "nccl.log")
        write_log(path, 1_000_000, is_stamped=True)
        measure(path)
        for is_stamped in (False, True):
            write_log(path, round(arguments.gigabytes * 1e9), is_stamped=is_stamped)
            results.append({"stamped": is_stamped, "python": platform.python_version(), **measure(path)})
    text = json.dumps(results, indent=2) + "\n"
    if arguments.results:
        arguments.results.write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
