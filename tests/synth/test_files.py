"""What is written: traces of the form that PyTorch writes, and a truth that adds up."""

import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traceforge.errors import UsageError
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection
from traceforge.synth.folder import write_scenario
from traceforge.synth.scenario import Scenario, scenario_of

JOB = Scenario(
    "two faults",
    seed=2,
    iterations=4,
    cluster=Cluster(2, 2, 2),
    faults=(Injection("allocator_stall", 3, 0.2), Injection("checkpoint_pause", 0, 0.4, first=2)),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    write_scenario(JOB, folder)
    return folder


def trace(folder: Path, rank: int) -> dict[str, Any]:
    text = gzip.decompress((folder / f"rank{rank}.pt.trace.json.gz").read_bytes())
    document: dict[str, Any] = json.loads(text)
    return document


@pytest.fixture(scope="module")
def events(folder: Path) -> list[dict[str, Any]]:
    return trace(folder, 3)["traceEvents"]


def of(events: list[dict[str, Any]], category: str) -> list[dict[str, Any]]:
    return [event for event in events if event.get("cat") == category]


def test_the_head_says_who_it_is(folder: Path) -> None:
    head = trace(folder, 3)

    assert (head["distributedInfo"]["rank"], head["distributedInfo"]["world_size"], head["host_name"]) == (
        3,
        4,
        "node1",
    )
    assert [group["ranks"] for group in head["distributedInfo"]["pg_config"]] == [[2, 3], [1, 3]]


def test_every_kernel_has_one_launch_before_it(events: list[dict[str, Any]]) -> None:
    launches = {e["args"]["correlation"]: e for e in of(events, "cuda_runtime") if "correlation" in e["args"]}
    kernels = [*of(events, "kernel"), *of(events, "gpu_memcpy")]

    assert sorted(launches) == sorted(kernel["args"]["correlation"] for kernel in kernels)
    assert all(launches[k["args"]["correlation"]]["ts"] <= k["ts"] for k in kernels)


def test_kernels_of_a_stream_follow_one_another(events: list[dict[str, Any]]) -> None:
    kernels = [*of(events, "kernel"), *of(events, "gpu_memcpy")]
    for stream in {kernel["tid"] for kernel in kernels}:
        own = sorted((k["ts"], k["ts"] + k["dur"]) for k in kernels if k["tid"] == stream)
        assert all(end <= start + 1e-3 for (_, end), (start, _) in itertools.pairwise(own))


def test_host_events_of_the_thread_are_nested(events: list[dict[str, Any]]) -> None:
    open_until: list[float] = []
    host = [e for e in events if e["ph"] == "X" and e.get("tid") == 0]
    for event in sorted(host, key=lambda e: (e["ts"], -e["dur"])):
        while open_until and open_until[-1] <= event["ts"] + 1e-3:
            open_until.pop()
        assert not open_until or event["ts"] + event["dur"] <= open_until[-1] + 2e-3, event
        open_until.append(event["ts"] + event["dur"])


def test_collectives_state_their_group_and_their_number(events: list[dict[str, Any]]) -> None:
    records = [e["args"] for e in of(events, "cpu_op") if e["name"] == "record_param_comms"]

    assert {(r["Process Group Ranks"], r["Process Group Description"]) for r in records} == {
        ("[2, 3]", "mesh_tp"),
        ("[1, 3]", "mesh_dp"),
    }
    for ranks in ("[2, 3]", "[1, 3]"):
        numbers = [r["Seq"] for r in records if r["Process Group Ranks"] == ranks]
        assert numbers == list(range(1, len(numbers) + 1))


def test_stalls_are_named_as_profilers_name_them(folder: Path, events: list[dict[str, Any]]) -> None:
    assert sum(e["name"] == "cudaMalloc" for e in of(events, "cuda_runtime")) == 2 * JOB.iterations
    checkpoints = [e for e in of(trace(folder, 0)["traceEvents"], "user_annotation") if e["name"] == "save_checkpoint"]
    assert len(checkpoints) == 2


def test_the_truth_adds_up(folder: Path) -> None:
    truth = json.loads((folder / "truth.json").read_text())

    healthy = np.array(truth["duration_ns"]) - np.array(truth["excess_ns"])
    assert (healthy > 0).all()
    # given two faults on different ranks, of which each may hide the other: the excess lies between
    removed, added = (np.array([fault[name] for fault in truth["faults"]]) for name in ("removed_ns", "added_ns"))
    assert removed.sum() <= sum(truth["excess_ns"]) + 1e3
    assert added.sum() >= sum(truth["excess_ns"]) - 1e3
    assert [fault["iterations"] for fault in truth["faults"]] == [[5, 6, 7, 8], [7, 8]]


def test_the_scenario_beside_the_traces_makes_them_again(folder: Path, tmp_path: Path) -> None:
    scenario = scenario_of((folder / "scenario.toml").read_text(), "scenario.toml")
    write_scenario(scenario, tmp_path)

    assert scenario == JOB
    for path in folder.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colour = 'red'", "unknown key `colour`"),
        ("[cluster]\nnodes = 0", "must be 1 or more"),
        ("[cluster]\nnodes = 3\ndevices = 1\ntensor_parallel = 2", "3 ranks cannot be divided into groups of 2"),
        ("[cluster", "no TOML"),
        ("seed = [1]", "`seed` is of the wrong type"),
        ("[[faults]]\nkind = 'x'", "unknown key `kind`"),
    ],
)
def test_a_scenario_that_cannot_be_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        scenario_of(text, "scenario.toml")
