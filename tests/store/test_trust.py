"""A database, like a trace, may be hostile: opening one reads nothing else and runs nothing of its own."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tests.given import rows_of
from traceforge.errors import InputUnusableError, QueryError
from traceforge.store.database import Store

Change = Callable[[str], Path]


@pytest.fixture
def changed(tmp_path: Path) -> Change:
    """A database of ours that a stranger changed."""

    def change(sql: str) -> Path:
        path = tmp_path / "job.duckdb"
        with Store(path) as store:
            store.execute("INSERT INTO meta.run (run_id, run_name) VALUES (0, 'night')")
        with duckdb.connect(str(path)) as connection:
            connection.execute(sql)
        return path

    return change


def refusal(path: Path) -> str:
    with pytest.raises(InputUnusableError) as caught:
        Store(path, read_only=True)
    assert caught.value.where == str(path)
    return caught.value.what


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        (
            "DROP TABLE meta.run; CREATE VIEW meta.run AS SELECT 0 AS run_id, content AS x FROM read_text('{secret}')",
            "meta.run is no table",
        ),
        ("DROP TABLE meta.issue", "meta.issue is missing"),
        ("ALTER TABLE raw.track ADD COLUMN more VARCHAR", "raw.track has other columns"),
        (
            "DROP VIEW raw.event; CREATE VIEW raw.event AS SELECT content FROM read_text('{secret}')",
            "raw.event has other columns",
        ),
        ("ALTER TABLE meta.source ALTER COLUMN rank TYPE VARCHAR", "meta.source.rank is of another type"),
        (
            "DROP VIEW raw.event; ALTER TABLE raw.occurrence ALTER COLUMN duration_ns TYPE DOUBLE",
            "raw.occurrence.duration_ns is of another type",
        ),
        ("CREATE VIEW raw.more AS SELECT * FROM read_text('{secret}')", "raw.more is none of its tables"),
        ("CREATE MACRO meta.count_all() AS TABLE SELECT * FROM read_text('{secret}')", "it brings a macro, "),
        ("CREATE MACRO main.coalesce_all(a) AS a + 1", "it brings a macro, main.coalesce_all"),
        ("CREATE TABLE main.incoming_rows AS SELECT 1 AS run_id", "main.incoming_rows is none of its tables"),
    ],
)
def test_what_is_not_as_we_make_it_is_refused(changed: Change, tmp_path: Path, sql: str, what: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret")

    assert what in refusal(changed(sql.format(secret=secret)))


def test_a_view_of_ours_that_reads_otherwise_is_refused(changed: Change, tmp_path: Path) -> None:
    # given raw.event with its own columns, one of them from a file
    path = changed("SELECT 1")
    with duckdb.connect(str(path)) as connection:
        ((text,),) = connection.execute("SELECT sql FROM duckdb_views() WHERE view_name = 'event'").fetchall()
        hostile = text.replace("k.phase,", f"(SELECT content FROM read_text('{tmp_path / 'secret'}')),", 1)
        assert hostile != text
        connection.execute("DROP VIEW raw.event")
        (tmp_path / "secret").write_text("x")
        connection.execute(hostile)

    assert "raw.event is not the view that it should be" in refusal(path)


def test_a_database_of_ours_opens(changed: Change) -> None:
    with Store(changed("CREATE SCHEMA mine; CREATE VIEW mine.own AS SELECT 1 AS x"), read_only=True) as store:
        assert rows_of(store, "SELECT run_name FROM meta.run") == [("night",)]


def test_views_of_strangers_in_other_schemas_reach_no_file(changed: Change, tmp_path: Path) -> None:
    # given a table of the analysis that a stranger replaced
    (tmp_path / "secret").write_text("the secret")
    view = f"CREATE VIEW timeline.iteration AS SELECT * FROM read_text('{tmp_path / 'secret'}')"
    path = changed(f"CREATE SCHEMA IF NOT EXISTS timeline; {view}")

    with Store(path, read_only=True) as store, pytest.raises(QueryError, match="disabled by configuration"):
        store.query("SELECT * FROM timeline.iteration")


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM read_csv('{secret}')",
        "COPY (SELECT 1) TO '{secret}.csv'",
        "ATTACH '{secret}.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET allowed_directories = ['/']",
    ],
)
def test_sql_reaches_nothing_beside_the_database(changed: Change, tmp_path: Path, sql: str, read_only: bool) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret")

    with Store(changed("SELECT 1"), read_only=read_only) as store, pytest.raises((QueryError, duckdb.Error)):
        store.query(sql.format(secret=secret))

    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.duckdb", "secret"]


def test_rows_still_leave_as_parquet_wherever_the_user_wants_them(changed: Change, tmp_path: Path) -> None:
    target = tmp_path / "else [1]" / "rows.parquet"
    target.parent.mkdir()

    with Store(changed("SELECT 1"), read_only=True) as store:
        store.write_parquet("SELECT run_name FROM meta.run", target)

    assert duckdb.sql(f"SELECT * FROM read_parquet('{target}')").fetchall() == [("night",)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["else [1]", "job.duckdb"]


def test_what_does_not_fit_into_memory_still_goes_to_disk(tmp_path: Path) -> None:
    with Store(tmp_path / "job.duckdb", threads=1) as store:
        store.execute("SET memory_limit = '40 MB'")
        store.execute("CREATE TABLE main.large AS SELECT md5(i::VARCHAR) AS x FROM range(2_000_000) AS t(i) ORDER BY x")

        assert rows_of(store, "SELECT COUNT(*) FROM main.large") == [(2_000_000,)]


@pytest.mark.parametrize("command", [["report", "{db}", "-o", "{out}"], ["info", "{db}"]])
def test_no_command_reads_a_file_that_a_database_names(changed: Change, tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "secret").write_text("the secret")
    view = f"SELECT 0 AS run_id, content AS run_name, 1 AS world_size FROM read_text('{tmp_path / 'secret'}')"
    path = changed(f"DROP TABLE meta.run; CREATE VIEW meta.run AS {view}")
    arguments = [word.format(db=path, out=tmp_path / "out.html") for word in command]

    done = subprocess.run(
        [sys.executable, "-m", "traceforge", *arguments], capture_output=True, text=True, check=False, timeout=60
    )

    assert done.returncode == 3
    assert "meta.run is no table" in done.stderr
    assert "the secret" not in done.stdout + done.stderr
    assert not (tmp_path / "out.html").exists()
