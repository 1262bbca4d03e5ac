"""Pipelines that are simulated: the closed forms hold, messages hold both sides, and faults travel through them."""

import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.synth.quiet_jobs import BARE, QUIET
from traceforge.errors import UsageError
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection
from traceforge.synth.folder import write_scenario
from traceforge.synth.load import Noise
from traceforge.synth.pipeline import Pipeline
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario, SimulatedJob, cost_of, run

# Two replicas of two stages.
SMALL = Scenario(
    iterations=2,
    cluster=Cluster(2, 2, pipeline_parallel=2),
    workload=Workload(layers=2),
    pipeline=Pipeline(microbatches=3),
)


def busy_share(job: SimulatedJob, rank: int) -> float:
    """Share of the run in which a rank computes."""
    events, program = job.events, job.program_of(rank)
    places = [n for n, operation in enumerate(program) if operation.action == "compute"]
    busy = (events.device_end_ns - events.device_start_ns)[:, places, rank].sum()
    return float(busy / events.iteration_ends_ns()[-1])


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_the_bubble_is_that_of_the_closed_form(schedule: str, batched: bool) -> None:
    job = run(replace(BARE, pipeline=replace(BARE.pipeline, schedule=schedule, batched=batched)))

    # (p - 1) / (m + p - 1)
    for rank in range(4):
        assert 1 - busy_share(job, rank) == pytest.approx(3 / (8 + 3), abs=0.01)


@pytest.mark.parametrize("batched", [True, False])
def test_the_bubble_of_an_interleaved_pipeline_is_smaller(batched: bool) -> None:
    job = run(replace(BARE, pipeline=Pipeline("interleaved", 8, 2, batched=batched, message_bytes=0)))

    for rank in range(4):
        assert 1 - busy_share(job, rank) == pytest.approx(3 / (2 * 8 + 3), abs=0.01)


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize(("stages", "microbatches", "chunks"), [(2, 2, 2), (3, 3, 2), (4, 4, 2), (3, 9, 3), (4, 12, 2)])
def test_interleaved_stages_never_wait_for_one_another_for_ever(
    stages: int, microbatches: int, chunks: int, batched: bool
) -> None:
    pipeline = Pipeline("interleaved", microbatches, chunks, batched, message_bytes=0)
    cluster = Cluster(1, stages, pipeline_parallel=stages)
    job = run(
        replace(
            BARE,
            cluster=cluster,
            pipeline=pipeline,
            workload=replace(BARE.workload, layers=stages * chunks),
        )
    )

    ideal = (chunks * microbatches + stages - 1) * 6_000_000
    duration = job.events.iteration_ends_ns()[0]
    assert ideal < duration < (1.25 if microbatches == stages else 1.02) * ideal


def test_the_bubble_of_a_split_backward_is_a_third() -> None:
    job = run(replace(BARE, pipeline=Pipeline("zero_bubble", 8, message_bytes=0)))

    for rank in range(4):
        assert 1 - busy_share(job, rank) == pytest.approx(3 / (3 * 8 + 3), abs=0.01)


@pytest.mark.parametrize("batched", [True, False])
def test_both_sides_of_a_message_end_together_and_not_before_the_later_one_is_there(batched: bool) -> None:
    job = run(replace(SMALL, noise=replace(Noise(), end_skew_ns=0), pipeline=replace(SMALL.pipeline, batched=batched)))

    sides: dict[str, list[tuple[int, float, float]]] = {}
    for rank in (0, 2):
        for n, operation in enumerate(job.program_of(rank)):
            for part in operation.parts:
                start, end = job.events.device_start_ns[1, n, rank], job.events.device_end_ns[1, n, rank]
                sides.setdefault(part.message, []).append((len(operation.parts), start, end))
    assert sorted(sides) == ["B1.0", "B1.1", "B1.2", "F0.0", "F0.1", "F0.2"]
    for (parts, start, end), (others, start_there, end_there) in sides.values():
        assert min(end, end_there) > max(start, start_there)
        if parts == others == 1:
            assert end == end_there


def test_a_slow_stage_costs_what_it_loses_in_the_turns_that_follow_one_another() -> None:
    # given the second of four stages slower, by a tenth of a step in sum
    cost = cost_of(replace(BARE, faults=(Injection("stage_slow_compute", 1, 0.1),)))

    # then the two forwards of its warm-up and the last two backwards are hidden in what it waits for anyhow, and six
    # of its eight pairs of turns are not
    excess = cost.removed_ns[0] / cost.healthy_ns
    assert excess == pytest.approx(0.1 * 6 / 8, rel=0.01)
    assert [(t.subject_kind, t.subject, t.ranks) for t in cost.troubles] == [("stage", "1", (1,))]


def test_a_slow_link_slows_the_messages_of_its_two_ranks_only() -> None:
    slow = replace(SMALL, faults=(Injection("slow_link", 1, 0.3),))
    healthy, faulty = run(SMALL), run(slow)

    for name, times in faulty.load.message_ns.items():
        grown = times / healthy.load.message_ns[name]
        # ranks 0 and 1 are the first stage, 2 and 3 the second: pair number 1 is ranks 1 and 3
        assert np.all(grown[:, 0] == 1)
        assert np.all(grown[:, 1] > 1.5)
    (trouble,) = cost_of(slow).troubles
    assert (trouble.subject_kind, trouble.subject) == ("link", "1, 3")


def test_a_slow_link_of_hosts_slows_all_that_passes_between_them() -> None:
    # given ranks 0 and 1 on the first host, and 2 and 3, which are the second stage, on the other
    slow = replace(SMALL, faults=(Injection("slow_host_link", 0, 0.3),))
    healthy, faulty = run(SMALL), run(slow)

    for name, times in faulty.load.message_ns.items():
        assert np.all(times / healthy.load.message_ns[name] > 1.5)
    (trouble,) = cost_of(slow).troubles
    assert (trouble.subject_kind, trouble.subject, trouble.ranks) == ("link", "node0, node1", (0, 1, 2, 3))


def test_layers_that_were_moved_and_a_head_make_stages_unequal() -> None:
    uneven = replace(BARE, pipeline=replace(BARE.pipeline, layers_by_stage=(3, 2, 2, 1), head_ns=2_000_000))
    job = run(uneven)

    shares = [busy_share(job, rank) for rank in range(4)]
    assert shares[0] == max(shares)
    # the last stage has one layer and a head of a layer's time: as much as two layers
    assert shares[3] == pytest.approx(shares[2], rel=1e-3)


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (Pipeline(layers_by_stage=(1, 2)), "must name 4 numbers"),
        (Pipeline("interleaved", chunks=3), "8 layers cannot be divided into 12 stages"),
    ],
)
def test_layers_that_do_not_fit_are_refused(pipeline: Pipeline, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(replace(BARE, pipeline=pipeline))


def events_of(folder: Path, rank: int) -> list[dict[str, Any]]:
    document: dict[str, Any] = json.loads(gzip.decompress((folder / f"rank{rank}.pt.trace.json.gz").read_bytes()))
    found: list[dict[str, Any]] = document["traceEvents"]
    return found


@pytest.mark.parametrize("batched", [True, False])
def test_calls_name_their_peer_and_every_one_has_its_counterpart(tmp_path: Path, batched: bool) -> None:
    write_scenario(replace(SMALL, pipeline=replace(SMALL.pipeline, batched=batched)), tmp_path)

    calls: Counter[tuple[str, int, int]] = Counter()
    # ranks 0 and 2 are places 0 and 1 of one group
    for place, rank in enumerate((0, 2)):
        for event in events_of(tmp_path, rank):
            if event["name"] in ("c10d::send", "c10d::recv_"):
                tensors, group, peer, tag = event["args"]["Concrete Inputs"]
                assert (tensors, group, tag) == ("", "", "0")
                ends = (place, int(peer)) if event["name"] == "c10d::send" else (int(peer), place)
                calls[event["name"], *ends] += 1
    # two iterations of three micro-batches, forth and back
    assert calls == Counter({(name, *ends): 6 for name in ("c10d::send", "c10d::recv_") for ends in ((0, 1), (1, 0))})


def test_a_kernel_has_the_arguments_of_its_message_or_of_none_where_it_is_a_batch(tmp_path: Path) -> None:
    for batched in (True, False):
        write_scenario(replace(SMALL, pipeline=replace(SMALL.pipeline, batched=batched)), tmp_path / str(batched))
    kernels = {
        batched: [
            e["args"] for e in events_of(tmp_path / str(batched), 2) if e["name"].startswith("ncclDevKernel_Send")
        ]
        for batched in (True, False)
    }

    assert {args.get("Collective name") for args in kernels[True]} == {None}
    assert {args["Collective name"] for args in kernels[False]} == {"send", "recv"}
    assert {args["Process Group Ranks"] for args in kernels[False]} == {"[0, 2]"}


def test_names_are_those_of_device_meshes_or_of_megatron(tmp_path: Path) -> None:
    for naming in ("mesh", "megatron"):
        cluster = Cluster(2, 4, 2, pipeline_parallel=2, naming=naming)  # type: ignore[arg-type]
        write_scenario(replace(SMALL, cluster=cluster), tmp_path / naming)
    described = {
        naming: [
            group["pg_desc"]
            for group in json.loads(gzip.decompress((tmp_path / naming / "rank0.pt.trace.json.gz").read_bytes()))[
                "distributedInfo"
            ]["pg_config"]
        ]
        for naming in ("mesh", "megatron")
    }

    assert described == {
        "mesh": ["mesh_tp", "mesh_dp", "mesh_pp"],
        "megatron": [
            "TENSOR_MODEL_PARALLEL_GROUP", "DATA_PARALLEL_GROUP_WITH_CP", "PIPELINE_MODEL_PARALLEL_GROUP",
        ],
    }  # fmt: skip


def test_the_truth_tells_the_schedule_and_why_ranks_idle(tmp_path: Path) -> None:
    write_scenario(SMALL, tmp_path)

    truth = json.loads((tmp_path / "truth.json").read_text())
    assert truth["pipeline"] == {
        "schedule": "1f1b", "microbatches": 3, "chunks": 1, "stages": [[0, 1], [2, 3]], "layers": [1, 1],
    }  # fmt: skip
    assert set(truth["bubble_ns"]) == {"fill", "drain", "imbalance", "transfer", "launch", "late_peer"}
    assert np.array(truth["bubble_ns"]["fill"]).shape == (2, 4)
    told = [(one["source_rank"], one["destination_rank"], one["messages"]) for one in truth["links"]]
    assert told == [(0, 2, 3), (1, 3, 3), (2, 0, 3), (3, 1, 3)]
    # 32,000,000 bytes at 45 bytes a ns
    assert truth["links"][0]["transfer_ns"] == pytest.approx([3 * 711_000] * 2, rel=0.15)


def test_stages_that_clip_gradients_meet_in_every_step() -> None:
    job = run(replace(SMALL, noise=QUIET, pipeline=replace(SMALL.pipeline, clips_gradients=True)))

    norms = [
        next(n for n, one in enumerate(job.program_of(rank)) if one.meeting)
        for rank in range(job.scenario.cluster.ranks)
    ]
    starts, ends = (
        np.array([times[1, norm, rank] for rank, norm in enumerate(norms)])
        for times in (job.events.device_start_ns, job.events.device_end_ns)
    )
    # ranks 0 and 2 are one pipeline, 1 and 3 the other; each ends when the later of its stages is there
    for own in ([0, 2], [1, 3]):
        assert ends[own[0]] == ends[own[1]]
        assert 0 < ends[own[0]] - starts[own].max() < 50_000
