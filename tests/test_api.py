"""The pipeline as others call it: when stages are built anew, and what is said where they cannot be."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from traceforge import api
from traceforge.errors import InputUnusableError
from traceforge.store import workers
from traceforge.store.database import Store


@pytest.fixture(scope="module")
def stale(tmp_path_factory: pytest.TempPathFactory, sample_database: Callable[..., Path]) -> Path:
    """A database whose stages were built by other sources of the same version."""
    path = tmp_path_factory.mktemp("api") / "job.duckdb"
    path.write_bytes(sample_database("healthy").read_bytes())
    with Store(path) as store:
        store.execute("UPDATE meta.build SET traceforge_version = '0.1.0+000000000000'")
        store.execute("DROP SCHEMA forecast CASCADE")
    return path


def test_what_cannot_be_rebuilt_is_said_with_a_way_out(stale: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputUnusableError, match="write-protected") as error:
        api.open_built(stale)
    assert "copy it" in str(error.value.hint)


def test_stages_of_other_sources_are_built_anew(stale: Path) -> None:
    with api.open_built(stale) as store:
        assert api.is_current(store)
        assert store.query("SELECT COUNT(*) FROM forecast.point").item() > 0


def test_a_folder_without_files_is_named(tmp_path: Path) -> None:
    with Store(None, is_kept=False) as store, pytest.raises(InputUnusableError, match="there are no files") as error:
        api.ingest([tmp_path], store)
    assert error.value.where == str(tmp_path)


def test_small_files_are_read_without_starting_processes_and_large_ones_with_one_a_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rank0.json").write_text('{"traceEvents": []}', encoding="utf-8")
    (tmp_path / "rank1.json").write_text('{"traceEvents": []}', encoding="utf-8")
    started: list[int] = []

    def no_pool(count: int) -> object:
        started.append(count)
        raise InterruptedError

    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(workers, "ReaderPool", no_pool)

    with Store(None, is_kept=False) as store:
        monkeypatch.setattr(api, "analyze", lambda *_: None)
        api.ingest([tmp_path], store)
        assert started == []

        monkeypatch.setattr(workers, "_WORTH_PROCESSES_BYTES", 10)
        with pytest.raises(InterruptedError):
            api.ingest([tmp_path], store)
    assert started == [2]
