"""A job read by the workers of a Dask cluster holds what one process makes of it, whoever dies on the way."""

import random
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.conftest import ROOT
from tests.local_cluster import Dying, started
from tests.store.folders import ingested, write_job, write_trace
from tests.store.tables import differing, tables_of
from traceforge import api, cluster
from traceforge.errors import ClusterError
from traceforge.records import ReadOptions
from traceforge.store.database import Store
from traceforge.store.spool import Task, read_task
from traceforge.synth.folder import write_scenario
from traceforge.synth.scenario import Cluster, Scenario

pytest.importorskip("distributed")
SAMPLES = sorted(path.parent for path in (ROOT / "sample_traces").glob("*/truth.json"))
KILLS = 6


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A scheduler and two workers, each a process of its own."""
    with started(tmp_path_factory.mktemp("cluster")) as (place, _):
        yield place


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return write_job(tmp_path / "night", ranks=6)


def sets(tmp_path: Path) -> list[Path]:
    """Two ranks of every third sample with all that lies beside them, and jobs in other formats."""
    scenario = Scenario(iterations=3, cluster=Cluster(nodes=1, devices=2))
    for kind in ("nsys", "pftrace"):
        write_scenario(scenario, tmp_path / kind, trace_format=kind)
    others = shutil.ignore_patterns("rank[2-9]*")
    samples = [shutil.copytree(one, tmp_path / one.name, ignore=others) for one in SAMPLES[::3]]
    return [*samples, tmp_path / "nsys", tmp_path / "pftrace"]


def dying(monkeypatch: pytest.MonkeyPatch, deaths: dict[str, int], marks: Path) -> None:
    """Have workers die in the middle of files."""
    marks.mkdir()
    sources = {name: Dying(source, deaths, marks) for name, source in api.sources().items()}
    monkeypatch.setattr("tests.store.folders.sources", lambda: sources)


def test_every_table_of_a_sample_is_that_of_one_process(
    tmp_path: Path, address: str, sample_database: Callable[..., Path]
) -> None:
    result = run("ingest", ROOT / "sample_traces/far_nic", "--db", f"{tmp_path / 'job'}/", "--executor", address)

    assert result.returncode == 0, result.stderr
    with Store(sample_database("far_nic"), read_only=True) as file, Store(tmp_path / "job") as folder:
        assert {"attribute.finding", "timeline.phase", "raw.nccl_communicator"} <= tables_of(folder).keys()
        assert differing(file, folder) == []
    assert sorted(path.name for path in (tmp_path / "job").iterdir()) == ["catalogue.duckdb", "facts"]


def test_facts_of_all_sets_are_those_of_one_process_though_workers_die(
    tmp_path: Path, address: str, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given seven sets, and workers that die in the middle of files drawn by lot
    all_sets = [*sets(tmp_path), job]
    assert len(all_sets) == 7
    names = {f"{one.name}/{path.name}" for one in all_sets for path in one.glob("rank*.json*")}
    drawn = random.Random(5).sample(sorted(names - {"night/rank9.json"}), KILLS)  # noqa: S311
    # when all are read on the cluster
    with cluster.readers_at(address) as readers:
        for number, one in enumerate(all_sets):
            with monkeypatch.context() as patch:
                chosen = {path.name: 1 for path in one.iterdir() if f"{one.name}/{path.name}" in drawn}
                dying(patch, chosen, tmp_path / f"marks{number}")
                with Store(f"{tmp_path / str(number)}/", is_kept=False) as folder:
                    ingested(folder, one, readers)
            # then as many died as were drawn, and nothing else differs from one process
            with Store(None, is_kept=False) as file, Store(tmp_path / str(number)) as folder:
                ingested(file, one)
                assert tables_of(folder)["meta.source"]
                assert differing(file, folder) == [], one.name
    assert len(list(tmp_path.glob("marks*/*"))) == KILLS


def test_a_file_of_which_workers_die_again_and_again_is_left_out(
    tmp_path: Path, address: str, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying(monkeypatch, {"rank1.json": 99}, tmp_path / "marks")

    with cluster.readers_at(address) as readers, Store(f"{tmp_path / 'job'}/") as folder:
        result = ingested(folder, job, readers)

    assert [(path.name, error.what) for path, error in result.failed] == [
        ("rank1.json", "the process that read it crashed, or was killed")
    ]
    assert len(result.read) == 7
    assert len(list((tmp_path / "marks").iterdir())) == 4  # the scheduler gave it up after two deaths, twice


def test_a_disk_that_is_full_on_one_worker_is_named_and_the_rest_is_kept(
    tmp_path: Path, address: str, job: Path
) -> None:
    for rank in range(6):
        write_trace(job / f"rank{rank}.json", rank, count=4000)
    with cluster.readers_at(address) as readers, Store(f"{tmp_path / 'job'}/") as folder:
        readers.client.wait_for_workers(2, timeout=60)
        worker = sorted(readers.workers())[0]
        readers.client.run(limit_files, 2000, workers=[worker])
        with pytest.raises(ClusterError, match=r"worker \d.*cannot write: .*(too large|os error 27)"):
            ingested(folder, job, readers)
        readers.client.run(limit_files, resource.RLIM_INFINITY, workers=[worker])
        # when there is room again
        ingested(folder, job, readers)

        with Store(None, is_kept=False) as file:
            ingested(file, job)
            assert differing(file, folder) == []


def limit_files(size_bytes: int) -> None:
    """Have this process write no larger file, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))


def test_workers_of_another_version_are_named(
    tmp_path: Path, address: str, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster.readers_at(address) as readers, Store(f"{tmp_path / 'job'}/") as folder:
        # workers that come after the start, too
        monkeypatch.setattr(api, "worker_version", lambda: "9.9.9+0123")
        with pytest.raises(ClusterError, match=r"worker \d .*it reads with traceforge .*, and this is 9.9.9\+0123"):
            ingested(folder, job, readers)

    result = run("ingest", job, "--db", f"{tmp_path / 'other'}/", "--executor", address)
    assert result.returncode == 3
    assert "error: worker tcp://127.0.0.1:" in result.stderr
    assert "and this is 9.9.9+0123" in result.stderr


def test_a_worker_that_cannot_run_traceforge_is_named_and_one_that_died_is_not(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster.readers_at(address) as readers:
        answers: dict[str, object] = {"tcp://a:1": "1.0+2", "tcp://b:1": OSError("gone")}
        monkeypatch.setattr(readers.client, "run", lambda *_, **__: answers)
        assert readers.workers() == {"tcp://a:1": "1.0+2"}

        answers["tcp://c:1"] = ModuleNotFoundError("No module named 'traceforge'")
        with pytest.raises(ClusterError, match="worker tcp://c:1: it cannot run traceforge: No module"):
            readers.workers()


def test_a_worker_that_does_not_see_the_shared_folder_is_named(tmp_path: Path, address: str, job: Path) -> None:
    trace = job / "rank1.json"
    tasks = [
        Task(trace, api.sources(), tmp_path / "elsewhere" / "0", ReadOptions(), 1, in_partitions=True),
        Task(job / "gone.json", api.sources(), tmp_path / "0", ReadOptions(), 1, in_partitions=True),
    ]
    with cluster.readers_at(address) as readers:
        errors = [readers.submit(read_task, task).exception(60) for task in tasks]

    assert [str(error).splitlines()[0].partition(": ")[2] for error in errors] == [
        f"{tmp_path}/elsewhere: it does not see this",
        f"{job}/gone.json: it does not see this",
    ]


def test_rows_that_this_machine_does_not_see_are_an_error(
    tmp_path: Path, address: str, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_SEEN_S", 0)
    monkeypatch.setattr(cluster, "_size_bytes", lambda _path: 0)

    with (
        cluster.readers_at(address) as readers,
        Store(f"{tmp_path / 'job'}/") as folder,
        pytest.raises(ClusterError, match="this machine does not see what worker"),
    ):
        ingested(folder, job, readers)


def test_a_cluster_that_is_lost_ends_the_ingest(tmp_path: Path, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_FETCH_S", 1)
    monkeypatch.setattr(cluster, "_CONNECT_S", 3)  # also how long a client looks for a scheduler that is gone
    scratch = tmp_path / "dask"
    with (
        started(scratch, workers=1) as (place, process),
        cluster.readers_at(place) as readers,
        Store(f"{tmp_path / 'job'}/") as folder,
    ):
        submit = readers.submit

        def kill_and_submit(*arguments: object) -> object:
            process.kill()
            process.wait()
            return submit(*arguments)

        monkeypatch.setattr(readers, "submit", kill_and_submit)
        with pytest.raises(ClusterError, match="the cluster is lost"):
            ingested(folder, job, readers)
    shutil.rmtree(scratch, ignore_errors=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--db", "{job}/", "--executor", "spark://here:1"], "--executor names no cluster: spark://here:1"),
        (["--db", "{job}/", "--executor", "dask://here"], "--executor names no cluster: dask://here"),
        (["--db", "{job}.duckdb", "--executor", "dask://here:1"], "needs a database that is a folder"),
        (["--db", "{job}/", "--executor", "dask://here:1", "--part", "1/2"], "exclude one another"),
        (["--db", "{job}/", "--executor", "dask://here:1", "--jobs", "2"], "exclude one another"),
    ],
)
def test_what_no_cluster_can_do_is_refused(tmp_path: Path, options: list[str], message: str) -> None:
    given = [option.format(job=tmp_path / "job") for option in options]

    result = run("ingest", ROOT / "sample_traces/healthy", *given)

    assert result.returncode == 2
    assert message in result.stderr
    assert "hint: " in result.stderr
    assert not (tmp_path / "job").exists()


def test_an_address_where_nobody_answers_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_CONNECT_S", 0.5)

    result = run(
        "ingest", ROOT / "sample_traces/healthy", "--db", f"{tmp_path}/job/", "--executor", "dask://127.0.0.1:9"
    )

    assert result.returncode == 3
    assert "no scheduler answers" in result.stderr
