"""A database that cannot be opened, or into which nothing came, says why or leaves nothing."""

import errno
import os
from pathlib import Path

import duckdb
import pytest

from traceforge.store.database import Store
from traceforge.store.opening import open_error


def test_a_new_database_is_gone_when_a_signal_ends_it_before_the_first_file(tmp_path: Path) -> None:
    def ended() -> None:
        with Store(tmp_path / "job.duckdb"):
            raise SystemExit(143)

    with pytest.raises(SystemExit):
        ended()

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("reason", [errno.EROFS, errno.EACCES])
def test_a_database_that_is_write_protected_is_not_called_damaged(tmp_path: Path, reason: int) -> None:
    path = tmp_path / "job.duckdb"
    Store(path).close()

    error = open_error(path, duckdb.IOException(f'Cannot open file "{path}": {os.strerror(reason)}'), is_new=False)

    assert "the database is write-protected" in str(error)


def test_a_file_that_is_no_database_is_called_so(tmp_path: Path) -> None:
    path = tmp_path / "notes.duckdb"
    path.write_text("no database" * 1000)

    with pytest.raises(Exception, match="not a DuckDB database, or a damaged one"):
        Store(path)
