"""The same traces in another guise give the same answers (DESIGN invariants 3 and 6)."""

import gzip
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from tests.conftest import ROOT
from tests.given import add_facts, built
from traceforge.store.database import Store
from traceforge.store.workers import ReaderPool

SAMPLE = ROOT / "sample_traces" / "input_stall"

ANSWER = "SELECT iteration, rank, mode, cause, delay_ns FROM attribute.delay WHERE run_id = ? ORDER BY ALL"

Ledger = list[tuple[object, ...]]


def traces() -> list[Path]:
    return sorted(SAMPLE.glob("*.pt.trace.json.gz"))


def uncompressed(folder: Path) -> list[Path]:
    for path in traces():
        (folder / path.name.removesuffix(".gz")).write_bytes(gzip.decompress(path.read_bytes()))
    return [folder]


def packed_with_zstd(folder: Path) -> list[Path]:
    for path in traces():
        packed = zstandard.compress(gzip.decompress(path.read_bytes()))
        (folder / path.name.replace(".gz", ".zst")).write_bytes(packed)
    return [folder]


def in_an_archive(folder: Path) -> list[Path]:
    return [_archive(folder / "job.tar", "w")]


def in_a_packed_archive(folder: Path) -> list[Path]:
    return [_archive(folder / "job.tar", "w:gz")]


def _archive(path: Path, mode: str) -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for trace in traces():
            archive.add(trace, f"job/{trace.name}")
    return path


def in_another_order(_: Path) -> list[Path]:
    return list(reversed(traces()))


def renamed(folder: Path) -> list[Path]:
    for number, path in enumerate(traces()):
        shutil.copy(path, folder / f"trace-{'dbca'[number]}.json.gz")
    return [folder]


def as_they_are(_: Path) -> list[Path]:
    return [SAMPLE]


GUISES = (uncompressed, packed_with_zstd, in_an_archive, in_a_packed_archive, in_another_order, renamed)


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Ledger]]:
    """The ledger of each guise by its name: all are runs of one store, whose stages are built once."""
    with Store(None, is_kept=False) as store:
        for guise in (as_they_are, *GUISES):
            add_facts(store, *guise(tmp_path_factory.mktemp("guise")), run_name=guise.__name__)
        for path in traces():
            add_facts(store, path, run_name="one by one")
        with ReaderPool(2) as workers:
            add_facts(store, SAMPLE, run_name="by two processes", executor=workers)
        built(store, "attribute")
        names = store.rows("SELECT run_id, run_name FROM meta.run")
        yield {name: store.rows(ANSWER, [run_id]) for run_id, name in names}


@pytest.mark.parametrize("guise", [*(guise.__name__ for guise in GUISES), "one by one", "by two processes"])
def test_the_same_traces_in_another_guise_give_the_same_ledger(guise: str, ledgers: dict[str, Ledger]) -> None:
    assert ledgers[guise] == ledgers["as_they_are"] != []


def test_reading_the_same_files_again_changes_nothing(tmp_path: Path, ledgers: dict[str, Ledger]) -> None:
    with Store(tmp_path / "job.duckdb", is_kept=False) as store:
        first, again = (add_facts(store, SAMPLE) for _ in range(2))
        built(store, "attribute")
        assert len(first.read) >= len(traces())
        assert (again.read, again.unchanged) == ((), first.read)
        assert store.rows(ANSWER, [0]) == ledgers["as_they_are"]
