"""An ingest that ends early, by a signal or a full disk, leaves a database of whole files; the next one finishes."""

import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.given import rows_of
from traceforge.api import sources
from traceforge.errors import StoreBusyError
from traceforge.files import find_files
from traceforge.records import ReadOptions
from traceforge.store.database import Store
from traceforge.store.ingest import IngestResult, ingest_files

EVENTS = 400
FILES = 12

CHILD = """
import sys
from pathlib import Path
from traceforge.store.database import Store
from tests.store.test_interruption import ingested
with Store(Path(sys.argv[2])) as store:
    ingested(store, Path(sys.argv[1]), on_file=lambda path: print(path.name, flush=True))
"""
WHOLE = "SELECT s.path, COUNT(*) FROM meta.source AS s JOIN raw.event USING (source_id) GROUP BY ALL"


def ingested(store: Store, folder: Path, **options: object) -> IngestResult:
    return ingest_files(
        store,
        find_files([folder]),
        sources(),
        run_name="night",
        options=ReadOptions(),
        **{"executor": None, **options},  # type: ignore[arg-type]
    )


def environment(tmp_path: Path) -> dict[str, str]:
    """Spool folders of children that are killed lie where pytest cleans up."""
    kept = {name: value for name, value in os.environ.items() if name != "TRACEFORGE_DEBUG"}
    return {**kept, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path), "COLUMNS": "200"}


def command(tmp_path: Path, *arguments: object, largest_file: int | None = None) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        if largest_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

    return subprocess.run(
        [sys.executable, "-m", "traceforge", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment(tmp_path),
        preexec_fn=limit,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of twelve ranks of four hundred events each."""
    folder = tmp_path_factory.mktemp("job")
    for rank in range(FILES):
        write_trace(folder, rank, EVENTS)
    return folder


def write_trace(folder: Path, rank: int, count: int) -> None:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": f"op {n % EVENTS}", "pid": 1, "tid": 1, "ts": 10 * n, "dur": 5}
        for n in range(count)
    ]
    trace = {"distributedInfo": {"rank": rank, "world_size": FILES}, "traceEvents": events}
    (folder / f"rank{rank:02}.json").write_text(json.dumps(trace))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_after_kill_9_at_any_moment_files_are_whole_and_running_again_finishes(
    tmp_path: Path, job: Path, seed: int
) -> None:
    # given an ingest that is killed somewhere between two of its files
    path, moment = tmp_path / "job.duckdb", random.Random(seed)  # noqa: S311 - to be repeated
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(job), str(path)],
        stdout=subprocess.PIPE,
        env=environment(tmp_path),
        cwd=ROOT,
    ) as child:
        assert child.stdout is not None
        for _ in range(moment.randint(1, FILES - 2)):
            assert child.stdout.readline()
        time.sleep(moment.uniform(0, 0.03))
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    # when
    with Store(path) as store:
        there = rows_of(store, WHOLE)
        result = ingested(store, job)
        finished = rows_of(store, WHOLE)
    # then
    assert {count for _, count in there} <= {EVENTS}
    assert len(there) < FILES
    assert len(result.unchanged) == len(there)
    assert [count for _, count in finished] == [EVENTS] * FILES


def test_of_two_ingests_at_once_the_second_says_why_it_cannot(tmp_path: Path, job: Path) -> None:
    path = tmp_path / "job.duckdb"
    with Store(path):
        second = command(tmp_path, "ingest", job, "--db", path, "--jobs", 1)

    assert second.returncode == StoreBusyError.exit_code
    assert "another process holds the database" in second.stderr
    assert "hint: wait for it to end" in second.stderr
    assert "Traceback" not in second.stderr


def test_the_spool_of_an_ingest_that_was_killed_goes_with_the_next_one(tmp_path: Path, job: Path) -> None:
    # given what a killed ingest leaves beside its database, and a worker of it that lives on
    path = tmp_path / "job.duckdb"
    left = tmp_path / "job.duckdb.spool" / "of-before" / "0"
    left.mkdir(parents=True)
    (left / "000000.parquet").write_bytes(b"half of it")
    (tmp_path / "job.duckdb.spool" / ".made-by-traceforge").touch()
    # when
    with Store(path) as store, ThreadPoolExecutor(1) as executor:
        ingested(store, job, executor=executor)
    # then nothing of it is left, and the worker cannot write there again
    assert [file.name for file in tmp_path.iterdir()] == ["job.duckdb"]
    with pytest.raises(FileNotFoundError):
        (left / "000001.parquet").write_bytes(b"")


def test_a_full_disk_is_said_so_and_the_database_stays_valid(tmp_path: Path, job: Path) -> None:
    # given a database, and a limit on the size of files that its next transactions exceed
    path = tmp_path / "job.duckdb"
    with Store(path) as store:
        store.execute("CHECKPOINT")
    # when
    full = command(tmp_path, "ingest", job, "--db", path, "--jobs", 1, largest_file=16 * 1024)
    # then
    assert_said_to_be_full(full)
    assert "job.duckdb.wal" in full.stderr
    with Store(path) as store:
        assert {count for _, count in rows_of(store, WHOLE)} <= {EVENTS}
        ingested(store, job)
        assert [count for _, count in rows_of(store, WHOLE)] == [EVENTS] * FILES


def test_a_disk_that_is_too_full_for_the_spool_is_said_so(tmp_path: Path) -> None:
    # given two files, of which the second has more rows than a worker keeps in memory
    folder, path, many = tmp_path / "job", tmp_path / "job.duckdb", 100_000
    folder.mkdir()
    write_trace(folder, 0, EVENTS)
    write_trace(folder, 1, many)
    with Store(path) as store:
        store.execute("CHECKPOINT")
    # when
    full = command(tmp_path, "ingest", folder, "--db", path, "--jobs", 2, largest_file=64 * 1024)
    # then
    assert_said_to_be_full(full)
    assert "parquet" in full.stderr
    with Store(path) as store, ThreadPoolExecutor(2) as executor:
        ingested(store, folder, executor=executor)
        assert sorted(count for _, count in rows_of(store, WHOLE)) == [EVENTS, many]


def assert_said_to_be_full(full: subprocess.CompletedProcess[str]) -> None:
    assert full.returncode == 3, full.stderr
    assert "the disk is full, or a limit on file sizes is reached" in full.stderr
    assert "hint: " in full.stderr
    assert "Traceback" not in full.stderr


@pytest.mark.parametrize("largest_file", [0, 5_000, 13_000, 40_000])
def test_a_new_database_that_finds_no_room_leaves_nothing_that_is_refused_later(
    tmp_path: Path, job: Path, largest_file: int
) -> None:
    path = tmp_path / "job.duckdb"

    full = command(tmp_path, "ingest", job, "--db", path, "--jobs", 1, largest_file=largest_file)

    assert full.returncode == 3, full.stderr
    assert "File too large" in full.stderr
    assert "hint: " in full.stderr
    with Store(path) as store:
        assert len(ingested(store, job).read) == FILES


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MiB; skips where mounting one is not allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no right to mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_disk_that_is_really_full_costs_no_file_that_was_whole(small_disk: Path, job: Path, jobs: int) -> None:
    # given a disk that has room for a new database, but not for the whole job
    path, filler = small_disk / "job.duckdb", small_disk / "filler"
    with Store(path) as store:
        store.execute("CHECKPOINT")
    free = os.statvfs(small_disk)
    filler.write_bytes(b"x" * (free.f_bavail * free.f_frsize - 32 * 1024))
    # when
    full = command(small_disk.parent, "ingest", job, "--db", path, "--jobs", jobs)
    # then it is said, and with more room the next ingest finishes
    assert_said_to_be_full(full)
    filler.unlink()
    with Store(path) as store:
        assert {count for _, count in rows_of(store, WHOLE)} <= {EVENTS}
        ingested(store, job)
        assert [count for _, count in rows_of(store, WHOLE)] == [EVENTS] * FILES


def test_what_is_no_file_is_passed_over_and_what_cannot_be_read_is_counted(tmp_path: Path) -> None:
    # given one trace among a folder, a pipe, a socket, a loop of links and a file that is gone when it is read
    trace = json.dumps([{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": 1, "dur": 1}])
    (tmp_path / "rank0.json").write_text(trace)
    (tmp_path / "rank1.json").mkdir()
    os.mkfifo(tmp_path / "rank2.json")
    (tmp_path / "a.json").symlink_to("b.json")
    (tmp_path / "b.json").symlink_to("a.json")
    (tmp_path / "rank1.json" / "up").symlink_to(tmp_path)
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(os.path.relpath(tmp_path / "rank3.json"))
        # when
        files = find_files([tmp_path])
        # then
        assert [file.name for file in files] == ["rank0.json"]
    with Store(None, is_kept=False) as store:
        assert [path.name for path in ingested(store, tmp_path).read] == ["rank0.json"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_counted_and_the_others_are_read(tmp_path: Path) -> None:
    trace = json.dumps([{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": 1, "dur": 1}])
    for name in ("rank0.json", "rank1.json"):
        (tmp_path / name).write_text(trace)
    (tmp_path / "rank1.json").chmod(0)
    with Store(None, is_kept=False) as store:
        result = ingested(store, tmp_path)

        assert [(path.name, error.what) for path, error in result.failed] == [
            ("rank1.json", "cannot be read: Permission denied")
        ]
        assert rows_of(store, "SELECT code, count FROM meta.issue") == [("file_failed", 1)]
