"""A file whose reader never ends, takes all memory or crashes costs itself alone; the limits can be set."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import nullcontext
from pathlib import Path
from typing import ClassVar

import polars as pl
import pytest

from tests.cli.running import run
from tests.given import rows_of
from traceforge.errors import InputUnusableError
from traceforge.records import Batch, ReadLimits, ReadOptions, SourceSummary
from traceforge.store import budget
from traceforge.store.budget import within
from traceforge.store.database import Store
from traceforge.store.ingest import IngestResult, ingest_files
from traceforge.store.workers import ReaderPool

SHORT = ReadLimits(cpu_seconds=0.2)
NARROW = ReadLimits(memory_bytes=64 * 1024**2)
ISSUES = "SELECT code, count, detail FROM meta.issue"


def never_ends() -> None:
    while True:
        pass


def takes_all_memory() -> None:
    held = []
    while True:
        held.append(b"x" * 1024**2)


def crashes() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class TrialSource:
    """Reads a file by doing what its text names; travels to other processes."""

    name = "trial"
    deeds: ClassVar[dict[str, Callable[[], None]]] = {
        "never ends": never_ends,
        "takes all memory": takes_all_memory,
        "crashes": crashes,
        "sound": lambda: None,
    }

    def recognises(self, _head: bytes) -> bool:
        return True

    def read(self, path: Path, emit: Callable[[Batch], None], _options: ReadOptions) -> SourceSummary:
        self.deeds[path.read_text().split("|")[0]]()
        emit(Batch("raw.profile", pl.DataFrame({"base_time_ns": [0], "metadata": ["{}"]})))
        return SourceSummary("trial", None, None, None, 1, 1)


def ingested(folder: Path, deed: str, store: Store, executor: Executor | None) -> IngestResult:
    """Five files, the second of which does something else."""
    files = [folder / f"{name}.txt" for name in "abcde"]
    for path in files:
        path.write_text(f"{deed if path.stem == 'b' else 'sound'}|{path.stem}")
    return ingest_files(
        store,
        files,
        {"trial": TrialSource()},
        run_name="night",
        executor=executor,
        options=ReadOptions(limits=NARROW if deed == "takes all memory" else SHORT),
    )


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("deed", "what"),
    [
        ("never ends", "reading it took more than 0.2 s of CPU time, the limit of one file"),
        ("takes all memory", "reading it took more than 64 MiB of memory, the limit of one file"),
        ("crashes", "the process that read it crashed, or was killed"),
    ],
)
def test_a_file_that_costs_too_much_is_an_issue_and_the_others_are_read(
    tmp_path: Path, deed: str, what: str, workers: int
) -> None:
    if deed == "crashes" and not workers:
        pytest.skip("it would take the tests along")
    with Store(None, is_kept=False) as store, ReaderPool(workers) if workers else nullcontext() as executor:
        result = ingested(tmp_path, deed, store, executor)
        issues = rows_of(store, ISSUES)

    assert [path.stem for path in result.read] == ["a", "c", "d", "e"]
    assert [(path.stem, error.what) for path, error in result.failed] == [("b", what)]
    assert [(code, count) for code, count, _ in issues] == [("file_failed", 1)]


def test_a_limit_that_is_reached_as_the_file_ends_strikes_nothing_else(tmp_path: Path) -> None:
    outcomes = set()
    for _ in range(30):
        try:
            with within(ReadLimits(cpu_seconds=0), tmp_path):
                until = threading.Event()
                until.wait(0.1)
            outcomes.add("read")
        except InputUnusableError:
            outcomes.add("refused")
        for _ in range(1000):
            pass

    assert outcomes <= {"read", "refused"}


def test_a_process_that_no_exception_reaches_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a reader that waits in a library, in a process of its own, and is beyond its limit
    monkeypatch.setattr(budget, "_PATIENCE_S", 0.0)
    let_go, codes = threading.Event(), list[int]()

    def wait() -> None:
        with contextlib.suppress(budget._LimitReached):
            let_go.wait()

    reader = threading.Thread(target=wait)
    reader.start()
    assert reader.ident is not None
    watch = budget._Watch(ReadLimits(cpu_seconds=-1, may_end_process=True), reader.ident)
    # when
    watch.run(end_process=lambda code: (codes.append(code), watch.stop())[0])
    # then
    let_go.set()
    reader.join()
    assert codes == [70]


def test_a_debugger_works_after_a_reading_that_ended_well() -> None:
    # CPython 3.11 never gets past the first instruction of a traced function while it looks for a raised exception
    script = """
import sys
from pathlib import Path
from traceforge.records import ReadLimits
from traceforge.store.budget import within

with within(ReadLimits(), Path("trace.json")):
    pass
sys.settrace(lambda *_: None)
(lambda: None)()
"""

    subprocess.run([sys.executable, "-c", script], timeout=30, check=True)


def test_the_limits_are_options_of_the_command(tmp_path: Path) -> None:
    # given a file in which nothing is plain, so that it takes a while
    odd = b",".join([b'{"ph": "X", "name": "\\ud800", "pid": [1], "tid": 1, "ts": "x", "dur": 1}'] * 60_000)
    (tmp_path / "rank0.json").write_bytes(b'{"schemaVersion": 1, "traceEvents": [' + odd + b"]}")

    done = run("ingest", tmp_path / "rank0.json", "--db", tmp_path / "job.duckdb", "--file-seconds", 0)

    assert done.returncode == 3
    assert "took more than 0 s of CPU time, the limit of one file" in done.stderr
    assert "hint: if the file is yours and sound, allow more: --file-seconds, --file-memory-mib" in done.stderr
