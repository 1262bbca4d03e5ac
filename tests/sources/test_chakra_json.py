"""The same Chakra trace as JSON, by the jsonizer or for the feeder, reads to the rows of its binary form."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sources.chakra_wire import attribute, framed, metadata, node
from tests.sources.execution_trace import TraceReading, read_chakra
from traceforge.errors import InputUnusableError

BINARY = framed(
    metadata("0.0.4"),
    node(1, "linear", duration_us=10, attributes=[attribute("is_cpu_op", "bool", True)]),
    node(2, "gemm", data=[1], duration_us=100, attributes=[attribute("is_cpu_op", "bool", False)]),
    node(
        2**53 + 1,
        "all-reduce",
        7,
        data=[2],
        control=[1],
        attributes=[attribute("comm_type", "int64", 2), attribute("comm_size", "int64", 4096)],
    ),
)
# Zero fields are left out, 64-bit integers are texts, types are names.
DOCUMENTS = (
    {"version": "0.0.4"},
    {
        "id": "1",
        "name": "linear",
        "type": "COMP_NODE",
        "durationMicros": "10",
        "attr": [{"name": "is_cpu_op", "boolVal": True}],
    },
    {
        "id": "2",
        "name": "gemm",
        "type": "COMP_NODE",
        "dataDeps": ["1"],
        "durationMicros": "100",
        "attr": [{"name": "is_cpu_op", "boolVal": False}],
    },
    {
        "id": "9007199254740993",
        "name": "all-reduce",
        "type": "COMM_COLL_NODE",
        "ctrlDeps": ["1"],
        "dataDeps": ["2"],
        "attr": [{"name": "comm_type", "int64Val": "2"}, {"name": "comm_size", "int64Val": "4096"}],
    },
)


def jsonized(documents: object, indent: int | None = 2) -> bytes:
    return "\n".join(json.dumps(document, indent=indent) for document in documents).encode()  # type: ignore[attr-defined]


def facts(reading: TraceReading) -> tuple[object, ...]:
    return reading.nodes, sorted(reading.edges), reading.rows("communication")


@pytest.mark.parametrize("indent", [2, None], ids=["indented", "one line each"])
def test_documents_one_behind_the_other_read_like_the_binary_form(indent: int | None, tmp_path: Path) -> None:
    binary = read_chakra(BINARY, tmp_path)

    reading = read_chakra(jsonized(DOCUMENTS, indent), tmp_path)

    assert facts(reading) == facts(binary)
    assert reading.rows("file")[0]["format"] == "jsonizer_json"
    assert reading.rows("file")[0]["wire_version"] == "0.0.4"
    assert reading.is_accounted


def test_the_feeders_list_with_its_mixed_case_reads_like_the_binary_form(tmp_path: Path) -> None:
    listed = [
        {"Id": 1, "Name": "linear", "NodeType": 4, "ctrlDeps": [], "data_deps": [], "runtime": 10, "is_cpu_op": True},
        {"Id": 2, "Name": "gemm", "NodeType": 4, "ctrlDeps": [], "data_deps": [1], "runtime": 100, "is_cpu_op": 0},
        {
            "Id": 2**53 + 1,
            "Name": "all-reduce",
            "NodeType": 7,
            "ctrlDeps": [1],
            "data_deps": [2],
            "runtime": 0,
            "comm_type": 2,
            "comm_size": 4096,
        },
    ]
    content = json.dumps({"workload_graph": listed, "workload_name": "toy", "ngpus": 8}).encode()

    reading = read_chakra(content, tmp_path)

    assert facts(reading) == facts(read_chakra(BINARY, tmp_path))
    assert json.loads(reading.rows("file")[0]["metadata"]) == {"workload_name": "toy", "ngpus": 8}


def test_a_damaged_document_costs_itself_alone(tmp_path: Path) -> None:
    content = jsonized(DOCUMENTS).replace(b'"name": "gemm",', b'"name" "gemm",')

    reading = read_chakra(content, tmp_path)

    assert reading.ids == [1, 2**53 + 1]
    assert reading.issue("chakra_undecodable_node").lost_events == 1
    assert reading.is_accounted


@given(cut=st.integers(1, 2000))
def test_cut_documents_give_those_before_the_cut(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    content = jsonized(DOCUMENTS * 3)
    try:
        reading = read_chakra(content[:cut], tmp_path_factory.mktemp("cut"))
    except InputUnusableError:
        return
    assert reading.is_accounted
    assert len(reading.nodes) == sum(
        len(jsonized((DOCUMENTS * 3)[: count + 1])) <= cut for count in range(12) if count % 4
    )


def test_a_collective_that_does_not_say_which_is_counted_in_each_form(tmp_path: Path) -> None:
    size = {"name": "comm_size", "int64Val": "4096"}
    document = {"id": "1", "name": "all", "type": "COMM_COLL_NODE", "attr": [size]}
    forms = (
        framed(metadata("0.0.4"), node(1, "all", 7, attributes=[attribute("comm_size", "int64", 4096)])),
        json.dumps({"version": "0.0.4"}).encode() + json.dumps(document).encode(),
    )

    for content in forms:
        (issue,) = read_chakra(content, tmp_path).summary.issues

        assert (issue.code, issue.count, issue.first_at) == ("chakra_unknown_collective", 1, "node 0")
