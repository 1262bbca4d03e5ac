"""A folder holds what a file holds, row for row, however many workers wrote it and whatever order files came in."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import ROOT
from tests.examples import examples
from tests.store.tables import differing, tables_of
from traceforge import api
from traceforge.align.rank_batches import planned_batches, planned_files
from traceforge.errors import InputUnusableError
from traceforge.files import find_files
from traceforge.records import ReadOptions
from traceforge.store.database import Store
from traceforge.store.ingest import ingest_files
from traceforge.store.workers import ReaderPool


def facts(store: Store, files: list[Path], executor: Executor | None) -> Store:
    """A database with the facts of some files, no stage built."""
    ingest_files(store, files, api.sources(), run_name="job", executor=executor, options=ReadOptions())
    return store


@contextmanager
def file_and_folder(
    files: list[Path], scratch: Path, executor: Executor | None = None
) -> Iterator[tuple[Store, Store]]:
    """A file made by one process in order, and a folder made by some workers, the last file first."""
    with (
        facts(Store(None, is_kept=False), files, None) as file,
        facts(Store(f"{scratch / 'job'}/", is_kept=False), files[::-1], executor) as folder,
    ):
        yield file, folder


@pytest.mark.parametrize(("sample", "workers"), [("tp2dp2", 1), ("compute_straggler", 4)])
def test_facts_of_samples_are_equal(tmp_path: Path, sample: str, workers: int) -> None:
    files = find_files([ROOT / "sample_traces" / sample])
    with ThreadPoolExecutor(workers) as pool, file_and_folder(files, tmp_path, pool if workers > 1 else None) as made:
        file, folder = made
        assert folder.query("SELECT COUNT(*) FROM raw.occurrence").item() > 10_000
        assert differing(file, folder) == []


def test_every_stage_says_the_same_of_a_folder_that_processes_wrote(
    tmp_path: Path, sample_database: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sample_database("far_nic")
    # though of the folder one rank is read at a time, and of the file all
    monkeypatch.setattr(planned_batches, "__defaults__", (1,))
    monkeypatch.setattr(planned_files, "__defaults__", (1,))
    with (
        Store(whole, read_only=True) as file,
        Store(f"{tmp_path / 'job'}/", is_kept=False) as folder,
        ReaderPool(2) as executor,
    ):
        api.ingest([ROOT / "sample_traces/far_nic"], folder, executor=executor)

        assert {"attribute.finding", "timeline.phase", "raw.nccl_communicator"} <= tables_of(folder).keys()
        assert differing(file, folder) == ["align.file_batch", "align.rank_batch"]


_EVENTS = st.lists(
    st.fixed_dictionaries(
        {"ph": st.sampled_from(["X", "i", "s"]), "name": st.sampled_from(["gemm", "aten::mm", "é", ""])},
        optional={
            "cat": st.sampled_from(["kernel", "cpu_op", "cuda_runtime"]),
            "pid": st.integers(0, 3),
            "tid": st.sampled_from([1, 7, "stream 7"]),
            "ts": st.integers(0, 10**12),
            "dur": st.integers(0, 10**6),
            "args": st.fixed_dictionaries({}, optional={"stream": st.integers(0, 9), "Collective name": st.text()}),
        },
    ),
    max_size=6,
)


@examples(6)
@given(jobs=st.lists(_EVENTS, min_size=1, max_size=4), workers=st.sampled_from([1, 4]))
def test_facts_of_any_small_job_are_equal(jobs: list[list[dict[str, object]]], workers: int) -> None:
    with TemporaryDirectory() as scratch, ThreadPoolExecutor(workers) as pool:
        for rank, events in enumerate(jobs):
            trace = {"distributedInfo": {"rank": rank}, "traceEvents": events}
            Path(scratch, f"rank{rank}.json").write_text(json.dumps(trace))
        executor = pool if workers > 1 else None
        with file_and_folder(find_files([Path(scratch)]), Path(scratch), executor) as (file, folder):
            assert differing(file, folder) == []


def test_files_that_fail_leave_the_numbers_of_the_others_alike(tmp_path: Path) -> None:
    # given three traces, of which the second ends before its first event
    for rank in (0, 2):
        event = {"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
        (tmp_path / f"rank{rank}.json").write_text(json.dumps({"traceEvents": [event]}))
    (tmp_path / "rank1.json.gz").write_bytes(b"\x1f\x8b\x08\x00")
    (tmp_path / "copy.json").write_bytes((tmp_path / "rank2.json").read_bytes())

    with file_and_folder(find_files([tmp_path]), tmp_path) as (file, folder):
        assert differing(file, folder) == []
        assert folder.query("SELECT path FROM meta.source").height == 3


def test_a_folder_of_traces_is_no_place_for_a_database(tmp_path: Path) -> None:
    (tmp_path / "rank0.json").write_text("[]")

    with pytest.raises(InputUnusableError, match="other things lie in this folder"):
        Store(f"{tmp_path}/")
