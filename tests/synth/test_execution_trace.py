"""The generator's execution traces: operations without times, tied to the timeline by the numbers that both repeat."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.given import rows_of
from traceforge import api
from traceforge.store.database import Store
from traceforge.synth.cluster import Cluster
from traceforge.synth.folder import write_scenario
from traceforge.synth.pipeline import Pipeline
from traceforge.synth.scenario import Scenario


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    write_scenario(Scenario("job", 1, 3, execution_traces=True, cluster=Cluster(2, 2, 2)), folder)
    return folder


def document(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return content


def test_every_operation_bears_the_number_that_the_timeline_repeats(folder: Path) -> None:
    nodes = document(folder / "rank1.et.json.gz")["nodes"]
    events = document(folder / "rank1.pt.trace.json.gz")["traceEvents"]

    recorded = {node["attrs"][0]["value"]: node["name"] for node in nodes if node["attrs"][0]["value"]}
    timed = {e["args"]["Record function id"]: e["name"] for e in events if "Record function id" in e.get("args", {})}
    assert recorded == timed
    assert len({node["id"] for node in nodes}) == len(nodes)


@pytest.mark.parametrize(
    ("cluster", "moved"),
    [
        (Cluster(1, 4, pipeline_parallel=2), {"send": (3, 1), "recv": (3, 1), "allreduce": (2, 1)}),
        (Cluster(1, 4, shard=4), {"_allgather_base": (8, 4), "_reduce_scatter_base": (4, 0.25)}),
        (Cluster(1, 4, expert_parallel=4), {"all_to_allv": (16, None), "allreduce": (4, 1)}),
    ],
)
def test_communication_of_other_layouts_is_told_alike_in_both_files(
    tmp_path: Path, cluster: Cluster, moved: dict[str, tuple[int, float | None]]
) -> None:
    # given one iteration of three micro-batches, or of four layers
    write_scenario(
        Scenario("job", 1, 1, execution_traces=True, cluster=cluster, pipeline=Pipeline(microbatches=3)), tmp_path
    )
    nodes = document(tmp_path / "rank1.et.json.gz")["nodes"]
    events = document(tmp_path / "rank1.pt.trace.json.gz")["traceEvents"]

    recorded = {node["attrs"][0]["value"]: node["name"] for node in nodes if node["attrs"][0]["value"]}
    timed = {e["args"]["Record function id"]: e["name"] for e in events if "Record function id" in e.get("args", {})}
    assert recorded == timed
    calls = [
        {attribute["name"]: attribute["value"] for attribute in node["attrs"]}
        for node in nodes
        if node["name"] == "record_param_comms"
    ]
    assert Counter(call["collective_name"] for call in calls) == {name: count for name, (count, _) in moved.items()}
    for call in calls:
        _, ratio = moved[call["collective_name"]]
        if ratio is not None:
            assert call["out_msg_nelems"] == ratio * call["in_msg_nelems"]
    said = {e["args"]["Record function id"]: e["args"] for e in events if e["name"] == "record_param_comms"}
    for call in calls:
        assert said[call["rf_id"]]["In split size"] == call["in_split_size"]


def test_it_is_linked_to_the_timeline_whole_and_tells_sizes(folder: Path) -> None:
    with Store(None, is_kept=False) as store:
        api.ingest([folder], store, run="job", jobs=1)
        api.report(store)
        links = rows_of(store, "SELECT method, matched_share, name_agreement, is_accepted FROM graph.link")
        moved = rows_of(
            store,
            "SELECT members, in_bytes, COUNT(*) FROM graph.communication WHERE rank = 1 AND op = 'all_reduce'"
            " GROUP BY ALL ORDER BY ALL",
        )

    assert links == [("rf_id", 1.0, 1.0, True)] * 4
    assert moved == [([0, 1], 16_000_000, 24), ([1, 3], 100_000_000, 6)]
