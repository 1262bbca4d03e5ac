"""Files beside timelines go to the run of the timelines that they lie beside."""

import polars as pl
import pytest

from traceforge.align.companions import logs_of_other_hosts, runs_of_companions

SCHEMA = {"source_id": pl.Int32, "path": pl.String, "kind": pl.String, "host": pl.String, "is_timeline": pl.Boolean}


def files(*said: tuple[str, str, str | None]) -> pl.DataFrame:
    """Files by path, kind and host, numbered from 0; Kineto's are timelines."""
    rows = [(number, *one, one[1] == "kineto") for number, one in enumerate(said)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def test_each_job_keeps_what_lies_in_its_folder() -> None:
    # given two jobs in folders a and b, the logs of b one folder deeper, and a file above both
    found = files(
        ("all/a/rank0.json", "kineto", None),
        ("all/b/rank0.json", "kineto", None),
        ("all/a/rank0.et.json", "pytorch_et", None),
        ("all/b/logs/nccl.log", "nccl_log", None),
        ("all/dcgm.csv", "telemetry", None),
    )

    assert runs_of_companions(found, [[0], [1]]) == {2: 0, 3: 1, 4: 0}


def test_of_a_folder_that_holds_two_other_runs_the_first_run_takes_what_is_no_ones() -> None:
    found = files(
        ("first/rank0.json", "kineto", None),
        ("both/w1.json", "kineto", None),
        ("both/w2.json", "kineto", None),
        ("both/nccl.log", "nccl_log", None),
    )

    assert runs_of_companions(found, [[0], [1], [2]]) == {3: 0}


def test_windows_that_share_a_folder_leave_the_others_to_the_first() -> None:
    found = files(("a/w0.json", "kineto", None), ("a/w1.json", "kineto", None), ("a/nccl.log", "nccl_log", None))

    assert runs_of_companions(found, [[1], [0]]) == {2: 0}


@pytest.mark.parametrize(
    ("recorded", "logs", "strangers"),
    [
        pytest.param(["node0", "node1"], ["gpu0", "gpu1"], [2, 3], id="of another job"),
        pytest.param(["node0", "node1"], ["node1", "gpu1"], [], id="of one host in common"),
        pytest.param(["node0.cluster", "node1"], ["NODE0", "gpu1"], [], id="of one host with its domain"),
        pytest.param(["node0", None], ["gpu0", "gpu1"], [], id="where a trace's host is not known"),
    ],
)
def test_logs_of_hosts_that_no_trace_is_of_are_of_another_job(
    recorded: list[str | None], logs: list[str], strangers: list[int]
) -> None:
    timelines = [(f"rank{n}.json", "kineto", host) for n, host in enumerate(recorded)]

    assert logs_of_other_hosts(files(*timelines, *((f"{host}.log", "nccl_log", host) for host in logs))) == strangers
