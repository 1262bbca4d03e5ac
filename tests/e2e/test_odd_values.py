"""One value that no job could have costs itself, never the run."""

import json
from pathlib import Path

import pytest

from tests.given import add_facts, rows_of
from traceforge import api
from traceforge.store.database import Store

COLLECTIVE = {
    "Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "dtype": "Double", "Group size": 2,
    "Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Seq": 0,
}  # fmt: skip


def trace(rank: int, *more: dict[str, object]) -> str:
    steps = [
        {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{n}", "pid": 1, "tid": 1, "ts": 1000 * n, "dur": 9}
        for n in range(5)
    ]
    facts = {"rank": rank, "world_size": 2}
    return json.dumps({"schemaVersion": 1, "distributedInfo": facts, "traceEvents": [*steps, *more]})


def kernel(**args: object) -> dict[str, object]:
    named = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 7, "ts": 300, "dur": 9}
    return {**named, "args": {"device": 0, "stream": 7, **COLLECTIVE, **args}}


@pytest.mark.parametrize(
    "odd",
    [
        {
            "ph": "X",
            "cat": "user_annotation",
            "name": "ProfilerStep#" + "9" * 23,
            "pid": 1,
            "tid": 1,
            "ts": 1,
            "dur": 1,
        },
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "pid": 1, "tid": 1, "ts": 1.7e18, "dur": 1},
        kernel(**{"In msg nelems": 2**62, "Out msg nelems": 2**62}),
        kernel(**{"Seq": 2**70, "Group size": -(2**70), "Process Group Ranks": f"[{2**70}, 1]"}),
    ],
    ids=["a step", "a time", "a size", "a group"],
)
def test_a_run_with_one_odd_event_is_analysed(tmp_path: Path, odd: dict[str, object]) -> None:
    (tmp_path / "rank0.json").write_text(trace(0, odd))
    (tmp_path / "rank1.json").write_text(trace(1, kernel()))

    with Store(None, is_kept=False) as store:
        api.ingest([tmp_path], store, jobs=1)

        assert rows_of(store, "SELECT event_count, stored_count FROM meta.source ORDER BY rank") == [(6, 6), (6, 6)]
        assert rows_of(store, "SELECT COUNT(DISTINCT iteration) FROM align.step") == [(5,)]


def test_a_rank_beyond_all_jobs_is_no_rank(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(trace(2**40, kernel()))

    with Store(None, is_kept=False) as store:
        add_facts(store, tmp_path)

        assert rows_of(store, "SELECT rank_origin FROM meta.source WHERE rank = 0 OR rank IS NULL") == [("unknown",)]


def test_a_process_of_no_group_states_neither_rank_nor_size(tmp_path: Path) -> None:
    # given what PyTorch answers a process that is in no group
    (tmp_path / "a.json").write_text(trace(-1, kernel()).replace('"world_size": 2', '"world_size": -1'))

    with Store(None, is_kept=False) as store:
        add_facts(store, tmp_path)

        assert rows_of(store, "SELECT rank, world_size FROM raw.profile") == [(None, None)]
        assert rows_of(store, "SELECT world_size FROM meta.run") == [(None,)]


def test_a_time_beyond_all_logs_is_no_time(tmp_path: Path) -> None:
    text = "[-9223372036854775809] host1:100:101 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\n"
    (tmp_path / "a.log").write_text(text)

    with Store(None, is_kept=False) as store:
        add_facts(store, tmp_path)

        assert rows_of(store, "SELECT raw_time_ns FROM raw.nccl_record") == [(None,)]
