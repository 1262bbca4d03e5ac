"""Generated communication beside real one: the same calls, kernels and arguments. Needs TRACEFORGE_CORPUS."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from traceforge.synth.cluster import Cluster
from traceforge.synth.folder import write_scenario
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario

Events = list[dict[str, Any]]


def events_of(path: Path) -> Events:
    document: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    found: Events = document["traceEvents"]
    return found


@pytest.fixture(scope="module")
def real(corpus: Path) -> Events:
    """A mixture of experts on two ranks, PyTorch 2.13."""
    return events_of(corpus / "traces" / "kineto" / "torchao_ep_moe" / "06852f__ref_ep_moe_fwd.json.gz")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Events:
    folder = tmp_path_factory.mktemp("experts")
    scenario = Scenario("experts", 1, 1, cluster=Cluster(1, 2, expert_parallel=2), workload=Workload(layers=1))
    write_scenario(scenario, folder)
    return events_of(folder / "rank0.pt.trace.json.gz")


def all_to_alls(events: Events, category: str) -> Events:
    return [
        event
        for event in events
        if event.get("cat") == category and event.get("args", {}).get("Collective name") == "all_to_allv"
    ]


@pytest.mark.parametrize("category", ["cpu_op", "kernel"])
def test_an_all_to_all_says_nothing_that_real_ones_do_not_say(real: Events, made: Events, category: str) -> None:
    known = set().union(*(event["args"] for event in all_to_alls(real, category)))

    for event in all_to_alls(made, category):
        assert set(event["args"]) - known == set()
        # and all that tells who sends how much to whom
        assert {"In split size", "Out split size", "In msg nelems", "Group size", "Process Group Ranks", "Seq"} <= set(
            event["args"]
        )


def test_values_have_the_types_of_real_ones(real: Events, made: Events) -> None:
    theirs, ours = (all_to_alls(events, "cpu_op")[-1]["args"] for events in (real, made))

    for name in ours.keys() & theirs.keys():
        assert type(ours[name]) is type(theirs[name]), name


def test_the_call_and_the_kernel_have_the_names_of_real_ones(real: Events, made: Events) -> None:
    names = {event["name"] for event in real}
    (_, *_), kernels = (
        all_to_alls(made, "cpu_op"),
        {event["name"].split("(")[0] for event in all_to_alls(made, "kernel")},
    )

    assert kernels <= {event["name"].split("(")[0] for event in all_to_alls(real, "kernel")}
    assert "c10d::alltoall_base_" in names & {event["name"] for event in made}
