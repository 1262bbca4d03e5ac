"""Stories of a module share one database with what it asks; otherwise tests would pass as well, and take far longer."""

import pytest

from tests.given import Trace, rows_of
from tests.stories import told


@pytest.mark.parametrize("end_ns", [100, 200])
def test_the_stories_of_a_module_are_told_in_one_database(end_ns: int) -> None:
    run = told(Trace().step(0, 0, end_ns), stage="align")

    assert rows_of(run.store, "SELECT COUNT(*) FROM meta.run") == [(2,)]
    assert run.query("SELECT rank FROM align.rank").rows() == [(0,)]


def test_of_a_stage_only_what_the_module_names_is_made_and_what_that_reads() -> None:
    run = told(Trace().step(0, 0, 100), stage="align")

    sql = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'align'"
    made = {name for (name,) in rows_of(run.store, sql)}
    assert "rank" in made
    assert "match" not in made
