"""The family of recorded runs to which a delay was added. In: the first seed. Out: cases, each an edit.

Runs recorded on processors of one machine come with the project; where `TRACEFORGE_CORPUS` names a folder of real
traces, runs of devices are edited, too. Their few iterations are what people record.
"""

from collections.abc import Iterator
from os import environ
from pathlib import Path

from tests.accuracy.case import Case, Family
from tests.accuracy.edit import Edit
from traceforge.synth.cluster import Cluster
from traceforge.synth.scenario import Scenario

_GROUP = "edited recordings"
_SAMPLE = Path(__file__).parents[2] / "sample_traces" / "healthy"
_OF_THE_CORPUS = {
    "self_gloo4_ddp": 4,
    "torchrec_resnet18_t16981079": 2,
    "torchrec_sst_long_a2a_optimizer_5_qcomm_t16989587": 4,
}


def _of_sample(seed: int) -> Iterator[tuple[str, Edit]]:
    rank, at = (3 * seed + 1) % 4, 5 + 7 * seed % 19
    yield "slow-work", Edit(_SAMPLE, "slow work", 0.15, rank)
    yield "slow-work-for-a-while", Edit(_SAMPLE, "slow work", 0.4, rank, at, at + 5)
    yield "pause", Edit(_SAMPLE, "pause", 0.1, rank)
    yield "pause-once", Edit(_SAMPLE, "pause", 4.0, rank, at, at)
    yield "everyone-once", Edit(_SAMPLE, "everyone pauses", 3.0, 0, at, at)
    yield "slow-transfers", Edit(_SAMPLE, "slow transfers", 1.5, 0, 8, 17)
    if seed % 2 == 0:
        yield "nothing", Edit(_SAMPLE, "slow work", 0.0, rank)


def _of_corpus(seed: int) -> Iterator[tuple[str, int, Edit]]:
    folder = Path(environ.get("TRACEFORGE_CORPUS", ""), "traces", "kineto")
    for name, ranks in _OF_THE_CORPUS.items():
        if "TRACEFORGE_CORPUS" in environ and (folder / name).is_dir():
            yield f"{name}-slow-work", ranks, Edit(folder / name, "slow work", 0.5, seed % ranks)
            yield f"{name}-everyone", ranks, Edit(folder / name, "everyone pauses", 2.0, 0, 1, 1)


def _edited(first: int) -> Iterator[Case]:
    for seed in (first, first + 1):
        for name, edit in _of_sample(seed):
            yield _case(f"edited-{name}-{seed}", seed, 4, edit)
    for name, ranks, edit in _of_corpus(first):
        yield _case(f"edited-{name}-{first}", first, ranks, edit)


def _case(name: str, seed: int, ranks: int, edit: Edit) -> Case:
    return Case(_GROUP, Scenario(name, 2900 + seed, cluster=Cluster(ranks, 1)), edit=edit)


FAMILIES = {
    _GROUP: Family(
        "Noise, gaps and layouts of a real run are as nobody would generate them; one delay is known.", _edited
    )
}
