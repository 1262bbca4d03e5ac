"""The database file: what any client sees in it, what is refused, what is undone."""

import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pytest

from traceforge.errors import InputUnusableError, QueryError, StoreBusyError, StoreTooNewError
from traceforge.store.database import Store
from traceforge.store.migrations import migrations

BLOCK_BYTES = "SELECT block_size FROM pragma_database_size() WHERE database_name = 'trace'"
STORAGE_VERSION = """
SELECT CAST(tags['storage_version'] AS VARCHAR) FROM duckdb_databases() WHERE database_name = current_database()
"""

COLUMNS = "SELECT COUNT(*) FROM duckdb_columns() WHERE database_name = 'trace' AND schema_name <> 'main'"
COMMENTS = f"{COLUMNS} AND comment IS NOT NULL"
UNDOCUMENTED = """
SELECT schema_name || '.' || table_name AS name FROM duckdb_tables()
WHERE database_name = current_database() AND COALESCE(comment, '') = ''
UNION ALL
SELECT schema_name || '.' || table_name || '.' || column_name FROM duckdb_columns()
WHERE database_name = current_database() AND COALESCE(comment, '') = ''
"""


def _foreign(path: Path, *, options: str = "") -> Path:
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}' AS other {options}")
        connection.execute("CREATE TABLE other.recipe (title VARCHAR)")
    return path


def _error(path: Path, *, read_only: bool) -> str:
    with pytest.raises(InputUnusableError) as caught:
        Store(path, read_only=read_only)
    return str(caught.value)


def test_a_new_database_is_written_in_the_format_that_every_client_since_1_1_reads(tmp_path: Path) -> None:
    with Store(tmp_path / "run.db") as store:
        version = store.query(STORAGE_VERSION).item()

    assert version.startswith("v1.0.0")


def test_blocks_are_small_so_that_many_small_tables_take_little_space(tmp_path: Path) -> None:
    with Store(tmp_path / "run.db") as store:
        assert store.query(BLOCK_BYTES).item() == 65_536


def test_a_database_with_blocks_of_another_size_is_opened_and_written_as_it_is(tmp_path: Path) -> None:
    # given an empty database of our own as former versions made it
    path = tmp_path / "run.db"
    Store(tmp_path / "new.db").close()
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{tmp_path / 'new.db'}' AS new")
        connection.execute(f"ATTACH '{path}' AS old (STORAGE_VERSION 'v1.0.0', BLOCK_SIZE 262144)")
        connection.execute("COPY FROM DATABASE new TO old")

    with Store(path) as store:
        store.execute("INSERT INTO meta.run VALUES (0, 'job', 4)")

    with Store(path, read_only=True) as store:
        assert store.query("SELECT run_name FROM meta.run").item() == "job"
        assert store.query(BLOCK_BYTES).item() == 262_144


def test_every_table_and_column_of_the_facts_is_documented() -> None:
    with Store(None, is_kept=True) as store:
        assert store.query(UNDOCUMENTED).rows() == []


def test_a_database_for_a_moment_takes_no_time_for_comments() -> None:
    with Store(None, is_kept=False) as passing, Store(None, is_kept=True) as kept:
        assert passing.query(COMMENTS).item() == 0
        assert passing.query(COLUMNS).item() == kept.query(COLUMNS).item() == kept.query(COMMENTS).item()


def test_what_was_written_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    with Store(tmp_path / "run.db") as store:
        store.execute("INSERT INTO meta.run VALUES (0, 'night', 8)")

    with Store(tmp_path / "run.db") as store:
        assert store.query("SELECT * FROM meta.run").rows() == [(0, "night", 8)]
    with Store(tmp_path / "run.db", read_only=True) as store:
        assert store.query("SELECT * FROM meta.run").rows() == [(0, "night", 8)]


@pytest.mark.parametrize("read_only", [False, True])
def test_a_text_file_is_no_database(tmp_path: Path, read_only: bool) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no database\n" * 1_000)

    assert _error(path, read_only=read_only) == (
        f"{path}: not a DuckDB database, or a damaged one\n\nhint: name a new file, or one made by `traceforge ingest`"
    )


def test_a_file_whose_name_speaks_of_a_lock_is_not_taken_for_a_locked_one(tmp_path: Path) -> None:
    path = tmp_path / "clock.db"
    path.write_text("no database\n" * 1_000)

    assert "not a DuckDB database" in _error(path, read_only=False)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_folder_is_no_database(tmp_path: Path, read_only: bool) -> None:
    told = _error(tmp_path, read_only=read_only)
    assert told.startswith(f"{tmp_path}: this is a folder, not a database")
    assert "hint: `traceforge ingest FOLDER --db FILE` makes a database" in told


def test_a_database_in_a_folder_that_does_not_exist_cannot_be_made(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "run.db"

    assert _error(path, read_only=False) == (
        f"{path}: the folder of the database does not exist\n\nhint: make the folder first"
    )


def test_reading_a_database_that_does_not_exist_does_not_make_one(tmp_path: Path) -> None:
    path = tmp_path / "gone.db"

    assert _error(path, read_only=True).startswith(f"{path}: no such database\n")
    assert not path.exists()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_database_of_another_program_is_left_alone(tmp_path: Path, read_only: bool) -> None:
    path = _foreign(tmp_path / "recipes.db", options="(STORAGE_VERSION 'v1.0.0')")

    assert _error(path, read_only=read_only) == (
        f"{path}: this database holds no traces\n\nhint: name a new file, or one made by `traceforge ingest`"
    )
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("recipe",)]


def test_a_database_of_another_program_in_a_newer_format_is_called_what_it_is(tmp_path: Path) -> None:
    path = _foreign(tmp_path / "recipes.db", options="(STORAGE_VERSION 'latest')")

    assert _error(path, read_only=False) == (
        f"{path}: this DuckDB database is of a newer format than those that traceforge writes"
        "\n\nhint: name a new file, or one made by `traceforge ingest`"
    )


@pytest.mark.parametrize("read_only", [False, True])
def test_a_database_of_a_newer_traceforge_is_refused(tmp_path: Path, read_only: bool) -> None:
    path = tmp_path / "run.db"
    with Store(path) as store:
        newest = store.query("SELECT MAX(number) FROM main.traceforge_migration").item()
        store.execute("INSERT INTO main.traceforge_migration VALUES (99, 'from the future')")

    with pytest.raises(StoreTooNewError) as caught:
        Store(path, read_only=read_only)

    assert str(caught.value) == (
        f"{path}: the database has schema 99, this traceforge knows {newest}"
        "\n\nhint: upgrade traceforge, or ingest the traces into a new database"
    )


def test_progress_in_groups_leaves_the_names_it_was_kept_under(tmp_path: Path) -> None:
    # given what an older version made of a dump whose group `7` has number 1 in the process
    path = tmp_path / "run.db"
    left_by(path, until=10)
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}' AS old")
        connection.execute(
            "INSERT INTO old.raw.flight_recorder_group VALUES"
            " (3, '7', 'pipeline', '[0, 1]', NULL, NULL, NULL), (3, '1', NULL, NULL, 42, -1, 41)"
        )

    with Store(path) as store:
        groups = store.query("SELECT * FROM raw.flight_recorder_group").rows()
        progress = store.query("SELECT * FROM raw.flight_recorder_progress").rows()

    assert groups == [(3, "7", "pipeline", "[0, 1]")]
    assert progress == [(3, 1, 42, -1, 41)]


def test_a_new_database_is_made_as_one_that_went_through_every_migration(tmp_path: Path) -> None:
    left_by(tmp_path / "old.db", until=2)

    with Store(tmp_path / "old.db") as migrated, Store(None, is_kept=False) as new:
        for what in (
            "schema_name, table_name, sql FROM duckdb_tables()",
            "schema_name, view_name, sql FROM duckdb_views()",
            "schema_name, table_name, column_index, column_name, column_default FROM duckdb_columns()",
        ):
            mine = "NOT internal AND database_name = 'trace' AND schema_name <> 'main'"
            question = f"SELECT {what} WHERE {mine} ORDER BY ALL"
            assert new.query(question).rows() == migrated.query(question).rows() != []
        for table in ("meta.analysis", "meta.threshold", "(SELECT number FROM main.traceforge_migration)"):
            assert new.query(f"FROM {table}").rows() == migrated.query(f"FROM {table}").rows() != []


def left_by(path: Path, *, until: int) -> None:
    """A database as the version left it that knew the migrations below a number."""
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}' AS old (STORAGE_VERSION 'v1.0.0')")
        connection.execute("USE old")
        connection.execute("CREATE TABLE main.traceforge_migration (number INTEGER, title VARCHAR)")
        for number, _, text in migrations():
            if number < until:
                connection.execute(text)
                connection.execute("INSERT INTO main.traceforge_migration VALUES (?, '')", [number])


def test_events_of_a_database_that_knew_no_kinds_are_kept(tmp_path: Path) -> None:
    # given a database as an older version left it: every event with its own name
    path = tmp_path / "run.db"
    events = [
        (0, 0, "X", "kernel", "gemm", 1, 100),
        (0, 1, None, None, None, None, 200),
        (0, 2, "X", "kernel", "gemm", 1, 300),
    ]
    left_by(path, until=6)
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}' AS old")
        connection.executemany(
            "INSERT INTO old.raw.kineto_event (source_id, event_id, phase, category, name, track_id, raw_start_ns)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            events,
        )

    # when today's version opens it
    with Store(path) as store:
        rows = store.query(
            "SELECT source_id, event_id, phase, category, name, track_id, raw_start_ns FROM raw.event ORDER BY event_id"
        )
        kinds = store.query("SELECT name FROM raw.event_kind ORDER BY kind_id")

    # then it says the same of every event, and the two of one kind share it
    assert rows.rows() == events
    assert kinds["name"].to_list() == ["gemm", None]


def test_a_refused_database_is_let_go_at_once(tmp_path: Path) -> None:
    path = _foreign(tmp_path / "recipes.db", options="(STORAGE_VERSION 'v1.0.0')")
    with pytest.raises(InputUnusableError) as caught:
        Store(path)

    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO recipe VALUES ('bread')")

    assert "holds no traces" in str(caught.value)


def test_a_database_that_another_process_writes_is_busy(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with Store(path):
        script = f"from pathlib import Path; from traceforge.store.database import Store; Store(Path({str(path)!r}))"
        other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert StoreBusyError.__name__ in other.stderr
    assert "another process holds the database" in other.stderr


def test_a_transaction_that_fails_leaves_nothing_behind() -> None:
    store = Store(None)

    def insert_and_be_interrupted() -> None:
        with store.transaction():
            store.execute("INSERT INTO meta.run VALUES (0, 'night', 8)")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        insert_and_be_interrupted()

    assert store.query("SELECT * FROM meta.run").is_empty()


def test_rows_are_added_by_column_name_and_missing_columns_are_null() -> None:
    store = Store(None)

    store.append("meta.run", pl.DataFrame({"run_name": ["night"], "run_id": [3]}))

    assert store.query("SELECT * FROM meta.run").rows() == [(3, "night", None)]


def test_times_beyond_the_precision_of_a_float_survive() -> None:
    # 2**60 + 1 ns lies between two neighbouring floats.
    store = Store(None)
    rows = pl.DataFrame({"source_id": [0], "event_id": [0], "kind_id": [0], "raw_start_ns": [2**60 + 1]})

    store.append("raw.occurrence", rows)

    assert store.query("SELECT raw_start_ns FROM raw.occurrence").item() == 2**60 + 1


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM meta.walk", "walk does not exist"),
        ("SELECT CAST(name AS INTEGER) FROM (VALUES ('x')) AS t(name)", "Could not convert"),
    ],
)
def test_sql_that_the_database_refuses_is_a_query_error_with_its_reason(sql: str, reason: str) -> None:
    with pytest.raises(QueryError) as caught:
        Store(None).query(sql)

    assert reason in str(caught.value)


def test_a_join_that_yields_one_column_name_twice_keeps_both_columns() -> None:
    # `SELECT *` over a join is the first thing that people type.
    result = Store(None).query("SELECT * FROM (SELECT 1 AS rank) AS a JOIN (SELECT 1 AS rank) AS b ON a.rank = b.rank")

    assert result.columns == ["rank", "rank_1"]
    assert result.rows() == [(1, 1)]


def test_a_type_that_polars_does_not_have_comes_as_text() -> None:
    result = Store(None).query("SELECT INTERVAL 3 DAY AS pause, 7 AS rank")

    assert result.rows() == [("3 days", 7)]


class TestLockDown:
    """A person's SQL may read the tables and nothing else."""

    @pytest.fixture
    def locked(self, tmp_path: Path) -> Store:
        """A locked store beside a text file and another database."""
        (tmp_path / "secret.csv").write_text("word\nswordfish\n")
        _foreign(tmp_path / "other.db")
        store = Store(tmp_path / "run.db")
        store.lock_down()
        return store

    def test_tables_stay_readable(self, locked: Store) -> None:
        assert locked.query("SELECT COUNT(*) FROM raw.event").item() == 0

    @pytest.mark.parametrize(
        "sql",
        [
            "SELECT * FROM read_csv('{folder}/secret.csv')",
            "SELECT * FROM '{folder}/secret.csv'",
            "SELECT * FROM read_text('{folder}/secret.csv')",
            "SELECT * FROM glob('{folder}/*')",
            "COPY meta.run FROM '{folder}/secret.csv'",
            "COPY (SELECT 1) TO '{folder}/out.csv'",
            "EXPORT DATABASE '{folder}/out'",
            "ATTACH '{folder}/other.db' AS other",
            "INSTALL httpfs",
            "LOAD httpfs",
        ],
    )
    def test_files_and_extensions_are_out_of_reach(self, locked: Store, tmp_path: Path, sql: str) -> None:
        before = sorted(tmp_path.iterdir())

        with pytest.raises(QueryError):
            locked.query(sql.format(folder=tmp_path))

        assert sorted(tmp_path.iterdir()) == before

    @pytest.mark.parametrize(
        "sql",
        [
            "SET enable_external_access = true",
            "RESET enable_external_access",
            "SET lock_configuration = false",
            "RESET lock_configuration",
        ],
    )
    def test_the_lock_cannot_be_taken_off(self, locked: Store, sql: str) -> None:
        with pytest.raises(QueryError, match="locked"):
            locked.query(sql)

    def test_variables_of_the_program_are_out_of_reach(self, locked: Store) -> None:
        secret = pl.DataFrame({"word": ["swordfish"]})

        with pytest.raises(QueryError, match="does not exist"):
            locked.query("SELECT * FROM secret")

        assert secret.height == 1


def test_no_progress_bar_is_drawn_among_the_data() -> None:
    # given a program that DuckDB takes for a person at a prompt
    program = (
        "from traceforge.store.database import Store\n"
        "with Store(None, is_kept=False) as store:\n"
        "    print(store.query(\"SELECT current_setting('enable_progress_bar')\").item())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"
