"""Fuzzing of every source but Kineto's, which `tests.fuzz.kineto` does: changed files, each read and judged.

`python -m tests.fuzz.formats --cpu-minutes 10 --seed 1` changes sound files of all formats and keeps those that fail
under --keep; `--format NAME` asks for one format, `--executions N` for a number of each instead. All formats get the
same CPU time, so that quick ones get more files. It prints how many files of each format were read, refused and failed,
and how many in a CPU second, and ends with 1 if any failed. Files lie in memory, polars gets one thread, and Parquet is
read through one database that stays open: for tables of a few rows these cost more than the reading.

Judged of each file: nothing but the project's own errors is raised; rows and counted losses make up what the file
holds; rows fit their tables; where the file is sound, the number that a plain parser counts is the reader's; a packed
file says the same as the plain one; and no file takes longer than a limit.
"""

import argparse
import contextlib
import gc
import gzip
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import duckdb
import zstandard

from tests.fuzz.mutation import changed
from tests.fuzz.samples import sound
from tests.sources.reading import Reading
from traceforge.api import sources
from traceforge.errors import TraceforgeError
from traceforge.reading import parquet_folder
from traceforge.records import Batch, Parted, ReadOptions, Source
from traceforge.store.partition_writer import fitted

MOST_SECONDS = 5.0
_MOST_PARTS = 3
_PACKED_ONE_IN = 16
_FILES_A_TURN = 20
_OBJECTS_A_COLLECTION = 50_000
_ONE_THREAD = "POLARS_MAX_THREADS"
_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - each run makes a folder of its own in it
_ROWS_OF = {
    "chakra": "raw.chakra_node",
    "flight_recorder": "raw.flight_recorder_entry",
    "nccl_inspector": "raw.nccl_inspector_operation",
    "nsys": "raw.occurrence",
    "pftrace": "raw.occurrence",
    "pytorch_et": "raw.chakra_node",
    "rocprof": "raw.occurrence",
    "xplane": "raw.occurrence",
}


@dataclass
class Judge:
    """Reads files of one format in a folder of its own and raises AssertionError on what must not be."""

    folder: Path
    source: Source
    executions: int = 0
    refused: int = 0
    events: int = 0
    slowest_seconds: float = 0.0
    failed: int = 0
    cpu_seconds: float = 0.0
    _path: Path = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._path = self.folder / "input"

    def judge(self, data: bytes) -> None:
        """Read a file and judge what came of it.

        Raises:
            AssertionError: the reading breaks a promise. Whatever else is raised breaks one too.
        """
        self.executions += 1
        began = time.process_time()
        readings = self._read(data)
        seconds = time.process_time() - began
        self.slowest_seconds = max(self.slowest_seconds, seconds)
        assert seconds < MOST_SECONDS, f"it took {seconds:.1f} s"
        if readings is None:
            self.refused += 1
            return
        for reading in readings:
            judge_counts(self.source.name, reading)
            self.events += reading.summary.event_count
        if (expected := plain_count(self.source.name, data)) is not None:
            (reading,) = readings
            assert reading.summary.event_count == expected, f"{reading.summary.event_count} of {expected}"
        if hashlib.sha256(data).digest()[0] % _PACKED_ONE_IN == 0:
            pack = gzip.compress if data and data[-1] % 2 else zstandard.compress
            packed = self._read(pack(data)) or []
            assert [one.all_said for one in packed] == [one.all_said for one in readings], "packed, it says otherwise"

    def _read(self, data: bytes) -> list[Reading] | None:
        """All parts of a file; None where it is refused."""
        self._path.write_bytes(data)
        try:
            parts = self.source.parts(self._path)[:_MOST_PARTS] if isinstance(self.source, Parted) else [None]
            return [self._read_part(part) for part in parts]
        except TraceforgeError:
            return None

    def _read_part(self, part: str | None) -> Reading:
        batches: list[Batch] = []
        options = ReadOptions(keep_all_args=True, part=part)
        return Reading(self.source.read(self._path, batches.append, options), batches)


def judge_counts(name: str, reading: Reading) -> None:
    """Rows and counted losses are all there is, and rows have the columns and types of their tables."""
    lost = sum(issue.lost_events for issue in reading.summary.issues)
    assert reading.summary.event_count == reading.summary.stored_count + lost
    rows = Counter[str]()
    for batch in reading.batches:
        rows[batch.table] += batch.rows.height
        fitted(batch)
    if name in _ROWS_OF:
        assert rows[_ROWS_OF[name]] == reading.summary.stored_count


def plain_count(name: str, data: bytes) -> int | None:
    """What a plain parser counts in a file of a simple format; None where it cannot, or the format is none of those."""
    if name == "nccl_inspector":
        return sum(1 for one in data.split(b"\n") if one.strip())
    if name not in ("flight_recorder", "pytorch_et"):
        return None
    try:
        value = json.loads(data, object_pairs_hook=_without_repeated_keys)
    except (ValueError, RecursionError):
        return None
    listed = value.get("entries" if name == "flight_recorder" else "nodes") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        return None
    # What is no node at all is counted in bytes, and nodes that stand elsewhere are nodes, too.
    beside = [one for key, one in value.items() if key != "nodes" and isinstance(one, list | dict)]
    are_nodes = not beside and all(isinstance(one, dict) and "id" in one for one in listed)
    is_countable = name == "flight_recorder" or are_nodes
    return len(listed) if is_countable else None


def _without_repeated_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("which of two values counts is the reader's to say")
    return found


def judged(judge: Judge, data: bytes, keep: Path) -> bool:
    """Whether a file breaks no promise; one that does is kept."""
    try:
        judge.judge(data)
    except Exception as error:
        if isinstance(error, RuntimeError) and str(error) == "Query interrupted":
            raise KeyboardInterrupt from error  # what DuckDB makes of Ctrl-C
        folder = keep / judge.source.name
        folder.mkdir(parents=True, exist_ok=True)
        place = traceback.extract_tb(error.__traceback__)[-1]
        kept = (
            folder / hashlib.sha256(f"{type(error).__name__}{place.filename}{place.lineno}".encode()).hexdigest()[:16]
        )
        if not kept.exists():
            kept.write_bytes(data)
            print(f"failed: {kept}: {type(error).__name__}: {error} ({place.filename}:{place.lineno})", file=sys.stderr)
        return False
    return True


def fuzz(judge: Judge, inputs: list[bytes], source: random.Random, keep: Path) -> None:
    """Have some changed files of a format judged, and count what they took."""
    began = time.process_time()
    for _ in range(_FILES_A_TURN):
        judge.failed += not judged(judge, changed(source, source.choice(inputs), judge.source.name), keep)
    judge.cpu_seconds += time.process_time() - began


@contextmanager
def one_database(folder: Path) -> Iterator[None]:
    """Have all Parquet files below a folder read through one confined database, as each is through one of its own."""
    with mock.patch.object(tempfile, "tempdir", str(folder)), _seeing(folder) as connection:

        @contextmanager
        def kept(_: Sequence[str]) -> Iterator[duckdb.DuckDBPyConnection]:
            yield connection

        with mock.patch.object(parquet_folder, "confined", kept):
            yield


@contextmanager
def _seeing(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1, "memory_limit": "512MB"}) as connection:
        connection.execute("SET allowed_directories = $1", [[f"{folder}/"]])
        connection.execute("SET enable_external_access = false")
        yield connection


def said(judge: Judge) -> str:
    """A line of what came of a format."""
    rate, refused = judge.executions / judge.cpu_seconds, judge.refused / judge.executions
    slowest = f"slowest {judge.slowest_seconds:.2f} s, {rate:.0f} a CPU second"
    return f"{judge.source.name}: {judge.executions} files, {refused:.0%} refused, {judge.failed} failed, {slowest}"


def _fuzz_all(judges: list[Judge], inputs: dict[str, list[bytes]], options: argparse.Namespace) -> None:
    """All formats in turn, that which had the least CPU time next."""
    sources_of = {one.source.name: random.Random(f"{options.seed} {one.source.name}") for one in judges}  # noqa: S311 - to be repeated
    share_s = options.cpu_minutes * 60 / len(judges)
    todo = judges
    while todo:
        judge = min(todo, key=lambda one: one.cpu_seconds)
        fuzz(judge, inputs[judge.source.name], sources_of[judge.source.name], options.keep)
        todo = [
            one
            for one in judges
            if (one.executions < options.executions if options.executions else one.cpu_seconds < share_s)
        ]


def main() -> int:
    """Fuzz as the command line asks; 1 if a file failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", choices=sorted(sound()), action="append", help="may be given several times")
    parser.add_argument("--cpu-minutes", type=float, default=1.0, help="of all formats together")
    parser.add_argument("--executions", type=int, help="of each format, however long that takes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("failed-inputs"), help="folder for files that fail")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # `nohup` and `&` would have it ignored
    if _ONE_THREAD not in os.environ:
        words = [sys.executable, "-m", "tests.fuzz.formats", *sys.argv[1:]]
        return subprocess.run(words, env={**os.environ, _ONE_THREAD: "1"}, check=False).returncode
    names, inputs = options.format or sorted(sound()), sound()
    with tempfile.TemporaryDirectory(
        prefix="traceforge-fuzz-", dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None
    ) as folder:
        judges = [Judge(Path(folder), sources()[name]) for name in names]
        gc.freeze()  # what is imported stays: looking through it time and again took 5 % of the reading
        gc.set_threshold(_OBJECTS_A_COLLECTION)
        # An interrupt ends it early; what was done until then is said.
        with contextlib.suppress(KeyboardInterrupt), one_database(Path(folder)):
            _fuzz_all(judges, inputs, options)
        print("\n".join(said(judge) for judge in judges if judge.executions))
    failed = sum(judge.failed for judge in judges)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
