"""Tables as Parquet: what is in the database is in the files, and its meaning beside them."""

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from tests.given import add_facts
from traceforge import api
from traceforge.errors import InputUnusableError, UsageError
from traceforge.export.parquet import export_parquet
from traceforge.store.database import Store
from traceforge.synth.cluster import Cluster
from traceforge.synth.folder import write_scenario
from traceforge.synth.scenario import Scenario

NAMES = ("first", "../../up'; DROP TABLE meta.run; --")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Two runs, one of a hostile name."""
    folder = tmp_path_factory.mktemp("jobs")
    with Store(None, is_kept=True) as store:
        for seed, name in enumerate(NAMES):
            write_scenario(Scenario("job", seed, 3, cluster=Cluster(1, 2)), folder / str(seed))
            add_facts(store, folder / str(seed), run_name=name)
        api.analyze(store)
        yield store


def test_every_row_is_in_the_file_of_its_run(store: Store, tmp_path: Path) -> None:
    export_parquet(store, tmp_path / "it's")

    files = sorted((tmp_path / "it's" / "timeline.arrival").rglob("*.parquet"))
    assert [file.parent.name for file in files] == ["run_id=0", "run_id=1"]
    for run_id, file in enumerate(files):
        rows = pl.read_parquet(file, hive_partitioning=False)
        kept = store.query("SELECT * EXCLUDE (run_id) FROM timeline.arrival WHERE run_id = ?", [run_id])
        assert rows.sort(rows.columns).equals(kept.sort(kept.columns))


def test_the_manifest_counts_rows_and_tells_what_columns_mean(store: Store, tmp_path: Path) -> None:
    tables = export_parquet(store, tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "tables.json").read_text(encoding="utf-8"))

    assert [run["run_name"] for run in manifest["runs"]] == list(NAMES)
    assert [table["name"] for table in manifest["tables"]] == [table.name for table in tables]
    for table in manifest["tables"]:
        counted = store.query(f"SELECT COUNT(*) FROM {table['name']}").item()
        assert table["row_count"] == counted
        assert bool(table["files"]) == bool(counted) or table["partitioned_by"] is None
        assert table["comment"]
        assert all(column["comment"] for column in table["columns"])
    readme = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "| `late_ns` | `BIGINT` | Lateness against the first arriver" in readme


def test_no_name_of_a_run_becomes_a_path(store: Store, tmp_path: Path) -> None:
    export_parquet(store, tmp_path / "out")

    inside = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert all("up" not in Path(name).parts and "DROP" not in name for name in inside)
    assert {path.name for path in tmp_path.iterdir()} == {"out"}


def test_facts_are_written_when_asked_for(store: Store, tmp_path: Path) -> None:
    derived = {table.name for table in export_parquet(store, tmp_path / "a", run_id=0)}
    everything = {table.name for table in export_parquet(store, tmp_path / "b", run_id=0, with_facts=True)}

    assert not any(name.startswith("raw.") for name in derived)
    assert "raw.event" in everything
    assert not (tmp_path / "b" / "raw.event" / "run_id=1").exists()


def test_a_folder_that_holds_something_is_left_alone(store: Store, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")

    with pytest.raises(UsageError, match="not an empty folder"):
        export_parquet(store, tmp_path)


@pytest.mark.parametrize("is_there", [False, True])
def test_of_tables_for_which_the_disk_is_too_small_nothing_is_left(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    # given a disk with room for three tables
    folder, written = tmp_path / "out", list[Path]()
    real = Store.write_parquet
    if is_there:
        folder.mkdir()

    def full(store: Store, query: str, path: Path) -> None:
        if len(written) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(path)
        real(store, query, path)

    monkeypatch.setattr(Store, "write_parquet", full)

    with pytest.raises(InputUnusableError, match="cannot be written: No space left on device"):
        export_parquet(store, folder)

    assert len(written) == 3
    assert list(tmp_path.rglob("*")) == [folder] * is_there


def test_an_empty_folder_that_is_there_is_filled_and_stays_the_same(store: Store, tmp_path: Path) -> None:
    # It may be where a disk is mounted, or where somebody is.
    before = tmp_path.stat().st_ino

    tables = export_parquet(store, tmp_path)

    assert tmp_path.stat().st_ino == before
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {"README.md", "tables.json", *(file for table in tables for file in table.files)}
