"""A folder database may come from a stranger: nothing outside it is read, and what is not as we write it is refused."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import pytest

from tests.given import rows_of
from tests.store.folders import parts
from traceforge.errors import InputUnusableError, QueryError
from traceforge.store.database import Store
from traceforge.store.folder import is_database

REGISTRY_OVER_A_FILE = """
CREATE VIEW main.traceforge_partition AS
SELECT
  0::INTEGER AS source_id, content AS "table", '' AS mark, 1::INTEGER AS part_count, 1::BIGINT AS row_count,
  1::BIGINT AS size_bytes
FROM read_text('/etc/passwd')
"""
SECRET = pl.DataFrame({"secret": ["swordfish"]})


def refusal(job: Path) -> str:
    reasons = set()
    for read_only in (True, False):
        with pytest.raises(InputUnusableError) as caught:
            Store(job, read_only=read_only)
        reasons.add(caught.value.what)
    (reason,) = reasons
    return reason


def change(job: Path, sql: str) -> Path:
    """What a stranger does to the catalogue with a client of their own."""
    with duckdb.connect(str(job / "catalogue.duckdb")) as connection:
        connection.execute(sql)
    return job


def link_to_a_file_elsewhere(job: Path) -> None:
    part = parts(job)[0]
    secret = job.parent / "secret.parquet"
    part.rename(secret)
    part.symlink_to(secret)


def link_to_the_passwords(job: Path) -> None:
    parts(job)[0].unlink()
    parts(job)[0].with_name("any.parquet").symlink_to("/etc/passwd")


def link_to_a_folder_elsewhere(job: Path) -> None:
    table = parts(job)[0].parent.parent
    table.rename(job.parent / "elsewhere")
    table.symlink_to(job.parent / "elsewhere")


def link_in_the_place_of_all_facts(job: Path) -> None:
    (job / "facts").rename(job.parent / "elsewhere")
    (job / "facts").symlink_to(job.parent / "elsewhere")


def pipe_in_the_place_of_a_file(job: Path) -> None:
    part = parts(job)[0]
    part.unlink()
    os.mkfifo(part)


def catalogue_that_is_a_link(job: Path) -> None:
    (job / "catalogue.duckdb").rename(job.parent / "other.duckdb")
    (job / "catalogue.duckdb").symlink_to(job.parent / "other.duckdb")


def cut_file(job: Path) -> None:
    parts(job)[0].write_bytes(parts(job)[0].read_bytes()[:-1])


def lost_file(job: Path) -> None:
    parts(job)[-1].unlink()


@pytest.mark.parametrize(
    ("do", "what"),
    [
        (link_to_a_file_elsewhere, "is no plain file"),
        (link_to_the_passwords, "any.parquet is no plain file"),
        (link_to_a_folder_elsewhere, "is no plain file"),
        (link_in_the_place_of_all_facts, "facts is no folder of its own"),
        (pipe_in_the_place_of_a_file, "is no plain file"),
        (catalogue_that_is_a_link, "catalogue.duckdb is no plain file"),
        (cut_file, "is missing or not whole"),
        (lost_file, "the partition of source 2 in raw.track is missing or not whole"),
    ],
)
def test_files_that_are_not_as_they_were_written_are_refused(job: Path, do: Callable[[Path], None], what: str) -> None:
    do(job)

    assert what in refusal(job)


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        (
            "DROP VIEW raw.track; CREATE VIEW raw.track AS SELECT content FROM read_text('/etc/passwd')",
            "raw.track has other columns",
        ),
        ("DROP VIEW raw.track", "raw.track is missing"),
        ("DROP VIEW raw.track; CREATE TABLE raw.track (source_id INTEGER)", "raw.track is no view"),
        (
            "DROP TABLE raw.chakra_node; CREATE VIEW raw.chakra_node AS SELECT * FROM read_text('/etc/passwd')",
            "raw.chakra_node is no table",
        ),
        ("DROP TABLE main.traceforge_partition", "its catalogue names no partitions"),
        (f"DROP TABLE main.traceforge_partition; {REGISTRY_OVER_A_FILE}", "its catalogue names no partitions"),
        ("UPDATE main.traceforge_partition SET mark = '../../../../'", "names partitions that traceforge never writes"),
        ("UPDATE main.traceforge_partition SET \"table\" = '../..'", "names partitions that traceforge never writes"),
        ("UPDATE main.traceforge_partition SET part_count = 1000000000", "that traceforge never writes"),
        ("UPDATE main.traceforge_partition SET source_id = -1", "that traceforge never writes"),
        ("CREATE MACRO main.getvariable(a) AS '/etc/passwd'", "it brings a macro, main.getvariable"),
        ("CREATE MACRO main.read_parquet(a) AS TABLE SELECT 1", "it brings a macro, main.read_parquet"),
    ],
)
def test_a_catalogue_that_is_not_as_we_write_it_is_refused(job: Path, sql: str, what: str) -> None:
    assert what in refusal(change(job, sql))


@pytest.mark.parametrize("elsewhere", ["'{secret}'", "['{secret}']", "getvariable('raw.event_kind')"])
def test_a_view_with_our_columns_that_reads_otherwise_is_refused(job: Path, elsewhere: str) -> None:
    secret = parts(job)[-1]
    with duckdb.connect(str(job / "catalogue.duckdb")) as connection:
        ((text,),) = connection.execute("SELECT sql FROM duckdb_views() WHERE view_name = 'track'").fetchall()
        connection.execute(f"SET VARIABLE \"raw.event_kind\" = ['{secret}']")
        hostile = text.replace("getvariable('raw.track')", elsewhere.format(secret=secret))
        assert hostile != text
        connection.execute("DROP VIEW raw.track")
        connection.execute(hostile)

    assert refusal(job).endswith("raw.track is not the view that it should be")


def test_files_with_other_columns_are_refused_before_a_view_shows_them(job: Path) -> None:
    # given a partition that a stranger wrote anew, and made known to the catalogue
    part = next(path for path in parts(job) if "raw.track" in str(path))
    SECRET.write_parquet(part)
    change(job, f"UPDATE main.traceforge_partition SET size_bytes = {part.stat().st_size}"
           " WHERE \"table\" = 'raw.track' AND source_id = 0")  # fmt: skip

    assert "it has other columns than raw.track" in refusal(job)


def test_a_file_that_is_no_parquet_is_refused(job: Path) -> None:
    part = parts(job)[0]
    part.write_bytes(b"x" * part.stat().st_size)

    assert "cannot be read" in refusal(job)


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    "sql",
    [
        "FROM read_parquet('{secret}')",
        "FROM read_text('{secret}')",
        "FROM read_text('/etc/passwd')",
        "FROM glob('{folder}/*')",
        "SET allowed_directories = ['/']",
    ],
)
def test_sql_reaches_nothing_beside_the_folder(job: Path, tmp_path: Path, sql: str, read_only: bool) -> None:
    SECRET.write_parquet(tmp_path / "secret.parquet")
    with Store(job, read_only=read_only) as store, pytest.raises((QueryError, duckdb.Error)):
        store.query(sql.format(secret=tmp_path / "secret.parquet", folder=tmp_path))


def test_a_variable_that_sql_sets_leads_nowhere_else(job: Path, tmp_path: Path) -> None:
    pl.read_parquet(parts(job)[-1], hive_partitioning=False).write_parquet(tmp_path / "track.parquet")
    with Store(job, read_only=True) as store:
        store.lock_down()
        store.query(f"SET VARIABLE \"raw.track\" = ['{tmp_path / 'track.parquet'}']")

        with pytest.raises(QueryError, match="disabled by configuration"):
            store.query("FROM raw.track")


def test_the_catalogue_alone_is_no_database(job: Path) -> None:
    with pytest.raises(InputUnusableError) as caught:
        Store(job / "catalogue.duckdb", read_only=True)

    assert caught.value.what == "this is the catalogue of a folder database"
    assert caught.value.hint == f"name the folder: {job}"


@pytest.mark.parametrize("name", ["job*", "job?", "[1]", "event_id=3", "Name=x"])
def test_a_place_that_duckdb_would_take_for_a_pattern_or_a_column_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()

    with pytest.raises(InputUnusableError, match="cannot lie in a folder with"):
        Store(f"{tmp_path / name / 'job'}/")
    assert list((tmp_path / name).iterdir()) == []


@pytest.mark.parametrize("name", ["jöb's {1}", "run=3", "a b; DROP TABLE x--"])
def test_any_other_place_will_do(original: Path, tmp_path: Path, name: str) -> None:
    place = Path(shutil.copytree(original, tmp_path / name / "job"))

    assert is_database(place)
    with Store(place, read_only=True) as store:
        assert rows_of(store, "SELECT source_id, COUNT(*) FROM raw.event GROUP BY ALL ORDER BY ALL") == [
            (0, 20),
            (1, 20),
            (2, 20),
        ]
