"""Files of a database that were damaged on disk, at the size that they had: each failure names the file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.store.folders import parts
from traceforge import api
from traceforge.errors import InputUnusableError, QueryError
from traceforge.store.damage import damaged_partition
from traceforge.store.database import Store

BLOCK_BYTES, HEADERS_BYTES = 65_536, 12_288
EVERY_ROW = "SELECT * FROM raw.occurrence"
Ask = Callable[[Store], object]


def with_empty_pages(file: Path) -> Path:
    """A Parquet file that lost all rows to zeros, but not its size nor what it says of itself at its end."""
    whole = file.read_bytes()
    end = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    file.write_bytes(whole[:4] + bytes(end - 4) + whole[end:])
    return file


def file_of(job: Path, table: str, source_id: int) -> Path:
    (file,) = (path for path in parts(job) if f"{table}/source_id={source_id}/" in path.as_posix())
    return file


def names(caught: "pytest.ExceptionInfo[InputUnusableError]", file: Path) -> bool:
    return caught.value.where == str(file) and "damaged" in caught.value.what and caught.value.hint is not None


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.query(EVERY_ROW),
        lambda store: store.rows(EVERY_ROW),
        lambda store: store.records(EVERY_ROW),
        lambda store: store.preview(EVERY_ROW, 100),
    ],
)
def test_a_question_to_damaged_rows_names_their_file(job: Path, ask: Ask) -> None:
    damaged = with_empty_pages(file_of(job, "raw.occurrence", 1))

    with api.open_store(job) as store, pytest.raises(InputUnusableError) as caught:
        ask(store)

    assert names(caught, damaged)
    assert "rows of raw.occurrence cannot be read" in caught.value.what


@pytest.mark.parametrize("before", ["", "got external error: Invalid Error: "])
def test_damage_is_told_whoever_hands_on_what_duckdb_says(job: Path, before: str) -> None:
    # given the words of DuckDB itself, and as they come through rows that polars reads
    damaged = with_empty_pages(file_of(job, "raw.occurrence", 1))

    found = damaged_partition(f"{before}TProtocolException: Invalid data", {"raw.occurrence": [str(damaged)]})

    assert found is not None
    assert found.where == str(damaged)
    assert damaged_partition("Invalid Input Error: no", {"raw.occurrence": [str(damaged)]}) is None


def test_other_questions_are_answered_and_wrong_ones_are_no_damage(job: Path) -> None:
    with_empty_pages(file_of(job, "raw.occurrence", 1))

    with api.open_store(job) as store:
        assert store.value("SELECT COUNT(*) FROM meta.source") == 3
        for wrong in ("SELECT CAST('a' AS INTEGER)", "SELECT nothing FROM raw.occurrence", "SELECT error('no')"):
            with pytest.raises(QueryError):
                store.query(wrong)


def test_a_stage_over_damaged_rows_names_their_file(job: Path) -> None:
    damaged = with_empty_pages(file_of(job, "raw.occurrence", 1))

    with pytest.raises(InputUnusableError) as caught:
        api.open_built(job)

    assert names(caught, damaged)


def test_a_failure_among_the_files_of_some_sources_leaves_none_hidden(job: Path) -> None:
    damaged = file_of(job, "raw.occurrence", 1)
    whole = damaged.read_bytes()
    with Store(job) as store:
        with_empty_pages(damaged)
        with pytest.raises(InputUnusableError) as caught, store.transaction(), store.narrowed(1, 1):
            store.rows(EVERY_ROW)
        damaged.write_bytes(whole)

        assert names(caught, damaged)
        assert store.value("SELECT COUNT(*) FROM raw.occurrence") == 60


def test_what_fails_in_a_worker_names_the_file_too(job: Path) -> None:
    damaged = with_empty_pages(file_of(job, "raw.track", 2))

    with pytest.raises(InputUnusableError) as caught, Store(job):
        raise QueryError("the database refused the query: TProtocolException: Invalid data")

    assert names(caught, damaged)


def test_a_damaged_end_of_a_file_names_it(job: Path) -> None:
    damaged = file_of(job, "raw.track", 1)
    whole = damaged.read_bytes()
    length = int.from_bytes(whole[-8:-4], "little")
    damaged.write_bytes(whole[: -8 - length] + bytes(length) + whole[-8:])

    with pytest.raises(InputUnusableError) as caught:
        api.open_store(job)

    assert names(caught, damaged)


def test_packing_names_the_damaged_file_and_leaves_nothing(job: Path, tmp_path: Path) -> None:
    with Store(job) as store:
        api.analyze(store)
    damaged = with_empty_pages(file_of(job, "raw.occurrence", 1))

    with pytest.raises(InputUnusableError) as caught:
        api.pack(job, tmp_path / "packed.duckdb")

    assert names(caught, damaged)
    assert [path.name for path in tmp_path.iterdir()] == ["job"]


def test_a_wrong_block_of_a_file_is_damage_of_that_file(sample_database: Callable[..., Path], tmp_path: Path) -> None:
    # given one file after another with another damaged block, and some blocks are free
    whole, damaged = sample_database("healthy").read_bytes(), tmp_path / "job.duckdb"
    count = (len(whole) - HEADERS_BYTES) // BLOCK_BYTES
    told = []
    for place in range(0, count, count // 8):
        start = HEADERS_BYTES + BLOCK_BYTES * place + 3_000
        damaged.write_bytes(
            whole[:start] + bytes(one ^ 0xFF for one in whole[start : start + 100]) + whole[start + 100 :]
        )

        # when it is copied whole, so that each block is read
        try:
            api.unpack(damaged, tmp_path / f"folder{place}")
        except InputUnusableError as error:
            told.append((error.where, error.what))
            assert not (tmp_path / f"folder{place}").exists()

    assert set(told) == {(str(damaged), "this file is damaged: a block is not as it was written")}
    assert len(told) >= 4


def test_a_file_that_is_cut_short_is_damaged(sample_database: Callable[..., Path], tmp_path: Path) -> None:
    whole, cut = sample_database("healthy").read_bytes(), tmp_path / "job.duckdb"
    cut.write_bytes(whole[: len(whole) // 2])

    with pytest.raises(InputUnusableError) as caught:
        api.open_store(cut)

    assert names(caught, cut)
    assert "cut short" in caught.value.what


def test_a_folder_without_its_catalogue_is_told_from_traces(job: Path) -> None:
    (job / "catalogue.duckdb").unlink()

    for do in (lambda: api.open_store(job), lambda: Store(f"{job}/"), lambda: api.pack(job, job.parent / "new")):
        with pytest.raises(InputUnusableError) as caught:
            do()
        assert "lacks its catalogue" in str(caught.value.hint)
