"""A folder database over time: killed, finished, changed, moved, swept. What is not ours stays."""

import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.given import rows_of
from tests.store.folders import ingested, parts, write_job, write_trace
from tests.store.tables import differing, tables_of
from traceforge.errors import StoreBusyError
from traceforge.records import SourceSummary
from traceforge.store.addition import Addition, InputFile
from traceforge.store.database import Store
from traceforge.store.facts import PartitionsInFolder, row_storage
from traceforge.store.folder import Partition
from traceforge.store.partition_writer import PartitionedFile

EVENTS = 20
FILES = 9
WHOLE = "SELECT s.path, COUNT(*) FROM meta.source AS s JOIN raw.event USING (source_id) GROUP BY ALL ORDER BY 1"

# Adds files by twos, and says so, so that there is something to be killed between.
CHILD = """
import sys
from pathlib import Path
from traceforge.store import addition
from traceforge.store.database import Store
from tests.store.folders import ingested
addition._MOST_WAITING = 2
flush = addition.Addition.flush
def told(self):
    flush(self)
    print(len(self.added), flush=True)
    sys.stdin.readline()
addition.Addition.flush = told
with Store(sys.argv[2] + "/") as store:
    ingested(store, Path(sys.argv[1]))
"""


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A folder of small traces."""
    for rank in range(FILES):
        write_trace(tmp_path / "traces" / f"rank{rank}.json", rank, EVENTS)
    return tmp_path / "traces"


def killed(traces: Path, job: Path, after: int) -> None:
    """An ingest that is killed when so many of its transactions are through."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", CHILD, str(traces), str(job)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=ROOT, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        for _ in range(after):
            assert child.stdout.readline()
            child.stdin.write("\n")
            child.stdin.flush()
        assert child.stdout.readline()
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL


def test_after_kill_9_files_are_whole_and_running_again_finishes(tmp_path: Path, traces: Path) -> None:
    # given an ingest that was killed, and what a move without its entry in the catalogue leaves behind
    job = tmp_path / "job"
    killed(traces, job, after=1)
    orphan = parts(job)[0].parent.parent / "source_id=77" / f"{'a' * 16}-000000.parquet"
    orphan.parent.mkdir()
    orphan.write_bytes(b"half of it")
    assert [path.name for path in job.iterdir() if "spool" in path.name] == ["catalogue.duckdb.spool"]
    # when it is read as it is, then what is there is whole
    with Store(job, read_only=True) as store:
        assert [count for _, count in rows_of(store, WHOLE)] == [EVENTS] * 4
    # when
    with Store(job) as store, ThreadPoolExecutor(2) as executor:
        result = ingested(store, traces, executor)
        # then it is as if nothing had happened
        assert (len(result.unchanged), len(result.read)) == (4, FILES - 4)
        with Store(None) as other:
            ingested(other, traces)
            assert differing(store, other) == []
    assert not orphan.exists()
    assert sorted(path.name for path in job.iterdir()) == ["catalogue.duckdb", "facts"]


def test_what_is_not_ours_is_left_alone(tmp_path: Path, traces: Path) -> None:
    # given a database in which somebody keeps other things, some of them with names like ours
    job = tmp_path / "job"
    with Store(f"{job}/") as store:
        ingested(store, traces)
    own = parts(job)[0]
    others = [
        job / "notes.txt",
        job / "facts" / "notes.txt",
        own.with_name("mine.parquet"),
        own.with_name(f"{own.stem}.parquet.bak"),
        own.parent.parent / "source_id=x" / own.name,
        own.parent.parent / "source_id=05" / own.name,
    ]
    for path in others:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    write_trace(traces / "more.json", FILES)
    # when
    with Store(job) as store:
        ingested(store, traces)
    # then
    assert all(path.read_text() == "mine" for path in others)


def test_a_known_file_is_not_read_again_and_a_copy_of_one_in_the_same_ingest_counts_as_in_a_file(
    tmp_path: Path, traces: Path
) -> None:
    shutil.copy(traces / "rank0.json", traces / "copy.json")
    with Store(f"{tmp_path / 'job'}/") as folder, Store(None) as file:
        for store in (folder, file):
            assert len(ingested(store, traces).read) == FILES + 1
        before = [(path, path.stat().st_mtime_ns) for path in parts(tmp_path / "job")]
        (traces / "rank1.json").rename(traces / "renamed.json")
        again = [ingested(store, traces) for store in (folder, file)]

        assert [len(result.unchanged) for result in again] == [FILES + 1] * 2
        assert differing(folder, file) == []
    assert [(path, path.stat().st_mtime_ns) for path in parts(tmp_path / "job")] == before


def test_a_file_that_is_whole_now_replaces_its_own_partitions_and_no_others(tmp_path: Path, traces: Path) -> None:
    # given a trace that was read while it was still being copied
    whole = (traces / "rank3.json").read_text()
    (traces / "rank3.json").write_text(whole[: len(whole) // 2])
    with Store(f"{tmp_path / 'job'}/") as folder, Store(None) as file:
        for store in (folder, file):
            ingested(store, traces)
        before = {path: path.stat().st_ino for path in parts(tmp_path / "job")}
        # when it is there as a whole
        (traces / "rank3.json").write_text(whole)
        for store in (folder, file):
            assert [path.name for path in ingested(store, traces).read] == ["rank3.json"]
        # then
        assert differing(folder, file) == []
    after = {path: path.stat().st_ino for path in parts(tmp_path / "job")}
    assert {path.parent.name for path in before.keys() - after.keys()} == {"source_id=3"}
    assert {path.parent.name for path in after.keys() - before.keys()} == {f"source_id={FILES}"}
    assert all(after[path] == before[path] for path in before.keys() & after.keys())


def test_a_moved_folder_and_a_copy_without_the_right_to_write_say_the_same(tmp_path: Path, traces: Path) -> None:
    with Store(f"{tmp_path / 'job'}/") as store:
        ingested(store, traces)
        expected = tables_of(store)
    moved = (tmp_path / "job").rename(tmp_path / "moved")
    copy = Path(shutil.copytree(moved, tmp_path / "copy"))
    for path in (*copy.rglob("*"), copy):
        path.chmod(0o555 if path.is_dir() else 0o444)

    try:
        for place in (moved, copy):
            with Store(place, read_only=True) as store:
                assert tables_of(store) == expected
    finally:
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755)


def test_a_relative_name_holds_wherever_the_process_goes(
    tmp_path: Path, traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Store("job/") as store:
        ingested(store, traces)
        monkeypatch.chdir(traces)

        assert len(rows_of(store, WHOLE)) == FILES


def test_of_two_writers_the_second_is_told_to_wait(tmp_path: Path) -> None:
    with Store(f"{tmp_path / 'job'}/"):
        code = "import sys; from traceforge.store.database import Store; Store(sys.argv[1])"
        other = subprocess.run(
            [sys.executable, "-c", code, f"{tmp_path / 'job'}/"], capture_output=True, text=True, check=False
        )

    assert StoreBusyError.__name__ in other.stderr


def test_a_folder_into_which_nothing_could_be_read_is_not_left_behind(tmp_path: Path) -> None:
    def fail() -> None:
        with Store(f"{tmp_path / 'job'}/"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()

    assert list(tmp_path.iterdir()) == []


def test_a_table_whose_last_partition_goes_is_an_empty_table_again(tmp_path: Path) -> None:
    write_trace(tmp_path / "traces" / "rank0.json", 0)
    with Store(f"{tmp_path / 'job'}/") as store:
        ingested(store, tmp_path / "traces")
        storage = row_storage(store)
        with store.transaction():
            storage.remove(0)
            store.execute("DELETE FROM meta.source")
        storage.settle(is_committed=True)

        assert rows_of(store, "SELECT COUNT(*) FROM raw.event") == [(0,)]
        assert parts(tmp_path / "job") == []
    with Store(tmp_path / "job") as store:
        ingested(store, tmp_path / "traces")
        assert [count for _, count in rows_of(store, WHOLE)] == [EVENTS]


def test_a_file_that_cannot_be_put_in_its_place_costs_none_of_those_beside_it(tmp_path: Path) -> None:
    # given three files that were read, of which the second lost its rows since
    with Store(f"{tmp_path / 'job'}/") as store:
        store.execute("INSERT INTO meta.run (run_id, run_name) VALUES (0, 'night')")
        addition = Addition(store, 0, None)
        for rank, name in enumerate("abc"):
            waiting = tmp_path / name
            part = waiting / "raw.argument" / f"{name * 16}-000000.parquet"
            part.parent.mkdir(parents=True)
            store.write_parquet(f"SELECT 5::BIGINT AS event_id, '{name}' AS args", part)
            partition = Partition(-1, "raw.argument", name * 16, 1, 1, part.stat().st_size)
            summary = SourceSummary("kineto", rank, None, None, 1, 1)
            if name == "b":
                part.unlink()
            (tmp_path / f"{name}.json").write_text(name)
            read = PartitionedFile(summary, waiting, (partition,), 0)
            addition.add(InputFile(tmp_path / f"{name}.json", name * 64, name), read)
        # when
        addition.flush()
        store.publish_partitions(store.partitions())
        # then
        assert isinstance(row_storage(store), PartitionsInFolder)
        assert [path.name for path, _ in addition.failed] == ["b.json"]
        assert rows_of(store, "SELECT source_id, args FROM raw.argument ORDER BY ALL") == [(0, "a"), (1, "c")]
        assert rows_of(store, "SELECT source_id, path FROM meta.source ORDER BY ALL") == [(0, "a"), (1, "c")]
        # and the folder of a table was moved as it is: disks take longer to make one and to remove the other
        assert not (tmp_path / "a" / "raw.argument").exists()
    assert len(parts(tmp_path / "job")) == 2


def test_while_some_sources_are_read_a_folder_looks_at_their_files_alone(tmp_path: Path) -> None:
    job = write_job(tmp_path / "night", ranks=6)
    with Store(f"{tmp_path / 'job'}/", is_kept=False) as folder:
        ingested(folder, job)
        whole = folder.rows("SELECT source_id, COUNT(*) FROM raw.occurrence GROUP BY ALL ORDER BY ALL")
        some = [row for row in whole if 2 <= row[0] <= 4]
        assert len(whole) > len(some) > 1

        with folder.narrowed(2, 4):
            assert folder.rows("SELECT source_id, COUNT(*) FROM raw.occurrence GROUP BY ALL ORDER BY ALL") == some
        with folder.narrowed(90, 99):
            assert folder.rows("SELECT COUNT(*) FROM raw.occurrence WHERE source_id BETWEEN 90 AND 99") == [(0,)]

        # afterwards, also after an error, all of them are there
        with pytest.raises(ZeroDivisionError), folder.narrowed(2, 2):
            raise ZeroDivisionError
        assert folder.rows("SELECT source_id, COUNT(*) FROM raw.occurrence GROUP BY ALL ORDER BY ALL") == whole


def test_files_of_events_state_their_least_and_largest_number_so_that_others_are_not_read(tmp_path: Path) -> None:
    with Store(f"{tmp_path}/night/") as store:
        ingested(store, write_trace(tmp_path / "rank0.json", 0).parent)
        (file,) = (tmp_path / "night" / "facts" / "raw.occurrence").rglob("*.parquet")
        bounds = store.rows(
            "SELECT stats_min_value, stats_max_value FROM parquet_metadata(?) WHERE path_in_schema = 'event_id'",
            [str(file)],
        )

    assert bounds == [("0", "19")]
