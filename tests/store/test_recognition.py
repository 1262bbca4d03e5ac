"""Files are recognised by what they hold, wherever in them it stands."""

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from traceforge.api import sources
from traceforge.archives import HEAD_BYTES
from traceforge.store.spool import kind_of

TABLES = {
    "nsys": ("StringIds", "CUPTI_ACTIVITY_KIND_KERNEL"),
    "rocpd": ("rocpd_string_01", "rocpd_kernel_dispatch_01"),
    None: ("students", "lessons"),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_database_whose_tables_were_made_after_much_was_written_is_recognised(
    tmp_path: Path, kind: str | None, is_packed: bool
) -> None:
    # given tables that were made when 400 KiB of other rows stood in the file, and others before them
    path = tmp_path / "report"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE SCHED_EVENTS (start INTEGER, filler TEXT)")
        database.executemany("INSERT INTO SCHED_EVENTS VALUES (?, ?)", [(n, "x" * 1000) for n in range(400)])
        database.commit()
        for table in [*(f"other_{n}" for n in range(40)), *TABLES[kind]]:
            database.execute(f"CREATE TABLE {table} ({', '.join(f'column_{n} INTEGER' for n in range(40))})")
        database.commit()
    if is_packed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    else:
        assert not any(source.recognises(path.read_bytes()[:HEAD_BYTES]) for source in sources().values())

    assert kind_of(path, sources()) == kind


def test_a_database_that_is_damaged_is_of_no_kind(tmp_path: Path) -> None:
    (tmp_path / "report").write_bytes(b"SQLite format 3\0" + bytes(5000))

    assert kind_of(tmp_path / "report", sources()) is None
