"""Shards, experts and sequence parallelism: who meets whom, what is hidden, and what the files say of it."""

import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traceforge.errors import UsageError
from traceforge.synth.bubbles import exposed_ns
from traceforge.synth.cluster import Cluster, Link
from traceforge.synth.experts import Experts, tokens_received
from traceforge.synth.fault import Injection
from traceforge.synth.folder import write_scenario
from traceforge.synth.pipeline import Pipeline
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario, cost_of, run

FULL = Scenario(iterations=3, cluster=Cluster(2, 2, shard=4), workload=Workload(layers=3))
HYBRID = replace(FULL, cluster=Cluster(2, 2, shard=2))
EXPERTS = Scenario(iterations=3, cluster=Cluster(2, 4, expert_parallel=4), workload=Workload(layers=2))


def document(folder: Path, rank: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress((folder / f"rank{rank}.pt.trace.json.gz").read_bytes()))
    return found


def records(folder: Path, rank: int) -> list[dict[str, Any]]:
    events = document(folder, rank)["traceEvents"]
    return [event["args"] for event in events if event["name"] == "record_param_comms"]


def test_parameters_are_gathered_twice_and_gradients_scattered_once_for_each_layer() -> None:
    (role,) = run(FULL).roles
    collectives = [(one.collective, one.group) for one in role.program if one.action == "collective"]

    assert collectives.count(("all_gather", "shard")) == 2 * 3
    assert collectives.count(("reduce_scatter", "shard")) == 3
    assert len(collectives) == 9


def test_the_next_layer_is_gathered_while_one_computes() -> None:
    job = run(replace(FULL, workload=replace(FULL.workload, gradient_bytes=300_000_000, forward_ns=20_000_000)))
    program, events = job.program_of(0), job.events
    gathers = [n for n, one in enumerate(program) if one.collective == "all_gather" and one.action == "collective"]
    first = next(n for n, one in enumerate(program) if one.name == "aten::layer_norm")
    last = next(n for n, one in enumerate(program) if n > first and one.name == "aten::linear")

    # then the second gather runs within the first layer's compute, and what is exposed is the first and the last
    assert events.device_start_ns[1, gathers[1], 0] <= events.device_start_ns[1, first, 0]
    assert events.device_end_ns[1, gathers[1], 0] < events.device_end_ns[1, last, 0]
    every = [n for n, one in enumerate(program) if one.group == "shard"]
    took = (events.device_end_ns - events.device_start_ns)[1, every, 0].sum()
    assert exposed_ns(job)["shard"][1, 0] < 0.4 * took


def test_replicas_of_shards_reduce_what_was_scattered() -> None:
    job = run(HYBRID)
    program, events = job.program_of(0), job.events
    scatters = [n for n, one in enumerate(program) if one.collective == "reduce_scatter"]
    reduces = [n for n, one in enumerate(program) if one.group == "replicate"]

    assert [(group.kind, group.ranks) for group in HYBRID.cluster.groups()] == [
        ("shard", (0, 1)), ("shard", (2, 3)), ("replicate", (0, 2)), ("replicate", (1, 3)),
    ]  # fmt: skip
    assert len(scatters) == len(reduces) == 3
    for scatter, reduce in zip(scatters, reduces, strict=True):
        assert np.all(events.device_start_ns[:, reduce] >= events.device_end_ns[:, scatter])
        assert program[reduce].size_bytes == program[scatter].size_bytes // 2


def test_files_of_shards_say_what_pytorch_says(tmp_path: Path) -> None:
    write_scenario(HYBRID, tmp_path)

    said = records(tmp_path, 3)
    assert {(args["Collective name"], args["Process Group Description"]) for args in said} == {
        ("_allgather_base", "mesh_dp_shard"),
        ("_reduce_scatter_base", "mesh_dp_shard"),
        ("allreduce", "mesh_dp_replicate"),
    }
    for args in said:
        ratio = {"_allgather_base": 2, "_reduce_scatter_base": 0.5, "allreduce": 1}[args["Collective name"]]
        assert args["Out msg nelems"] == pytest.approx(ratio * args["In msg nelems"], abs=1)
    names = {event["name"] for event in document(tmp_path, 3)["traceEvents"]}
    assert {"FSDP::all_gather (layers.1)", "FSDP::post_backward_reduce (layers.0)"} <= names
    assert "exposed_ns" in json.loads((tmp_path / "truth.json").read_text())


def test_stages_of_shards_gather_once_and_scatter_once_a_layer(tmp_path: Path) -> None:
    # given two stages of two layers, each on two hosts of two ranks that hold shards, and four micro-batches
    cluster = Cluster(4, 2, pipeline_parallel=2, shard=2)
    job = Scenario(iterations=2, cluster=cluster, workload=Workload(layers=4), pipeline=Pipeline(microbatches=4))
    write_scenario(job, tmp_path)

    for rank in (1, 6):
        said = Counter(args["Collective name"] for args in records(tmp_path, rank))
        assert said == {"send": 8, "recv": 8, "_allgather_base": 4, "_reduce_scatter_base": 4, "allreduce": 4}
    described = {group["pg_desc"]: group["ranks"] for group in document(tmp_path, 6)["distributedInfo"]["pg_config"]}
    assert described == {"mesh_pp": [2, 6], "mesh_dp_shard": [6, 7], "mesh_dp_replicate": [4, 6]}


def test_what_one_sends_another_gets(tmp_path: Path) -> None:
    write_scenario(EXPERTS, tmp_path)
    said = [
        [args for args in records(tmp_path, rank) if args["Collective name"] == "all_to_allv"] for rank in range(4, 8)
    ]

    # two layers, forward and backward, there and back, in three iterations
    assert [len(calls) for calls in said] == [2 * 2 * 2 * 3] * 4
    for calls in zip(*said, strict=True):
        sent = np.array([json.loads(args["In split size"]) for args in calls])
        received = np.array([json.loads(args["Out split size"]) for args in calls])
        assert np.array_equal(received, sent.T)
        for number, args in enumerate(calls):
            assert args["In msg nelems"] == sent[number].sum() * 4_096
            assert args["Out msg nelems"] == received[number].sum() * 4_096
    # every rank routes all of its tokens, and they come back
    first = np.array([json.loads(calls[0]["In split size"]) for calls in said])
    back = np.array([json.loads(calls[1]["In split size"]) for calls in said])
    assert first.sum(axis=1).tolist() == [8_192] * 4
    assert np.array_equal(back, first.T)


def test_a_hot_expert_gets_more_tokens_and_its_ranks_are_late() -> None:
    # given the third of four experts, on ranks 2 and 6, hot from the second iteration on
    hot = replace(EXPERTS, faults=(Injection("hot_expert", 2, 0.2, first=1),))
    usual, changed = tokens_received(run(EXPERTS).load), tokens_received(run(hot).load)

    assert np.array_equal(usual[0], changed[0])
    assert usual.sum() == changed.sum()
    grown = changed[1:] / usual[1:]
    assert np.all(grown[:, [2, 6]] > 1.3)
    assert np.all(grown[:, [0, 1, 3, 4, 5, 7]] < 1)
    cost = cost_of(hot)
    assert [(t.subject_kind, t.subject) for t in cost.troubles] == [("ranks", "2, 6")]
    assert float((cost.removed_ns[0] / cost.healthy_ns)[1:].mean()) == pytest.approx(0.2, rel=0.3)


def test_the_host_waits_for_its_device_in_every_layer_to_learn_how_many_tokens_go_where(tmp_path: Path) -> None:
    write_scenario(EXPERTS, tmp_path / "reads")
    write_scenario(replace(EXPERTS, experts=Experts(reads_splits=False)), tmp_path / "knows")
    waits = {
        name: sum(e["name"] == "cudaStreamSynchronize" for e in document(tmp_path / name, 0)["traceEvents"])
        for name in ("reads", "knows")
    }

    # three iterations of two layers; each iteration ends with one that reads the loss
    assert waits == {"reads": 3 * (2 + 1), "knows": 3}


def test_routing_is_random_and_about_even() -> None:
    tokens = tokens_received(run(replace(EXPERTS, experts=Experts(spread=0.0))).load)

    assert len(np.unique(tokens)) > 12
    assert tokens == pytest.approx(2 * 8_192, rel=0.05)


def test_sequence_parallel_ranks_gather_and_scatter_in_place_of_reducing(tmp_path: Path) -> None:
    job = Scenario(iterations=2, cluster=Cluster(1, 4, 4), workload=Workload(sequence_parallel=True))
    write_scenario(job, tmp_path)

    said = [args["Collective name"] for args in records(tmp_path, 1)]
    # four layers, forward and backward, two iterations
    assert said == ["_allgather_base", "_reduce_scatter_base"] * (4 * 2 * 2)


def test_gathering_and_scattering_take_as_long_as_reducing() -> None:
    link = Link(2_000, 0.5)
    halves = [link.collective_ns(op, 1_000, 4) for op in ("all_gather", "reduce_scatter")]

    assert sum(halves) == link.collective_ns("all_reduce", 1_000, 4) == link.all_reduce_ns(1_000, 4)


def test_long_lists_are_cut_off_as_pytorch_cuts_them(tmp_path: Path) -> None:
    write_scenario(Scenario(iterations=1, cluster=Cluster(8, 8, 2)), tmp_path, left_out=frozenset(range(1, 64)))

    by_name = {args["Process Group Description"]: args for args in records(tmp_path, 0)}
    # 32 ranks, every second one, of which 30 are listed; the mesh of tensor-parallel ranks is short
    assert by_name["mesh_tp"]["Process Group Ranks"] == "[0, 1]"
    listed = by_name["mesh_dp"]["Process Group Ranks"]
    assert listed == f"[{', '.join(str(2 * n) for n in range(30))}, ...]"
    assert [by_name["mesh_dp"][name] for name in ("Global rank start", "Global rank stride", "Group size")] == [
        0,
        2,
        32,
    ]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"expert_parallel": 4, "pipeline_parallel": 2}, "do not go together"),
        ({"shard": 8, "pipeline_parallel": 2}, "4 ranks cannot be divided into groups of 8"),
        ({"expert_parallel": 4, "tensor_parallel": 2}, "do not go together"),
    ],
)
def test_layouts_that_do_not_go_together_are_refused(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Cluster(2, 4, **sizes)  # type: ignore[arg-type]
