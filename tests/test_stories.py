"""Stories of a module share one database; otherwise its tests would still pass, and take several times as long."""

import pytest

from tests.given import Trace, rows_of
from tests.stories import told


@pytest.mark.parametrize("end_ns", [100, 200])
def test_the_stories_of_a_module_are_told_in_one_database(end_ns: int) -> None:
    run = told(Trace().step(0, 0, end_ns), stage="align")

    assert rows_of(run.store, "SELECT COUNT(*) FROM meta.run") == [(2,)]
    assert run.query("SELECT rank FROM align.rank").rows() == [(0,)]
