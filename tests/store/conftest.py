"""A folder database that tests may damage. In: nothing. Out: a copy for each test."""

import shutil
from pathlib import Path

import pytest

from tests.store.folders import ingested, write_trace
from traceforge.store.database import Store


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder database of three ranks, 20 events each."""
    place = tmp_path_factory.mktemp("original")
    for rank in range(3):
        write_trace(place / "traces" / f"rank{rank}.json", rank)
    with Store(f"{place / 'job'}/") as store:
        ingested(store, place / "traces")
    return place / "job"


@pytest.fixture
def job(original: Path, tmp_path: Path) -> Path:
    """A copy of it, which a test may change."""
    return Path(shutil.copytree(original, tmp_path / "job"))
