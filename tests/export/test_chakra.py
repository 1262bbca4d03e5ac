"""Exported Chakra traces: whole, decodable by others, and adding up to the measured time."""

import ast
import errno
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.export.decoding import attribute, fields, longest_path_us, messages, node
from tests.given import built, store_of
from tests.graph.recordings import add_execution_trace, operation
from tests.graph.test_corpus import store_of_folder
from tests.graph.test_operations import chakra, generated, job_whose_clock_jumps, rank_that_waits
from tests.sources.execution_trace import read_chakra
from traceforge.errors import InputUnusableError
from traceforge.export.chakra import export_chakra
from traceforge.store.database import Store

Nodes = list[dict[str, Any]]


def exported(store: Store, folder: Path) -> list[Nodes]:
    """Nodes of each file, the one that lists the groups included."""
    return [[node(m) for m in messages(f.path.read_bytes())[1:]] for f in export_chakra(store, 0, folder, "job")]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> list[Nodes]:
    """Two ranks that compute for 30 and 80 us, then reduce together until 100 and synchronise (see rank_that_waits)."""
    store = store_of(rank_that_waits(0, 30_000), rank_that_waits(1, 80_000))
    names = ("aten::mm", "record_param_comms", "aten::item")
    recorded = [operation(name, place) for place, name in enumerate(names, 1)]
    reduce = {"position": 1, "origin": "record_param_comms", "collective_name": "allreduce", "in_bytes": 4096}
    for rank in range(2):
        calls = [{**reduce, "process_group_name": "dp", "group_size": 2}]
        groups = [{"process_group_name": "dp", "description": "mesh_dp", "size": 2, "ranks": [0, 1]}]
        add_execution_trace(store, recorded, calls=calls, groups=groups, rank=rank)
    return exported(built(store), tmp_path_factory.mktemp("chakra"))


def named(nodes: Nodes, name: str) -> dict[str, Any]:
    return next(one for one in nodes if one.get("name") == name)


def test_every_dependency_exists_and_ids_are_unique(job: list[Nodes]) -> None:
    for nodes in job:
        ids = [one["id"] for one in nodes]
        assert len(set(ids)) == len(ids)
        assert {other for one in nodes for other in (*one["data"], *one["control"])} <= set(ids)


def test_dependencies_alone_add_up_to_the_measured_time(job: list[Nodes]) -> None:
    # From the first operation at 0 to the end of the last one at 105 us.
    assert [longest_path_us(nodes) for nodes in job] == [105, 105]


def test_without_communication_what_remains_is_the_ranks_own_work(job: list[Nodes]) -> None:
    # Kernel until 35 or 85, 1 us of latency each for the all-reduce, 1 us of synchronisation, 4 us behind it.
    assert [longest_path_us(nodes, without_communication=True) for nodes in job] == [41, 91]


def test_device_work_follows_its_launch_and_the_host_follows_device_work(job: list[Nodes]) -> None:
    nodes = job[0]
    by_id = {one["id"]: one for one in nodes}
    kernel, waits = named(nodes, "gemm"), named(nodes, "cudaStreamSynchronize")

    (latency,) = (by_id[other] for other in kernel["data"])
    assert [by_id[other]["name"] for other in latency["data"]] == ["cudaLaunchKernel"]
    assert "ncclDevKernel_AllReduce_Sum_f32_RING_LL" in {by_id[other]["name"] for other in waits["data"]}


def test_a_collective_says_what_it_is_how_large_and_of_which_group(job: list[Nodes]) -> None:
    reduce = named(job[0], "ncclDevKernel_AllReduce_Sum_f32_RING_LL")

    assert reduce["type"] == 7
    assert (reduce["start_us"], reduce["duration_us"]) == (36, 64)
    stated = {"is_cpu_op": False, "comm_type": 0, "comm_size": 4096, "pg_name": "1", "stream": 20}
    assert reduce["attributes"] == stated


def test_times_follow_the_course_of_a_clock_that_jumps(tmp_path: Path) -> None:
    nodes = exported(job_whose_clock_jumps(), tmp_path)[1]

    reduce = named(nodes, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")
    assert (reduce["start_us"], reduce["duration_us"]) == (86, 14)
    assert longest_path_us(nodes) == 105


def test_groups_are_listed_as_pytorch_lists_them(job: list[Nodes]) -> None:
    (text,) = ast.literal_eval(named(job[1], "## process_group:init ##")["inputs"])

    assert json.loads(text) == [
        {"pg_name": "1", "pg_desc": "mesh_dp", "backend_config": None, "ranks": [0, 1], "group_size": 2}
    ]


def test_groups_are_listed_by_the_node_that_listed_them_in_the_recording(tmp_path: Path) -> None:
    # given a recording with PyTorch's own node for them, as execution traces have it
    names = ("## process_group:init ##", "aten::mm", "record_param_comms", "aten::item")
    recorded = [operation(name, place) for place, name in enumerate(names)]
    groups = [{"process_group_name": "dp", "description": "mesh_dp", "size": 2, "ranks": [0, 1]}]
    store = store_of(rank_that_waits(0, 30_000), rank_that_waits(1, 80_000))
    add_execution_trace(store, recorded, groups=groups)

    (file,) = export_chakra(built(store), 0, tmp_path, "job")

    reading = read_chakra(file.path.read_bytes(), tmp_path)
    assert [one["name"] for one in reading.nodes].count(names[0]) == 1
    assert len(reading.nodes) == file.node_count
    assert [issue.code for issue in reading.summary.issues] == []


def test_a_generated_trace_keeps_its_durations_and_dependencies(tmp_path: Path) -> None:
    store = chakra(store_of(), generated(5), generated(7), generated(30), generated(2, "COMM_COLL"))

    (nodes,) = exported(store, tmp_path)

    assert [one["duration_us"] for one in nodes[1:]] == [5, 7, 30, 2]
    assert [one["data"] for one in nodes[1:]] == [[], [2], [2], [3, 4]]


def test_what_is_written_is_what_our_own_reader_reads(tmp_path: Path) -> None:
    store = chakra(store_of(), generated(5), generated(7), generated(30), generated(2, "COMM_COLL"))
    (file,) = export_chakra(store, 0, tmp_path, "job")

    reading = read_chakra(file.path.read_bytes(), tmp_path)

    # The last node is a collective whose kind is not known.
    assert [(issue.code, issue.count) for issue in reading.summary.issues] == [("chakra_unknown_collective", 1)]
    assert reading.summary.rank == 0
    assert len(reading.nodes) == file.node_count == 5
    assert sorted(edge[:2] for edge in reading.edges) == [(2, 3), (2, 4), (3, 5), (4, 5)]


def test_metadata_name_the_rank_and_what_the_trace_is_good_for(tmp_path: Path) -> None:
    store = chakra(store_of(), *[generated(5, rf_id=place) for place in range(4)], schema_version="1.0.2")
    (file,) = export_chakra(store, 0, tmp_path, "job")

    head = list(fields(messages(file.path.read_bytes())[0]))

    assert head[0] == (1, b"0.0.4")
    assert dict(attribute(value) for number, value in head[1:] if number == 2 and isinstance(value, bytes)) == {
        "rank": 0,
        "label": "structure_only",
        "time_unit": "us",
    }


def test_a_run_without_execution_traces_has_nothing_to_export(tmp_path: Path) -> None:
    store = built(store_of(rank_that_waits(0, 30_000)))

    with pytest.raises(InputUnusableError, match="no execution trace"):
        list(export_chakra(store, 0, tmp_path, "job"))


def test_of_traces_of_unknown_ranks_the_refusal_says_how_to_name_them(tmp_path: Path) -> None:
    store = store_of()
    for _ in range(2):
        add_execution_trace(store, [generated(5)], rank=None, file={"format": "chakra_et"})
    store.execute("UPDATE meta.source SET path = 'trace.et'")

    with pytest.raises(InputUnusableError, match="nothing says which rank") as refusal:
        list(export_chakra(built(store), 0, tmp_path, "job"))

    assert "job.0.et" in str(refusal.value.hint)


def test_of_a_file_for_which_the_disk_is_too_small_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a disk that is full after the file's metadata, and an earlier file
    store = chakra(store_of(), generated(5), generated(7))
    (tmp_path / "job.0.et").write_bytes(b"the earlier one")

    def full(_node: object) -> bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("traceforge.export.chakra._message", full)

    with pytest.raises(InputUnusableError, match="cannot be written: No space left on device"):
        list(export_chakra(store, 0, tmp_path, "job"))

    assert [path.name for path in tmp_path.iterdir()] == ["job.0.et"]
    assert (tmp_path / "job.0.et").read_bytes() == b"the earlier one"


UPSTREAM = """
import sys
from chakra.schema.protobuf.et_def_pb2 import GlobalMetadata, Node
from chakra.src.third_party.utils.protolib import decodeMessage, openFileRd
file, metadata, count, last = openFileRd(sys.argv[1]), GlobalMetadata(), 0, 0
assert decodeMessage(file, metadata)
node = Node()
while decodeMessage(file, node):
    count, last = count + 1, node.id
    node = Node()
print(metadata.version, count, last)
"""


@pytest.mark.skipif(importlib.util.find_spec("chakra") is None, reason="mlc-chakra is not installed")
def test_the_upstream_decoder_reads_every_node(tmp_path: Path) -> None:
    store = chakra(store_of(), generated(5), generated(7), generated(30), generated(2, "COMM_COLL"))
    (file,) = export_chakra(store, 0, tmp_path, "job")

    read = subprocess.run([sys.executable, "-c", UPSTREAM, str(file.path)], capture_output=True, text=True, check=True)

    assert read.stdout.split() == ["0.0.4", "5", "5"]


def test_megatron_adds_up_to_its_measured_span_by_dependencies_alone(corpus: Path, tmp_path: Path) -> None:
    store = store_of_folder(corpus / "traces" / "chakra" / "megatron_tp8_a100")

    for nodes in exported(store, tmp_path):
        timed = [one for one in nodes if one["start_us"]]
        span = max(one["start_us"] + one["duration_us"] for one in timed) - min(one["start_us"] for one in timed)
        assert abs(longest_path_us(nodes) / span - 1) < 0.02
        collectives = [one["attributes"] for one in nodes if one["type"] == 7]
        assert len(collectives) == 84
        assert all(found["comm_size"] > 0 and found["pg_name"] for found in collectives)
