"""The same traces in another guise give the same answers (DESIGN invariants 3 and 6)."""

import gzip
import shutil
import tarfile
from pathlib import Path

import pytest
import zstandard

from tests.conftest import ROOT
from traceforge import api
from traceforge.store.database import Store

SAMPLE = ROOT / "sample_traces" / "input_stall"

ANSWER = """
SELECT iteration, rank, mode, cause, delay_ns FROM attribute.delay ORDER BY ALL
"""


def answer(*paths: Path) -> list[tuple[object, ...]]:
    with Store(None, is_kept=False) as store:
        api.ingest(list(paths), store, run="job", jobs=1)
        return store.query(ANSWER).rows()


@pytest.fixture(scope="module")
def expected() -> list[tuple[object, ...]]:
    return answer(SAMPLE)


def traces() -> list[Path]:
    return sorted(SAMPLE.glob("*.pt.trace.json.gz"))


def test_uncompressed_traces_give_the_same_ledger(tmp_path: Path, expected: list[tuple[object, ...]]) -> None:
    for path in traces():
        (tmp_path / path.name.removesuffix(".gz")).write_bytes(gzip.decompress(path.read_bytes()))
    assert answer(tmp_path) == expected


def test_traces_packed_with_zstd_give_the_same_ledger(tmp_path: Path, expected: list[tuple[object, ...]]) -> None:
    for path in traces():
        packed = zstandard.compress(gzip.decompress(path.read_bytes()))
        (tmp_path / path.name.replace(".gz", ".zst")).write_bytes(packed)
    assert answer(tmp_path) == expected


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_an_archive_of_all_ranks_gives_the_same_ledger(
    tmp_path: Path, mode: str, expected: list[tuple[object, ...]]
) -> None:
    with tarfile.open(tmp_path / "job.tar", mode) as archive:  # type: ignore[call-overload]
        for path in traces():
            archive.add(path, f"job/{path.name}")
    assert answer(tmp_path / "job.tar") == expected


def test_the_order_of_files_changes_nothing(expected: list[tuple[object, ...]]) -> None:
    assert answer(*reversed(traces())) == expected


def test_renaming_files_changes_nothing_where_they_state_their_rank(
    tmp_path: Path, expected: list[tuple[object, ...]]
) -> None:
    for number, path in enumerate(traces()):
        shutil.copy(path, tmp_path / f"trace-{'dbca'[number]}.json.gz")
    assert answer(tmp_path) == expected


def test_reading_the_same_files_again_changes_nothing(tmp_path: Path, expected: list[tuple[object, ...]]) -> None:
    with Store(tmp_path / "job.duckdb") as store:
        first = api.ingest([SAMPLE], store, jobs=1)
        again = api.ingest([SAMPLE], store, jobs=1)
        assert len(first.read) >= len(traces())
        assert (again.read, again.unchanged) == ((), first.read)
        assert store.query(ANSWER).rows() == expected


def test_reading_the_files_one_by_one_gives_the_same_ledger(expected: list[tuple[object, ...]]) -> None:
    with Store(None, is_kept=False) as store:
        for path in traces():
            api.ingest([path], store, run="job", jobs=1)
        assert store.query(ANSWER).rows() == expected


def test_processes_read_the_same_as_one(expected: list[tuple[object, ...]]) -> None:
    with Store(None, is_kept=False) as store:
        api.ingest([SAMPLE], store, run="job", jobs=2)
        assert store.query(ANSWER).rows() == expected
