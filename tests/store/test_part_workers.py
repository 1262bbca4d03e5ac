"""Tables in parts are the same whoever makes them; a worker that dies costs one more try, and nothing stays behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.store.tables import differing, tables_of
from traceforge import api
from traceforge.align.rank_batches import planned_batches
from traceforge.errors import InputUnusableError, QueryError
from traceforge.store.database import Store
from traceforge.store.documents import in_order
from traceforge.store.part_task import MadePart, make_part
from traceforge.store.part_workers import PartWorkers, part_workers
from traceforge.store.spool import spool_folder
from traceforge.store.stage import OnTable, build_stage, stage_documents
from traceforge.store.workers import ReaderPool

PARTS = """-- Enclosures.
CREATE OR REPLACE TABLE zoo.part (
  -- Lowest source.
  first_source_id,
  -- Highest source.
  last_source_id
) AS
SELECT n, n FROM RANGE(3) AS t (n)
"""
LION = """-- Lions, by the enclosure.
-- In parts by: zoo.part
CREATE OR REPLACE TABLE zoo.lion (
  -- Enclosure.
  source_id,
  -- Its number.
  number
) AS
SELECT p.first_source_id, i FROM zoo.part AS p, RANGE(2) AS t (i)
WHERE p.first_source_id = GETVARIABLE('first_source_id')
"""
CUB = """-- Cubs of lions, filled by Python.
-- In parts by: zoo.part
-- Reads: {reads}
CREATE OR REPLACE TABLE zoo.cub (
  -- Enclosure.
  source_id INTEGER,
  -- Run it belongs to.
  name VARCHAR
)
"""
CUB_ROWS = """
def rows(store):
    return store.query("SELECT source_id, zoo_run.run_name AS name FROM zoo.lion, meta.run AS zoo_run ORDER BY ALL")
"""
SLOW_CUB_ROWS = f"""
import time
{CUB_ROWS.replace("return", "time.sleep(source_id(store) / 2); return")}
def source_id(store):
    return store.value("SELECT MIN(first_source_id) FROM zoo.part")
"""
# Once one part is made and a second is under way, it names its workers and kills itself.
SUICIDAL = """
import multiprocessing, os, signal, sys
from pathlib import Path
from tests.store.test_part_workers import build
from traceforge.store.database import Store
from traceforge.store.workers import ReaderPool
def die(table, share):
    if share > 0.25:
        print(*(child.pid for child in multiprocessing.active_children()), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
if __name__ == "__main__":
    with Store(Path(sys.argv[1])) as store, ReaderPool(2) as pool:
        build(store, sys.argv[2], pool, die)
"""
CENSUS = """-- Counts.
CREATE OR REPLACE TABLE zoo.census (
  -- Of cubs.
  number
) AS
SELECT COUNT(*) FROM zoo.cub
"""


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Writes a stage of two tables in three parts, one of them filled by Python, and gives its name."""

    def write(reads: str = "zoo.lion, meta.run", name: str = "reserve") -> str:
        package = tmp_path / name / "zoo"
        package.mkdir(parents=True)
        for folder in (package.parent, package):
            (folder / "__init__.py").write_text("")
        texts = {"part": PARTS, "lion": LION, "cub": CUB.format(reads=reads), "census": CENSUS}
        for table, text in texts.items():
            (package / f"{table}.sql").write_text(text)
        (package / "cub.py").write_text(CUB_ROWS)
        monkeypatch.syspath_prepend(tmp_path)
        for module in [one for one in sys.modules if one.partition(".")[0] == name]:
            monkeypatch.delitem(sys.modules, module)  # that of another test
        return f"{name}.zoo"

    return write


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "zoo.duckdb", is_kept=False) as store:
        store.execute("INSERT INTO meta.run VALUES (0, 'night', NULL)")
        yield store


def contents(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of all tables of the stage, as they lie."""
    return {name: store.rows(f"FROM zoo.{name}") for name in ("part", "lion", "cub", "census")}


def build(
    store: Store, package: str, executor: Executor, on_table: OnTable = lambda _table, _share: None
) -> list[tuple[str, float]]:
    said: list[tuple[str, float]] = []

    def note(table: str, share: float) -> None:
        said.append((table, share))
        on_table(table, share)

    with part_workers(store, stage_documents(package), executor) as workers:
        build_stage(store, package, note, workers)
    return said


def test_parts_made_by_workers_are_the_rows_of_one_process_in_their_order(store: Store, zoo: Callable[[], str]) -> None:
    package = zoo()
    build_stage(store, package)
    alone = contents(store)

    with ThreadPoolExecutor(3) as pool:
        said = build(store, package, pool)

    assert contents(store) == alone
    assert alone["lion"] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert alone["census"] == [(6,)]
    # and progress never falls, and nothing is left beside the database
    shares = [share for _, share in said]
    assert shares == sorted(shares)
    assert not store.scratch.exists()


def test_tables_of_the_same_parts_follow_one_another(zoo: Callable[[], str]) -> None:
    names = [document.name for document in in_order(stage_documents(zoo()))]

    assert names == ["zoo.part", "zoo.lion", "zoo.cub", "zoo.census"]


def test_what_a_table_does_not_say_that_it_reads_is_not_there(store: Store, zoo: Callable[..., str]) -> None:
    package = zoo("zoo.lion", "forgetful")

    with ThreadPoolExecutor(2) as pool, pytest.raises(QueryError, match="run"):
        build(store, package, pool)

    # the stage before it stays away as a whole
    assert store.rows("SELECT schema_name FROM duckdb_schemas() WHERE schema_name = 'zoo'") == []


class Crashing(ReaderPool):
    """Works in this process; some tasks end as where a process crashes.

    Args:
        first: how many of the first tasks do.
        alone: whether they do so again when they are alone.
    """

    def __init__(self, first: int, *, alone: bool) -> None:
        self.left = first
        self.crashes_alone = alone
        self.retried = 0

    def submit(self, work: Callable[..., Any], /, *args: Any, **_kwargs: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        made = work(*args)  # it has written already when it dies
        if self.left:
            self.left -= 1
            answer.set_exception(BrokenExecutor("gone"))
        else:
            answer.set_result(made)
        return answer

    def cancel_waiting(self) -> None:
        """Nothing waits."""

    def run_alone(self, work: Callable[..., Any], /, *args: Any, **_kwargs: Any) -> Any:
        self.retried += 1
        if self.crashes_alone:
            raise BrokenExecutor("gone")
        return work(*args)


def test_a_part_whose_worker_crashed_is_made_once_more(store: Store, zoo: Callable[[], str]) -> None:
    package = zoo()
    build_stage(store, package)
    alone, pool = contents(store), Crashing(2, alone=False)

    build(store, package, pool)

    assert contents(store) == alone
    assert pool.retried == 2


def test_a_part_whose_workers_crash_again_ends_the_stage_by_name(store: Store, zoo: Callable[[], str]) -> None:
    package = zoo()
    build_stage(store, package)
    before = contents(store)

    with pytest.raises(InputUnusableError, match=r"the process that made zoo\.lion, zoo\.cub crashed") as caught:
        build(store, package, Crashing(1, alone=True))

    assert "first_source_id 0" in str(caught.value)
    assert contents(store) == before


def test_after_kill_9_while_workers_make_parts_they_end_and_the_next_build_is_whole(
    tmp_path: Path, store: Store, zoo: Callable[[], str]
) -> None:
    # given a stage that was built once, and a process that is killed while its workers build it again: one of three
    # parts is made by then, the second takes half a second, the third one
    package, place = zoo(), store.path
    assert place is not None
    (tmp_path / "reserve" / "zoo" / "cub.py").write_text(SLOW_CUB_ROWS)
    build_stage(store, package)
    before = contents(store)
    store.close()
    killed = subprocess.run(
        [sys.executable, write_script(tmp_path), str(place), package],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    workers = [Path("/proc", number) for number in killed.stdout.split()]
    assert workers

    # when it is opened again
    with Store(place, is_kept=False) as again:
        # then the stage is as it was, and can be built; workers end by themselves, and nothing lies beside the database
        assert contents(again) == before
        with ThreadPoolExecutor(2) as pool:
            build(again, package, pool)
        assert contents(again) == before
    deadline = time.monotonic() + 10
    while any(one.exists() for one in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(one.exists() for one in workers)
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith("zoo.duckdb")] == ["zoo.duckdb"]


def write_script(folder: Path) -> str:
    (folder / "suicidal.py").write_text(SUICIDAL)
    return str(folder / "suicidal.py")


def test_a_file_and_a_folder_made_by_workers_hold_what_one_process_makes(
    tmp_path: Path, sample_database: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sample_database("slow_nic")
    # given one rank in each part
    monkeypatch.setattr(planned_batches, "__defaults__", (1,))
    made: list[MadePart] = []

    def noted(self: PartWorkers, documents: Any, part: MadePart, *, is_first: bool) -> None:
        made.append(part)
        add(self, documents, part, is_first=is_first)

    add = PartWorkers._add
    monkeypatch.setattr(PartWorkers, "_add", noted)
    traces = ROOT / "sample_traces" / "slow_nic"
    with ThreadPoolExecutor(4) as pool:
        for name in ("job.duckdb", "job/"):
            made.clear()
            with (
                Store(whole, read_only=True) as alone,
                Store(f"{tmp_path}/{name}", is_kept=False) as store,
            ):
                api.ingest(sorted(traces.iterdir(), reverse=True), store, run="slow_nic", executor=pool)

                assert {"attribute.finding", "timeline.phase"} <= tables_of(store).keys()
                assert differing(alone, store) == ["align.rank_batch"]
            tables = {table for part in made for table in part.files}
            assert {"align.call", "timeline.segment", "operation.kernel", "graph.queued"} <= tables
            assert len(made) == 4 * 4  # ranks, and stages that have tables in parts


def test_a_part_brings_nothing_back_once_its_folder_is_gone(store: Store, zoo: Callable[[], str]) -> None:
    # given a task of a job that was killed since
    package = zoo()
    build_stage(store, package)
    documents = [one for one in stage_documents(package) if one.parts]
    with spool_folder(store.scratch) as spool, ThreadPoolExecutor(1) as pool:
        workers = PartWorkers(store, stage_documents(package), pool, spool)
        values = {"first_source_id": 0, "last_source_id": 0}
        task = workers._task(package, documents, workers._reads(documents), values)

    with pytest.raises(FileNotFoundError):
        make_part(task)

    assert not spool.exists()
