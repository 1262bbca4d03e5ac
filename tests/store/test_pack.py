"""One form of a database becomes the other, and nothing else changes."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tests.store.folders import parts
from tests.store.tables import differing
from traceforge import api
from traceforge.errors import InputUnusableError
from traceforge.store.database import Store
from traceforge.store.targets import new_place

DOCUMENTED = """
SELECT schema_name, table_name, column_name, data_type, comment FROM duckdb_columns()
WHERE database_name = 'trace' AND schema_name <> 'main' ORDER BY ALL
"""


@pytest.mark.usefixtures("documented")
def test_from_file_to_folder_and_back_nothing_changes(tmp_path: Path, sample_database: Callable[..., Path]) -> None:
    original = sample_database("far_nic")

    api.unpack(original, tmp_path / "job")
    api.pack(tmp_path / "job", tmp_path / "again.duckdb")

    with Store(original, read_only=True) as file:
        for path in (tmp_path / "job", tmp_path / "again.duckdb"):
            with Store(path, read_only=True) as store:
                assert differing(file, store) == []
                assert store.query(DOCUMENTED).rows() == file.query(DOCUMENTED).rows()
                assert api.is_current(store)
    assert len(parts(tmp_path / "job")) > 50
    with duckdb.connect(str(tmp_path / "again.duckdb"), read_only=True) as client:
        assert client.execute("SELECT COUNT(*) FROM raw.occurrence").fetchone() > (10_000,)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.duckdb", "job"]


def test_nothing_is_written_over(tmp_path: Path) -> None:
    Store(f"{tmp_path / 'job'}/").close()
    (tmp_path / "there").write_text("mine")

    with pytest.raises(InputUnusableError, match="something of that name already"):
        api.pack(tmp_path / "job", tmp_path / "there")
    assert (tmp_path / "there").read_text() == "mine"


@pytest.mark.parametrize(
    ("convert", "what"),
    [(api.pack, "this is no database that is a folder"), (api.unpack, "this is a folder already")],
)
def test_the_wrong_form_is_said_so(tmp_path: Path, convert: Callable[[Path, Path], None], what: str) -> None:
    (tmp_path / "traces").mkdir()

    with pytest.raises(InputUnusableError, match=what):
        convert(tmp_path / "traces", tmp_path / "new")


def test_what_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    def break_off() -> None:
        with new_place(tmp_path / "new") as place:
            place.mkdir()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()

    assert list(tmp_path.iterdir()) == []
