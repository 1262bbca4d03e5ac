"""Families of other parallel layouts. In: the first seed. Out: cases.

Stages of a pipeline, shards, experts, and ranks that share sequences: what is late passes through messages and through
groups that hold only a part of the ranks, and much waiting is by design.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from tests.accuracy.case import Case, Family
from tests.accuracy.conditions import CLOCKS, NOISES
from traceforge.synth.cluster import Cluster
from traceforge.synth.experts import Experts
from traceforge.synth.fault import Injection, faults
from traceforge.synth.pipeline import Pipeline
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario
from traceforge.synth.target import places_of

_MEGATRON = Cluster(4, 4, pipeline_parallel=4, naming="megatron")
_PIPELINES = {
    "1f1b-4x2": (Cluster(2, 4, pipeline_parallel=4), Pipeline("1f1b")),
    "1f1b-one-by-one-4x4": (_MEGATRON, Pipeline("1f1b", batched=False, clips_gradients=True)),
    "gpipe-2x2x2": (Cluster(4, 2, 2, pipeline_parallel=2), Pipeline("gpipe", clips_gradients=True)),
    "interleaved-2x4": (Cluster(2, 4, pipeline_parallel=2), Pipeline("interleaved", 8, 2)),
    "split-4x2": (Cluster(2, 4, pipeline_parallel=4), Pipeline("zero_bubble")),
    "1f1b-shards-2x4": (Cluster(2, 4, pipeline_parallel=2, shard=4), Pipeline("1f1b")),
}
# What is slow from the first iteration to the last on all ranks of a stage may be slow by design, and a link may be
# a long one: these faults begin in mid-run.
_OF_PIPELINES = {
    "slow": Injection("compute_straggler", 0, 0.25),
    "gc-at-times": Injection("gc_pause", 0, 0.4, first=1, every=3),
    "input": Injection("input_stall", 0, 0.3),
    "host-slow": Injection("host_slow_compute", 0, 0.25, first=7),
    "stage-slow": Injection("stage_slow_compute", 0, 0.25, first=7),
    "link-slow": Injection("slow_link", 0, 0.3, first=6),
    "hosts-slow": Injection("slow_host_link", 0, 0.4, first=6),
    "everyone": Injection("job_pause", 0, 0.6, first=2, every=4),
}


def _placed(one: Injection, cluster: Cluster, seed: int) -> Injection:
    return replace(one, place=(7 * seed + 3) % places_of(cluster, faults()[one.fault].target))


def _pipelined(name: str, seed: int, **changes: object) -> Scenario:
    cluster, pipeline = _PIPELINES[name]
    layers = 2 * cluster.pipeline_parallel * pipeline.chunks
    made = Scenario(f"{name}-{seed}", 2900 + seed, 16, cluster=cluster, pipeline=pipeline, workload=Workload(layers))
    return replace(made, clocks=list(CLOCKS.values())[seed % 3], **changes)  # type: ignore[arg-type]  # its fields


def _pipelines(first: int) -> Iterator[Case]:
    for number, (kind, name) in enumerate(product(_OF_PIPELINES, _PIPELINES)):
        seed = first + number
        made = _pipelined(name, seed)
        one = _placed(_OF_PIPELINES[kind], made.cluster, seed)
        yield Case("pipelines", replace(made, name=f"{kind}-{made.name}", faults=(one,)))


def _uneven_pipelines(first: int) -> Iterator[Case]:
    # given a first and a last stage that do more by design, and a fault on top of that
    for number, (kind, name) in enumerate(product(("slow", "stage-slow", "link-slow"), list(_PIPELINES)[:3])):
        seed = first + number
        made = _uneven(_pipelined(name, 40 + seed))
        one = _placed(_OF_PIPELINES[kind], made.cluster, seed)
        yield Case("uneven pipelines", replace(made, name=f"uneven-{kind}-{made.name}", faults=(one,)))


def _uneven(job: Scenario) -> Scenario:
    return replace(job, pipeline=replace(job.pipeline, embedding_ns=500_000, head_ns=1_500_000))


_SHARDS = {"fsdp-8": Cluster(2, 4, shard=8), "hsdp-4x2": Cluster(2, 4, shard=4), "hsdp-4x4": Cluster(4, 4, shard=4)}
_OF_SHARDS = {
    "slow": Injection("compute_straggler", 0, 0.25),
    "gc-at-times": Injection("gc_pause", 0, 0.5, first=1, every=3),
    "input": Injection("input_stall", 0, 0.3),
    "host-slow": Injection("host_slow_compute", 0, 0.2),
    "network": Injection("fabric_episode", 0, 0.6, first=6, last=12),
}


def _sharded(name: str, seed: int) -> Scenario:
    workload = Workload(layers=6, gradient_bytes=600_000_000)
    return Scenario(f"{name}-{seed}", 3000 + seed, 20, cluster=_SHARDS[name], workload=workload)


def _shards(first: int) -> Iterator[Case]:
    for number, (kind, name) in enumerate(product(_OF_SHARDS, _SHARDS)):
        seed = first + number
        made = _sharded(name, seed)
        one = _OF_SHARDS[kind]
        one = one if kind == "network" else _placed(one, made.cluster, seed)
        yield Case("shards", replace(made, name=f"{kind}-{made.name}", faults=(one,)))


_EXPERTS = {"ep-4x2": Cluster(2, 4, expert_parallel=4), "ep-8": Cluster(2, 4, expert_parallel=8)}
_OF_EXPERTS = {
    "hot": Injection("hot_expert", 0, 0.25),
    "hot-late": Injection("hot_expert", 0, 0.3, first=8),
    "slow": Injection("compute_straggler", 0, 0.25),
    "gc-at-times": Injection("gc_pause", 0, 0.5, first=1, every=3),
    "input": Injection("input_stall", 0, 0.3),
    "host-slow": Injection("host_slow_compute", 0, 0.2),
}


def _experts(first: int) -> Iterator[Case]:
    for number, (kind, name) in enumerate(product(_OF_EXPERTS, _EXPERTS)):
        seed = first + number
        one = _placed(_OF_EXPERTS[kind], _EXPERTS[name], seed)
        made = Scenario(f"{kind}-{name}-{seed}", 3050 + seed, 20, cluster=_EXPERTS[name])
        yield Case("experts", replace(made, faults=(one,)))


_SEQUENCES = {"sp-4x2": Cluster(2, 4, 4), "sp-2x4": Cluster(2, 4, 2), "sp-2x2x2": Cluster(2, 4, 2, pipeline_parallel=2)}


def _sequences(first: int) -> Iterator[Case]:
    for number, (kind, name) in enumerate(product(("slow", "gc-at-times", "input", "host-slow"), _SEQUENCES)):
        seed = first + number
        one = _placed(_OF_SHARDS[kind], _SEQUENCES[name], seed)
        if kind == "host-slow" and _SEQUENCES[name].pipeline_parallel > 1:
            # A host that is a stage: slow in all iterations it may be slow by design.
            one = replace(one, first=8)
        yield Case("sequence parallel", replace(_sequence(name, seed), faults=(one,), name=f"{kind}-{name}-{seed}"))


def _sequence(name: str, seed: int) -> Scenario:
    workload = Workload(sequence_parallel=True)
    return Scenario(f"{name}-{seed}", 3100 + seed, 20, cluster=_SEQUENCES[name], workload=workload)


def _healthy(first: int) -> Iterator[Case]:
    for number, (name, is_uneven) in enumerate(product(_PIPELINES, (False, True))):
        made = _pipelined(name, 100 + first + number)
        yield _well(_uneven(made) if is_uneven else made, "uneven-" if is_uneven else "")
    for number, name in enumerate(_SHARDS):
        yield _well(_sharded(name, 40 + first + number))
    for number, (name, spread) in enumerate(product(_EXPERTS, (0.03, 0.08))):
        made = Scenario(f"{name}-{spread:g}-{first + number}", 3080 + first + number, 20, cluster=_EXPERTS[name])
        yield _well(replace(made, experts=Experts(spread=spread)))
    for number, name in enumerate(_SEQUENCES):
        yield _well(_sequence(name, 40 + first + number))
    for number, noise in enumerate(("lasting", "rough")):
        made = _pipelined("1f1b-4x2", 120 + first + number, noise=NOISES[noise])
        yield _well(made, f"{noise}-")


def _well(job: Scenario, word: str = "") -> Case:
    return Case("healthy, other layouts", replace(job, name=f"healthy-{word}{job.name}"))


FAMILIES = {
    "pipelines": Family(
        "Large models are trained in stages, where a late rank is seen by ranks that run something else.", _pipelines
    ),
    "uneven pipelines": Family(
        "Stages differ by design, and who is slow for its stage must not hide behind that.", _uneven_pipelines
    ),
    "shards": Family("FSDP is the usual way to train on more than one host.", _shards),
    "experts": Family("With experts a rank may be late because of what the others send it.", _experts),
    "sequence parallel": Family("Newer tensor parallelism has no all-reduce to look at.", _sequences),
    "healthy, other layouts": Family(
        "A heavy head, a filling pipeline and uneven tokens are no fault of anybody's.", _healthy
    ),
}
