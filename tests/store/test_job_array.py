"""A job read in parts and merged holds what one process makes of it, whatever became of the parts on the way."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.store.folders import write_job, write_trace
from tests.store.tables import differing, tables_of
from traceforge import api, job_array
from traceforge.errors import InputUnusableError
from traceforge.store import spool
from traceforge.store.array_manifest import JobPart
from traceforge.store.database import Store
from traceforge.synth.folder import write_scenario
from traceforge.synth.scenario import Cluster, Scenario

SAMPLE = ROOT / "sample_traces" / "far_nic"


def read(traces: Path, database: Path, *parts: str, **options: str) -> None:
    """Some parts of a job, one after the other."""
    for text in parts:
        number, count = map(int, text.split("/"))
        job_array.ingest_part([traces], database, JobPart(number, count), **options)  # type: ignore[arg-type]


def one_process(traces: Path) -> Store:
    store = Store(None, is_kept=False)
    api.ingest([traces], store)
    return store


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return write_job(tmp_path / "night", ranks=4)


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same job, which nobody changes."""
    return write_job(tmp_path_factory.mktemp("jobs") / "night", ranks=4)


@pytest.fixture(scope="module")
def whole(night: Path) -> Iterator[Store]:
    """What one process makes of it."""
    with one_process(night) as store:
        yield store


def test_every_table_of_a_sample_is_that_of_one_process(tmp_path: Path, sample_database: Callable[..., Path]) -> None:
    read(SAMPLE, tmp_path / "job", *["4/5", "2/5", "5/5", "1/5", "3/5"])
    assert not (tmp_path / "job" / "catalogue.duckdb").exists()
    job_array.merge(tmp_path / "job")

    with Store(sample_database("far_nic"), read_only=True) as file, Store(f"{tmp_path / 'job'}/") as folder:
        assert {"attribute.finding", "timeline.phase", "raw.nccl_communicator"} <= tables_of(folder).keys()
        assert differing(file, folder) == []
    # and nothing of the parts is left
    assert sorted(path.name for path in (tmp_path / "job").iterdir()) == ["catalogue.duckdb", "facts"]


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_what_is_lost_unknown_or_double_is_as_in_one_process(
    tmp_path: Path, night: Path, whole: Store, count: int
) -> None:
    read(night, tmp_path / "job", *(f"{number}/{count}" for number in range(1, count + 1)))
    result = job_array.merge(tmp_path / "job")

    assert [path.name for path in result.read] == ["copy.json", *(f"rank{rank}.json" for rank in (0, 1, 2, 3, 9))]
    assert [path.name for path in result.unrecognised] == ["notes.txt"]
    with Store(tmp_path / "job") as folder:
        assert tables_of(whole)["meta.issue"]
        assert differing(whole, folder) == []


def test_a_file_of_several_ranks_is_read_by_one_part(tmp_path: Path) -> None:
    # given one export of Nsight Systems with the four ranks of a host, and a trace of another rank
    job = Scenario(iterations=3, cluster=Cluster(nodes=1, devices=4))
    traces = tmp_path / "night"
    write_scenario(job, traces, trace_format="nsys")
    write_trace(traces / "rank9.json", 9)
    assert len(list(traces.glob("*.sqlite"))) == 1

    read(traces, tmp_path / "job", "2/2", "1/2")
    job_array.merge(tmp_path / "job")

    with one_process(traces) as file, Store(tmp_path / "job") as folder:
        assert folder.value("SELECT COUNT(*) FROM meta.source WHERE kind = 'nsys'") == 4
        assert differing(file, folder) == []


def test_a_file_that_fails_in_a_part_fails_in_the_whole(
    tmp_path: Path, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = spool.read_rows

    def failing(task: spool.Task, *others: Any) -> spool.SourceRows:
        if task.path.name == "rank1.json":
            raise InputUnusableError("its disk is gone", where=str(task.path), hint="mount it")
        return whole(task, *others)

    monkeypatch.setattr(spool, "read_rows", failing)
    read(job, tmp_path / "job", "1/2", "2/2")
    result = job_array.merge(tmp_path / "job")

    assert [(path.name, error.what, error.hint) for path, error in result.failed] == [
        ("rank1.json", "its disk is gone", "mount it")
    ]
    with one_process(job) as file, Store(tmp_path / "job") as folder:
        assert differing(file, folder) == []


def test_parts_that_run_twice_or_are_killed_count_once(
    tmp_path: Path, night: Path, whole: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given part 2 killed after its rows are written, before its manifest is
    with monkeypatch.context() as patch:
        patch.setattr("traceforge.store.array_part.write_manifest", _killed)
        with pytest.raises(KeyboardInterrupt):
            read(night, tmp_path / "job", "2/2")
    with pytest.raises(InputUnusableError, match="no parts"):
        job_array.merge(tmp_path / "job")
    # when it runs again, and part 1 twice
    read(night, tmp_path / "job", "1/2", "2/2", "1/2")
    assert len([path for path in (tmp_path / "job/parts").iterdir() if path.is_dir()]) == 4
    job_array.merge(tmp_path / "job")

    with Store(tmp_path / "job") as folder:
        assert differing(whole, folder) == []


def _killed(*_arguments: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["store.array_merge.link_or_copy", "api.analyze", "job_array.remove_parts"])
def test_a_merge_that_was_killed_is_run_again(
    tmp_path: Path, night: Path, whole: Store, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(night, tmp_path / "job", "1/2", "2/2")
    with monkeypatch.context() as patch:
        patch.setattr(f"traceforge.{where}", _killed)
        with pytest.raises(KeyboardInterrupt):
            job_array.merge(tmp_path / "job")

    job_array.merge(tmp_path / "job")

    with Store(tmp_path / "job") as folder:
        assert differing(whole, folder) == []


def test_a_second_array_adds_the_files_that_are_new(tmp_path: Path, job: Path) -> None:
    late = [job / "rank2.json", job / "rank3.json"]
    for path in late:
        path.rename(tmp_path / path.name)
    read(job, tmp_path / "job", "1/1")
    job_array.merge(tmp_path / "job")
    for path in late:
        (tmp_path / path.name).rename(path)
    read(job, tmp_path / "job", "1/2", "2/2")

    result = job_array.merge(tmp_path / "job")

    # rank2.json has the bytes of copy.json, which are known
    assert [path.name for path in result.read] == ["rank3.json"]
    assert len(result.unchanged) == 5


def test_a_folder_among_the_traces_is_not_read(tmp_path: Path, job: Path) -> None:
    read(job, job / "job", "1/2", "2/2")

    assert [path.name for path in job_array.merge(job / "job").unrecognised] == ["notes.txt"]


def refused(database: Path) -> str:
    """Why a merge stops; nothing of it may stay."""
    with pytest.raises(InputUnusableError) as caught:
        job_array.merge(database)
    assert caught.value.hint
    assert not (database / "catalogue.duckdb").exists()
    return str(caught.value)


def test_parts_that_are_missing_are_named(tmp_path: Path, job: Path) -> None:
    read(job, tmp_path / "job", "1/5", "3/5", "4/5")

    assert "parts 2/5, 5/5 are missing" in refused(tmp_path / "job")


def test_parts_of_another_version_are_named(tmp_path: Path, job: Path) -> None:
    read(job, tmp_path / "job", "1/2", "2/2")
    path = tmp_path / "job/parts/2-of-2.json"
    document = json.loads(path.read_text())
    document["settings"]["version"] = "0.0.7"
    path.write_text(json.dumps(document))

    assert "part 2/2 is read by traceforge 0.0.7, and this is " in refused(tmp_path / "job")


def test_parts_of_a_listing_that_changed_are_named(tmp_path: Path, job: Path) -> None:
    read(job, tmp_path / "job", "1/3", "3/3")
    write_trace(job / "rank4.json", 4)
    read(job, tmp_path / "job", "2/3")

    assert "part 2/3 is made from another listing of files" in refused(tmp_path / "job")


def test_parts_read_with_other_options_are_named(tmp_path: Path, job: Path) -> None:
    read(job, tmp_path / "job", "1/3", "3/3")
    read(job, tmp_path / "job", "2/3", run="tuesday")

    assert "part 2/3 is read with other options" in refused(tmp_path / "job")


def test_a_part_of_another_folder_is_not_said_to_have_other_options(tmp_path: Path, job: Path) -> None:
    # given two parts of one folder, and one of another, whose run is named by it
    read(job, tmp_path / "job", "1/3", "3/3")
    read(write_job(tmp_path / "tuesday", ranks=5), tmp_path / "job", "2/3")

    assert "part 2/3 is made from another listing of files" in refused(tmp_path / "job")


def test_parts_of_two_arrays_are_not_mixed(tmp_path: Path, job: Path) -> None:
    read(job, tmp_path / "job", "1/2", "2/2", "1/3")

    assert "parts of different arrays are mixed: of 2, 3" in refused(tmp_path / "job")


def rows_of_part(database: Path) -> Iterable[Path]:
    return sorted(database.glob("parts/2-of-2.*/*/*/*.parquet"))


def test_rows_that_are_cut_missing_or_links_are_refused(tmp_path: Path, job: Path) -> None:
    read(job, tmp_path / "job", "1/2", "2/2")
    (first, *_) = rows_of_part(tmp_path / "job")
    kept = first.read_bytes()

    first.write_bytes(kept[:-1])
    assert "rows of part 2/2 in raw.event_kind are missing or not whole" in refused(tmp_path / "job")
    first.unlink()
    assert "missing or not whole" in refused(tmp_path / "job")
    (tmp_path / "elsewhere").write_bytes(kept)
    first.symlink_to(tmp_path / "elsewhere")
    assert "missing or not whole" in refused(tmp_path / "job")


@pytest.mark.parametrize("place", [5, 40, -12])
def test_rows_damaged_at_the_same_size_are_named_and_the_part_is_run_again(
    tmp_path: Path, night: Path, whole: Store, place: int
) -> None:
    # given one byte of another value: among the rows, or in what the file says of itself
    read(night, tmp_path / "job", "1/2", "2/2")
    (first, *_) = rows_of_part(tmp_path / "job")
    damaged = bytearray(first.read_bytes())
    damaged[place] ^= 0xFF
    first.write_bytes(damaged)

    with pytest.raises(InputUnusableError) as caught:
        job_array.merge(tmp_path / "job")

    assert caught.value.what == "rows of part 2/2 in raw.event_kind are damaged: they are not as they were written"
    assert caught.value.where == str(first.parent)
    assert caught.value.hint == "run this part again: traceforge ingest … --part 2/2"
    # then nothing of it was merged, and that part run again replaces it
    assert not (tmp_path / "job/catalogue.duckdb").exists()
    read(night, tmp_path / "job", "2/2")
    job_array.merge(tmp_path / "job")
    with Store(tmp_path / "job") as folder:
        assert differing(whole, folder) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("attempt", "../../elsewhere"),
        ("files", 7),
        ("part.number", 3),
        ("files.0.found.rows.folder", "../0"),
        ("files.0.found.rows.partitions.0.table", "meta.run; DROP TABLE meta.run"),
        ("files.0.found.rows.partitions.0.mark", "../../x"),
        ("files.0.found.content_hash", "'"),
        ("files.0.checksums", 7),
    ],
)
def test_a_manifest_that_traceforge_never_writes_is_refused(
    tmp_path: Path, job: Path, name: str, value: object
) -> None:
    read(job, tmp_path / "job", "1/2", "2/2")
    path = tmp_path / "job/parts/1-of-2.json"
    document = json.loads(path.read_text())
    inner = document
    *parents, last = name.split(".")
    for parent in parents:
        inner = inner[int(parent) if parent.isdigit() else parent]
    inner[last] = value
    path.write_text(json.dumps(document))

    assert "this manifest of a part is damaged" in refused(tmp_path / "job")
