"""Every stage's folder of SQL: documented, in order, and the same each time it is built."""

import re
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

import polars as pl
import pytest

from tests.given import add_run, built, data_parallel_job, rows_of, store_of
from traceforge.api import STAGES
from traceforge.errors import UsageError
from traceforge.store.database import Store
from traceforge.store.stage import build_stage, stage_documents

FILES = [path for stage in STAGES for path in sorted(Path(str(resources.files(f"traceforge.{stage}"))).glob("*.sql"))]

COLUMNS = """
SELECT schema_name || '.' || table_name || '.' || column_name AS name, column_name, data_type,
  COALESCE(comment, '') AS comment
FROM duckdb_columns()
WHERE database_name = current_database() AND schema_name NOT IN ('main', 'information_schema')
ORDER BY ALL
"""

# Words that promise a time or a size, and the units in which they may be kept. A number of ranks is called `size` in
# NCCL's language; a position among iterations is `first_iteration` and the like.
QUANTITY = re.compile(
    r"(^|_)(time|duration|start|end|issue|arrival|offset|delay|wait|late|latency|residual|skew|excess|transfer|pause|gap"
    r"|reference|communication|bytes|bandwidth|drift)(_|$)|^p\d\d"
)
UNIT = re.compile(r"_(ns|bytes|ns_per_iteration|bytes_per_s|ppb|ratio|share|id|position|rank)$")
NUMERIC = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UBIGINT", "FLOAT", "DOUBLE")
COUNTS = {"global_rank_start", "size", "group_size", "bytes"}


@pytest.fixture(scope="module")
def empty() -> Iterator[Store]:
    """A store with every stage built over no trace at all."""
    with Store(None, threads=1, is_kept=True) as store:
        add_run(store)
        yield built(store, *STAGES)


def test_a_file_makes_one_object_of_its_own_name_with_every_column_documented() -> None:
    documents = {found.name: found for stage in STAGES for found in stage_documents(f"traceforge.{stage}")}

    assert sorted(documents) == sorted(f"{path.parent.name}.{path.stem}" for path in FILES)
    assert [name for name, document in documents.items() if not document.comment] == []
    columns = {f"{name}.{column}": text for name, made in documents.items() for column, text in made.columns.items()}
    assert [name for name, text in columns.items() if not text] == []


def test_every_stage_compiles_on_a_database_without_traces(empty: Store) -> None:
    made = "SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE database_name = current_database()"
    views = "SELECT schema_name || '.' || view_name FROM duckdb_views() WHERE database_name = current_database()"

    macros = "SELECT schema_name || '.' || function_name FROM duckdb_functions() WHERE NOT internal"

    names = {name for query in (made, views, macros) for (name,) in rows_of(empty, query)}

    assert {f"{path.parent.name}.{path.stem}" for path in FILES} <= names


def test_a_view_s_query_names_its_columns_itself(empty: Store) -> None:
    # The oldest DuckDB that is promised comments a view's columns by the names in its query, not by those before it.
    views = [made for stage in STAGES for made in stage_documents(f"traceforge.{stage}") if made.kind == "VIEW"]

    for view in views:
        query = re.split(r"\n\) AS\n", view.statement, maxsplit=1)[1].rstrip().rstrip(";")
        assert empty.query(f"FROM ({query}) LIMIT 0").columns == list(view.columns), view.name
    assert len(views) > 5


def test_every_column_of_the_finished_catalogue_is_documented(empty: Store) -> None:
    assert [name for name, _, _, comment in rows_of(empty, COLUMNS) if not comment] == []


def test_numbers_that_are_times_or_sizes_name_their_unit(empty: Store) -> None:
    unnamed = [
        name
        for name, column, kind, _ in rows_of(empty, COLUMNS)
        if kind in NUMERIC and QUANTITY.search(str(column)) and not UNIT.search(str(column)) and column not in COUNTS
    ]

    assert unnamed == []


def test_times_and_sizes_are_64_bit_integers(empty: Store) -> None:
    odd = [
        (name, kind)
        for name, column, kind, _ in rows_of(empty, COLUMNS)
        if str(column).endswith(("_ns", "_bytes")) and kind != "BIGINT"
    ]

    assert odd == []


def test_a_stage_that_is_built_again_gives_equal_tables() -> None:
    # Rank 1 is late in each of four iterations; the second step of all stages must not see the first one's leftovers.
    store = built(store_of(*data_parallel_job([[60, 40], [60, 40], [60, 40], [60, 40]])), *STAGES)
    made = [f"{path.parent.name}.{path.stem}" for path in FILES if "MACRO" not in path.read_text(encoding="utf-8")]
    tables = [*made, "meta.issue"]
    before = {name: rows_of(store, f"SELECT * FROM {name} ORDER BY ALL") for name in tables}

    for stage in STAGES:
        build_stage(store, f"traceforge.{stage}")

    after = {name: rows_of(store, f"SELECT * FROM {name} ORDER BY ALL") for name in tables}
    assert after == before


def test_a_stage_that_fails_leaves_the_one_built_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    #   zoo/lion.sql names a column that does not exist
    package = tmp_path / "menagerie" / "zoo"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    file = package / "lion.sql"
    monkeypatch.syspath_prepend(tmp_path)
    store = Store(None)
    text = "-- Lions.\nCREATE OR REPLACE TABLE zoo.lion (\n  -- Name.\n  name\n) AS\nSELECT {column} FROM meta.run\n"
    file.write_text(text.format(column="run_name"))
    build_stage(store, "menagerie.zoo")
    file.write_text(text.format(column="mane"))

    with pytest.raises(Exception, match="mane"):
        build_stage(store, "menagerie.zoo")

    assert store.query("SELECT COUNT(*) FROM zoo.lion").item() == 0


def test_what_several_modules_of_a_stage_need_is_computed_once_a_stage_and_never_kept_longer() -> None:
    # given a run whose name changes between the stages that read it
    with store_of() as store:
        asked: list[int] = []

        def name_of(store: Store, run_id: int) -> str:
            asked.append(run_id)
            return str(store.query("SELECT run_name FROM meta.run WHERE run_id = ?", [run_id]).item())

        store.execute("INSERT INTO meta.run VALUES (1, 'other', NULL)")

        # when one stage asks twice, and another one after a change
        with store.keeping():
            first = [store.once(name_of, run_id) for run_id in (0, 1, 0, 1)]
        store.execute("UPDATE meta.run SET run_name = 'renamed' WHERE run_id = 0")
        with store.keeping():
            second = store.once(name_of, 0)
        outside = [store.once(name_of, 0), store.once(name_of, 0)]

        # then it was computed once a run and stage, and each time where no stage is built
        assert first == ["story", "other", "story", "other"]
        assert [second, *outside] == ["renamed"] * 3
        assert asked == [0, 1, 0, 0, 0]


def test_a_stage_that_fails_keeps_nothing() -> None:
    asked: list[int] = []

    def noted(_store: Store, run_id: int) -> None:
        asked.append(run_id)

    def stage_that_fails(store: Store) -> None:
        with store.keeping():
            store.once(noted, 0)
            raise UsageError("stop")

    with store_of() as store:
        with pytest.raises(UsageError):
            stage_that_fails(store)
        store.once(noted, 0)

    assert asked == [0, 0]


@pytest.mark.parametrize("stage", ["replay", "attribute"])
def test_a_stage_loads_the_model_of_a_run_once(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with built(store_of(*data_parallel_job([[10, 30]] * 4)), *STAGES[: STAGES.index(stage)]) as store:
        queries: list[str] = []
        query = Store.query

        def noted(store: Store, sql: str, parameters: Sequence[object] = ()) -> pl.DataFrame:
            queries.append(sql)
            return query(store, sql, parameters)

        monkeypatch.setattr(Store, "query", noted)
        build_stage(store, f"traceforge.{stage}")

    assert len([sql for sql in queries if "FROM graph.work WHERE run_id" in sql]) == 1
