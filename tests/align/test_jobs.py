"""Files of one job are told from those of others by what they state of it, and by communicators that link them."""

import polars as pl
import pytest

from tests.align.test_runs import RUNS, _split
from tests.given import Trace, rows_of
from traceforge.align.jobs import jobs_of

SCHEMA = {"source_id": pl.Int32, "job": pl.String, "communicators": pl.List(pl.String)}


def told(*files: tuple[str | None, list[str] | None]) -> list[tuple[str, list[int]]]:
    rows = [(number, *file) for number, file in enumerate(files)]
    return [(label, own["source_id"].to_list()) for label, own in jobs_of(pl.DataFrame(rows, SCHEMA, orient="row"))]


A, B = '{"SLURM_JOB_ID": "7", "MASTER_PORT": "29500"}', '{"SLURM_JOB_ID": "7", "MASTER_PORT": "29501"}'


@pytest.mark.parametrize(
    ("files", "jobs"),
    [
        pytest.param([(A, None), (B, None), (A, None)], [("MASTER_PORT 29500", [0, 2]), ("MASTER_PORT 29501", [1])],
                     id="two ports within one allocation"),
        pytest.param([(A, None), ('{"SLURM_JOB_ID": "7"}', None)], [("", [0, 1])], id="nothing that contradicts"),
        pytest.param([(A, None), (None, None)], [("", [0, 1])], id="one that states nothing beside one job"),
        pytest.param([(A, None), (None, None), (B, None)],
                     [("MASTER_PORT 29500", [0]), ("MASTER_PORT 29501", [2]), ("", [1])],
                     id="one that states nothing beside two"),
        pytest.param([(None, ["a"]), (None, ["b"]), (None, ["a", "c"]), (None, ["c"])],
                     [("job 1", [0, 2, 3]), ("job 2", [1])], id="communicators in a chain"),
        pytest.param([(None, ["a"]), (None, ["b"]), (None, ["a", "b"])], [("", [0, 1, 2])], id="a late link"),
        pytest.param([(None, ["a"]), (None, ["b"]), (None, None)], [("", [0, 1, 2])], id="one without communicators"),
        pytest.param([(None, None)], [("", [0])], id="one file"),
    ],
)  # fmt: skip
def test_jobs_are(files: list[tuple[str | None, list[str] | None]], jobs: list[tuple[str, list[int]]]) -> None:
    assert told(*files) == jobs


def on_device(path: str, device: int, start_ns: int = 1, *communicators: str) -> Trace:
    groups = [(name, "", ()) for name in communicators]
    return Trace(None, path=path, groups=groups).event("kernel", "gemm", start_ns, start_ns + 8, device=device)


def test_devices_of_one_host_that_no_communicator_links_are_ranks_of_two_jobs() -> None:
    # given four devices, each used by one process: a pair of each job, and nothing that states a rank
    pair = ("NCCL communicator 0x1", "NCCL communicator 0x2")
    files = [on_device(f"device {number}", number, 1, pair[number // 2]) for number in range(4)]

    assert rows_of(_split(*files), RUNS) == [
        ("story", ["device 0", "device 1"]),
        ("story [job 2]", ["device 2", "device 3"]),
    ]


def test_names_that_come_again_in_every_job_tell_nothing() -> None:
    # given groups as PyTorch names them, which no file of another rank needs to state
    files = [on_device(f"device {number}", number, 1, str(number)) for number in range(2)]

    assert len(rows_of(_split(*files), RUNS)) == 1


def test_devices_of_one_host_that_were_used_at_different_times_are_no_ranks_of_one_job() -> None:
    apart = _split(on_device("a", 0, 1), on_device("b", 1, 100))

    assert [paths for _, paths in rows_of(apart, RUNS)] == [["a"], ["b"]]
