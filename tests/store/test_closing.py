"""A database is written out in little memory before it is closed, however short its log is."""

from pathlib import Path

import duckdb
import pytest

from traceforge.store import closing
from traceforge.store.closing import write_out


def test_what_a_log_holds_is_written_into_the_tables(tmp_path: Path) -> None:
    file = tmp_path / "a.duckdb"
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{file}' AS trace")
        connection.execute("CREATE TABLE trace.event AS SELECT range AS event_id FROM range(1000)")

        assert Path(f"{file}.wal").exists()
        write_out(connection, "trace", file)

        assert not Path(f"{file}.wal").exists()
    with duckdb.connect(str(file)) as again:
        assert again.execute("SELECT COUNT(*), SUM(event_id) FROM event").fetchall() == [(1000, 499_500)]


def test_a_database_whose_settings_are_locked_is_closed_as_before(tmp_path: Path) -> None:
    # given a database in which a person's SQL ran, so that no setting changes any more
    file = tmp_path / "a.duckdb"
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{file}' AS trace")
        connection.execute("CREATE TABLE trace.event AS SELECT range AS event_id FROM range(1000)")
        connection.execute("SET lock_configuration = true")

        write_out(connection, "trace", file)

    with duckdb.connect(str(file)) as again:
        assert again.execute("SELECT COUNT(*) FROM event").fetchall() == [(1000,)]


def test_a_database_too_large_for_the_limit_is_closed_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a limit below what is in use already
    monkeypatch.setattr(closing, "_WRITTEN_WITH_BYTES", 1)
    file = tmp_path / "a.duckdb"
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{file}' AS trace")
        connection.execute("CREATE TABLE trace.event AS SELECT range AS event_id FROM range(1000)")

        write_out(connection, "trace", file)

    # then closing raised nothing, and all rows are there, from the file or its log
    with duckdb.connect(str(file)) as again:
        assert again.execute("SELECT COUNT(*) FROM event").fetchall() == [(1000,)]
