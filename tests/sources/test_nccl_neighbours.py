"""Files beside NCCL's logs: topologies, the Inspector's lines, flight recorder dumps. Hostile ones do no harm."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from tests.examples import examples
from traceforge.errors import InputUnusableError
from traceforge.files import read_head
from traceforge.records import Batch, ReadOptions, Source, SourceSummary
from traceforge.sources.flight_recorder import SOURCE as RECORDER
from traceforge.sources.nccl_inspector import SOURCE as INSPECTOR
from traceforge.sources.nccl_topology import SOURCE as TOPOLOGY

Tables = dict[str, list[dict[str, Any]]]
Read = Callable[[Source, bytes], tuple[SourceSummary, Tables]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read_bytes(source: Source, data: bytes) -> tuple[SourceSummary, Tables]:
        path = tmp_path / "file"
        path.write_bytes(data)
        batches: list[Batch] = []
        summary = source.read(path, batches.append, ReadOptions())
        names = {batch.table for batch in batches}
        return summary, {
            name: pl.concat([batch.rows for batch in batches if batch.table == name]).to_dicts() for name in names
        }

    return read_bytes


SYSTEM = b"""<system version="1">
  <cpu numaid="1" affinity="ff">
    <pci busid="0000:01:00.0" class="0x060400">
      <pci busid="0000:03:00.0" class="0x030200"><gpu dev="2" sm="80" rank="5" gdr="1">
        <nvlink target="0000:43:00.0" count="4"/></gpu></pci>
      <nic><net name="mlx5_0" dev="0" speed="200000" port="1"/></nic>
    </pci>
  </cpu>
</system>"""

GRAPHS = b"""<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="2" speedintra="24" speedinter="12.5" typeintra="NVL"
   typeinter="PXB" samechannels="1">
    <channel><net dev="0"/><gpu dev="0"/><gpu dev="1"/><net dev="0"/></channel>
    <channel><gpu dev="1"/><gpu dev="0"/></channel>
  </graph>
</graphs>"""


def test_a_topology_becomes_nodes_below_one_another_and_links_across(read: Read) -> None:
    assert TOPOLOGY.recognises(SYSTEM)

    summary, tables = read(TOPOLOGY, SYSTEM)

    nodes = tables["raw.nccl_topology_node"]
    assert [(node["kind"], node["parent_node_id"]) for node in nodes] == [
        ("cpu", None), ("pci", 0), ("pci", 1), ("gpu", 2), ("nic", 1), ("net", 4)]  # fmt: skip
    gpu, net = nodes[3], nodes[5]
    assert (gpu["pci_address"], gpu["device"], gpu["rank"], gpu["numa_node"]) == ("0000:03:00.0", 2, 5, 1)
    assert net["bandwidth_bytes_per_s"] == 25_000_000_000
    (link,) = tables["raw.nccl_topology_link"]
    assert (link["from_node_id"], link["to_name"], link["link_count"]) == (3, "0000:43:00.0", 4)
    assert summary.event_count == summary.stored_count == 7


def test_a_graph_dump_becomes_patterns_and_channels(read: Read) -> None:
    _, tables = read(TOPOLOGY, GRAPHS)

    (graph,) = tables["raw.nccl_graph"]
    assert (graph["pattern"], graph["channel_count"], graph["inter_bandwidth_bytes_per_s"]) == (
        "ring", 2, 12_500_000_000)  # fmt: skip
    first, second = tables["raw.nccl_graph_channel"]
    assert first["nodes"] == ["net/0", "gpu/0", "gpu/1", "net/0"]
    assert second["channel"] == 1


@pytest.mark.parametrize(
    "data", [b'<!DOCTYPE s [<!ENTITY a "b">]><system><cpu/></system>', b"<system><cpu>", b"<system \xff"]
)
def test_entities_and_broken_xml_are_refused(read: Read, data: bytes) -> None:
    with pytest.raises(InputUnusableError):
        read(TOPOLOGY, data)


def test_every_topology_of_the_corpus_is_read_whole(corpus: Path) -> None:
    files = sorted((corpus / "traces" / "nccl" / "topo").rglob("*.xml"))
    for path in files:
        assert TOPOLOGY.recognises(read_head(path)), path
        summary = TOPOLOGY.read(path, lambda _batch: None, ReadOptions())
        assert summary.stored_count == path.read_bytes().count(b"<") - _other_marks(path.read_bytes()), path
    assert len(files) > 50


def _other_marks(text: bytes) -> int:
    """Marks that begin no stored element: ends of elements, comments, headings, the root."""
    return text.count(b"</") + text.count(b"<!--") + text.count(b"<?") + text.count(b"<system")


def line(**perf: object) -> bytes:
    whole = {
        "header": {"id": "0x00feed", "rank": 3, "n_ranks": 8, "nnodes": 2},
        "metadata": {"inspector_output_format_version": "v4.0", "dump_timestamp_us": 1_700_000_000_000_001,
                     "hostname": "node-1", "pid": 99},
        "coll_perf": {"coll": "AllReduce", "coll_sn": 17, "coll_msg_size_bytes": 1_048_576, "coll_exec_time_us": 61.5,
                      "coll_timing_source": "kernel_gpu", "coll_busbw_gbs": 29.8, **perf},
    }  # fmt: skip
    return json.dumps(whole).encode() + b"\n"


def test_a_line_of_the_inspector_becomes_a_measured_operation(read: Read) -> None:
    events = {
        "kernel_events": [{"kernel_start_ts": 5, "kernel_stop_ts": 9}, {"kernel_start_ts": 4, "kernel_stop_ts": 8}]
    }
    assert INSPECTOR.recognises(line())

    summary, tables = read(INSPECTOR, line(event_trace_ts=events) + b"{broken\n" + b"{}\n")

    (row,) = tables["raw.nccl_inspector_operation"]
    assert (row["comm_hash"], row["rank"], row["sequence"], row["op"]) == ("0xfeed", 3, 17, "AllReduce")
    assert (row["duration_ns"], row["bus_bandwidth_bytes_per_s"]) == (61_500, 29_800_000_000)
    assert row["raw_dump_time_ns"] == 1_700_000_000_000_001_000
    assert (row["raw_start_ns"], row["raw_end_ns"], row["channel_count"]) == (4_000, 9_000, 2)
    assert {issue.code: issue.count for issue in summary.issues} == {
        "nccl_inspector_unreadable_line": 1, "nccl_inspector_without_operation": 1}  # fmt: skip
    assert summary.event_count == 3


DUMP = {
    "version": "2.4",
    "entries": [
        {"record_id": 4, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": 9, "p2p_seq_id": 0,
         "profiling_name": "nccl:all_reduce", "time_created_ns": 1_700_000_000_000_000_001, "duration_ms": 1.5,
         "input_sizes": [[3, 4]], "state": "started", "timeout_ms": 600_000, "is_p2p": False, "retired": False,
         "frames": [{"name": "step", "filename": "train.py", "line": 12}]},
    ],
    "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
    "pg_status": {"0": {"last_enqueued_collective": 9, "last_started_collective": 9, "last_completed_collective": 8}},
}  # fmt: skip


@pytest.mark.parametrize("data", [pickle.dumps(DUMP, protocol=2), json.dumps(DUMP).encode()], ids=["pickle", "json"])
def test_a_dump_says_the_same_as_pickle_and_as_json(read: Read, data: bytes) -> None:
    assert RECORDER.recognises(data)

    summary, tables = read(RECORDER, data)

    (entry,) = tables["raw.flight_recorder_entry"]
    assert (entry["collective_sequence"], entry["process_group_name"], entry["state"]) == (9, "0", "started")
    assert (entry["raw_created_ns"], entry["duration_ns"]) == (1_700_000_000_000_000_001, 1_500_000)
    assert entry["timeout_ns"] == 600_000_000_000
    assert entry["in_shapes"] == "[[3, 4]]"
    assert entry["stack"] == "step at train.py:12"
    (group,) = tables["raw.flight_recorder_group"]
    assert (group["process_group_name"], group["ranks"]) == ("0", "[0, 1]")
    (progress,) = tables["raw.flight_recorder_progress"]
    assert progress.pop("process_group_id") == 0
    assert progress == {"last_enqueued": 9, "last_started": 9, "last_completed": 8}
    assert (summary.stored_count, summary.rank, summary.world_size) == (1, None, 2)


def config_of(*groups: object) -> bytes:
    described = {str(name): {"name": str(name), "ranks": ranks} for name, ranks in enumerate(groups)}
    return json.dumps({"entries": [], "pg_config": described}).encode()


@pytest.mark.parametrize(
    ("groups", "rank"),
    [
        (("[0, 1, 2, 3]", "[0, 2]", "[2, 3]"), 2),
        (("[0, 1, 2, 3]", [1]), 1),
        (("[0, 1, 2, 3]", "[0, 1]"), None),
        (("[0, 1]", "[2, 3]"), None),
        (("", "[" * 5000, "[true]", "[1.5]", None), None),
    ],
    ids=str,
)
def test_the_only_rank_that_is_in_all_groups_wrote_the_dump(
    read: Read, groups: tuple[object], rank: int | None
) -> None:
    summary, _ = read(RECORDER, config_of(*groups))

    assert summary.rank == rank


def test_the_number_of_a_group_in_the_process_is_not_its_name(read: Read) -> None:
    # given that group 7 has number 1 in this process
    dump = {
        "entries": [],
        "pg_config": {"0": {"name": "0"}, "7": {"name": "7"}},
        "pg_status": {"0": {"last_enqueued_collective": 5}, "1": {"last_enqueued_collective": 4}, "x": {}},
    }

    _, tables = read(RECORDER, json.dumps(dump).encode())

    assert [row["process_group_name"] for row in tables["raw.flight_recorder_group"]] == ["0", "7"]
    progress = tables["raw.flight_recorder_progress"]
    assert [(row["process_group_id"], row["last_enqueued"]) for row in progress] == [(0, 5), (1, 4)]


class _Evil:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.write_text, (self._path, "owned"))


def test_a_pickle_that_wants_to_run_something_is_refused_before_it_can(read: Read, tmp_path: Path) -> None:
    target = tmp_path / "owned"
    data = pickle.dumps({"entries": [_Evil(target)], "pg_config": {}}, protocol=2)

    with pytest.raises(InputUnusableError, match="no plain container"):
        read(RECORDER, data)

    assert not target.exists()


@examples(80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 400), junk=st.binary(min_size=1, max_size=30))
@example(place=1, junk=b"\x00i\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\\")  # a backslash of which Python warns
def test_a_damaged_pickle_is_read_or_refused_but_never_raises_anything_else(
    read: Read, place: int, junk: bytes
) -> None:
    data = pickle.dumps(DUMP, protocol=2)
    damaged = data[:place] + junk + data[place + len(junk) :]

    try:
        summary, _ = read(RECORDER, damaged)
    except InputUnusableError:
        return
    assert summary.event_count >= summary.stored_count


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(DUMP["entries"][0])), inner),  # type: ignore[call-overload, index]
    max_leaves=8,
)


@examples(80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries=st.lists(json_values, max_size=4), config=json_values, status=json_values)
def test_fields_of_the_wrong_type_are_left_out(
    read: Read, entries: list[object], config: object, status: object
) -> None:
    data = json.dumps({"entries": entries, "pg_config": config, "pg_status": status}).encode()

    summary, _ = read(RECORDER, data)

    assert summary.event_count == len(entries)
    assert summary.event_count == summary.stored_count + sum(issue.lost_events for issue in summary.issues)


@pytest.mark.parametrize("source", [TOPOLOGY, INSPECTOR, RECORDER], ids=lambda source: source.name)
def test_each_recognises_its_own_files_alone(source: Source) -> None:
    others = {
        "nccl_topology": SYSTEM,
        "nccl_inspector": line(),
        "flight_recorder": json.dumps(DUMP).encode(),
        "kineto": b'{"traceEvents": []}',
        "log": b"node:1:2 [0] NCCL INFO x",
    }
    assert [name for name, data in others.items() if source.recognises(data)] == [source.name]
