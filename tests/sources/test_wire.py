"""Every way in which a Chakra node may be written in protobuf reads to the same rows."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sources.chakra_wire import SCALARS, attribute, field, framed, metadata, node
from tests.sources.execution_trace import read_chakra
from traceforge.errors import InputUnusableError
from traceforge.sources.chakra import SOURCE

# A host operation launches a kernel, whose all-reduce the next operation needs:
#
#   host    [1 linear]            [4 step]
#   device     [2 gemm][3 all-reduce]
LAUNCH = node(1, "linear", duration_us=10, attributes=[attribute("is_cpu_op", "bool", True)])
GEMM = node(2, "gemm", data=[1], duration_us=100, attributes=[attribute("is_cpu_op", "bool", False)])
REDUCE = node(
    3,
    "ncclDevKernel_AllReduce",
    7,
    data=[2],
    duration_us=40,
    attributes=[attribute("comm_type", "int64", 0), attribute("comm_size", "int64", 4096)],
)
STEP = node(4, "step", data=[1, 3], control=[1], duration_us=5, start_us=900)
NODES = (LAUNCH, GEMM, REDUCE, STEP)
EDGES = [(1, 2, "data"), (2, 3, "data"), (1, 4, "control"), (1, 4, "data"), (3, 4, "data")]


@pytest.mark.parametrize(
    "head",
    [
        [metadata("0.0.4")],
        [metadata("", [attribute("schema", "string", "1.0.2-chakra.0.0.4"), attribute("pid", "uint64", 7)])],
        [metadata("", [attribute("input_file", "string", "<x>" * 9000)])],
        [],
        [b""],
    ],
    ids=["version", "attributes", "long attribute", "none", "empty frame"],
)
def test_metadata_may_be_there_in_any_form_or_not_at_all(head: list[bytes], tmp_path: Path) -> None:
    reading = read_chakra(framed(*head, *NODES), tmp_path)

    assert reading.ids == [1, 2, 3, 4]
    assert sorted(reading.edges) == sorted(EDGES)
    assert reading.is_accounted
    assert reading.summary.issues == ()
    assert SOURCE.recognises(framed(*head, *NODES))


def test_times_become_ns_and_a_missing_start_stays_missing(tmp_path: Path) -> None:
    nodes = read_chakra(framed(*NODES), tmp_path).nodes

    assert [row["duration_ns"] for row in nodes] == [10_000, 100_000, 40_000, 5_000]
    assert [row["raw_start_ns"] for row in nodes] == [None, None, None, 900_000]


def test_dependencies_may_be_packed_or_written_one_by_one(tmp_path: Path) -> None:
    last = node(4, "step", data=[1, 2**40, 3], control=[1], packed=False)

    edges = read_chakra(framed(*NODES[:3], last), tmp_path).edges

    assert sorted(edges) == sorted([*EDGES[:2], (1, 4, "control"), (1, 4, "data"), (2**40, 4, "data"), (3, 4, "data")])


def test_a_node_whose_id_is_zero_is_no_metadata(tmp_path: Path) -> None:
    reading = read_chakra(framed(node(0, "first", 4), node(1, "second", data=[0])), tmp_path)

    assert reading.ids == [0, 1]
    assert reading.edges == [(0, 1, "data")]
    assert not reading.rows("file")[0]["has_metadata"]


def test_a_gzipped_trace_reads_the_same(tmp_path: Path) -> None:
    plain = read_chakra(framed(*NODES), tmp_path)
    packed = read_chakra(gzip.compress(framed(*NODES)), tmp_path)

    assert packed.nodes == plain.nodes
    assert packed.edges == plain.edges


def test_fields_in_any_order_and_unknown_ones_do_no_harm(tmp_path: Path) -> None:
    backwards = field(7, 12) + field(3, 4) + field(2, "late") + field(17, 99) + field(1, 5)

    reading = read_chakra(framed(*NODES, backwards), tmp_path)

    assert reading.nodes[-1]["name"] == "late"
    assert reading.nodes[-1]["duration_ns"] == 12_000
    assert [issue.code for issue in reading.summary.issues] == ["chakra_unknown_field"]


@pytest.mark.parametrize("kind", sorted(set(SCALARS) - {"bytes"}))
def test_a_number_counts_whatever_type_its_writer_chose(kind: str, tmp_path: Path) -> None:
    value: object = {"bool": True, "string": "1", "double": 1.0, "float": 1.0}.get(kind, 1)
    marked = [attribute("is_cpu_op", kind, value), attribute("stream", kind, value), attribute("num_ops", kind, value)]

    row = read_chakra(framed(*NODES, node(9, "op", attributes=marked)), tmp_path).nodes[-1]

    assert (row["is_cpu"], row["stream"], row["operation_count"]) == (True, 1, 1)


@given(
    kind=st.sampled_from(["int64", "sint64", "sfixed64", "int32", "sint32", "sfixed32"]),
    value=st.integers(-(2**31), 2**31 - 1),
)
def test_signed_numbers_are_read_exactly(kind: str, value: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    content = framed(LAUNCH, node(9, "op", attributes=[attribute("tensor_size", kind, value)]))

    row = read_chakra(content, tmp_path_factory.mktemp("signed")).nodes[-1]

    assert row["tensor_bytes"] == value


@pytest.mark.parametrize("kind", ["uint64", "fixed64"])
def test_a_number_too_large_for_its_column_is_counted(kind: str, tmp_path: Path) -> None:
    big = node(9, "op", attributes=[attribute("tensor_size", kind, 2**64 - 1)])

    reading = read_chakra(framed(*NODES, big), tmp_path)

    assert reading.nodes[-1]["tensor_bytes"] is None
    assert reading.issue("chakra_out_of_range").count == 1


@pytest.mark.parametrize(
    ("kind", "values", "shown"),
    [
        ("int64", [1, -2, 3], [1, -2, 3]),
        ("sint32", [-1, 2], [-1, 2]),
        ("double", [0.5, 2.0], [0.5, 2.0]),
        ("fixed32", [7, 8], [7, 8]),
        ("bool", [True, False], [True, False]),
        ("string", ["a", "b"], ["a", "b"]),
        ("bytes", [b"\x00\xff"], ["00ff"]),
        ("uint64", 5, 5),
        ("float", 0.5, 0.5),
        ("bytes", b"\x01", "01"),
        ("string", "dp<script>", "dp<script>"),
    ],
)
def test_attributes_without_a_column_are_kept_as_json(kind: str, values: object, shown: object, tmp_path: Path) -> None:
    reading = read_chakra(
        framed(*NODES, node(9, "op", attributes=[attribute("note", kind, values)])), tmp_path, keep_all_args=True
    )

    (row,) = [row for row in reading.rows("attribute") if row["name"] == "note"]
    assert json.loads(row["value"]) == shown


def test_communication_is_told_by_type_whatever_the_collective_is_called(tmp_path: Path) -> None:
    groups = [attribute("comm_type", "int64", 6), attribute("pg_name", "string", "ep")]
    send = node(6, "p2p", 5, attributes=[attribute("comm_dst", "int32", 3), attribute("comm_tag", "int32", 9)])

    rows = read_chakra(framed(*NODES, node(5, "exchange", 7, attributes=groups), send), tmp_path).rows("communication")

    assert [(row["collective_name"], row["process_group_name"], row["in_bytes"]) for row in rows] == [
        ("all_reduce", None, 4096),
        ("all_to_all", "ep", None),
        ("send", None, None),
    ]
    assert (rows[2]["destination_rank"], rows[2]["tag"]) == (3, 9)


def test_bytes_follow_from_the_input_tensors_where_none_are_stated(tmp_path: Path) -> None:
    tensors = ("[[131, 132, 0, 1024, 2, 'cuda:0']]", "[[1024]]", "['Tensor(c10::Half)']")

    rows = read_chakra(framed(*NODES, node(5, "c", 7, inputs=tensors)), tmp_path).rows("communication")

    assert (rows[-1]["in_bytes"], rows[-1]["dtype"]) == (2048, "c10::Half")


@pytest.mark.parametrize(("stated", "issues"), [(2048, []), (2040, ["chakra_size_contradicted"])])
def test_a_stated_size_that_is_not_that_of_the_tensors_is_said(stated: int, issues: list[str], tmp_path: Path) -> None:
    tensors = ("[[131, 132, 0, 1024, 2, 'cuda:0']]", "[[1024]]", "['Tensor(c10::Half)']")
    said = [attribute("comm_type", "int64", 0), attribute("comm_size", "int64", stated)]

    reading = read_chakra(framed(*NODES, node(5, "c", 7, inputs=tensors, attributes=said)), tmp_path)

    assert [issue.code for issue in reading.summary.issues] == issues
    assert reading.rows("communication")[-1]["in_bytes"] == stated


@pytest.mark.parametrize(("on_host", "code"), [(True, "host_communication"), (False, "unknown_collective")])
def test_a_collective_that_does_not_say_which_counts_by_where_it_runs(on_host: bool, code: str, tmp_path: Path) -> None:
    place = [attribute("is_cpu_op", "bool", on_host)]

    (issue,) = read_chakra(framed(*NODES, node(5, "c", 7, attributes=place)), tmp_path).summary.issues

    assert (issue.code, issue.first_at) == (f"chakra_{code}", "node 4")


def test_traces_of_before_2023_08_are_refused_with_a_reason(tmp_path: Path) -> None:
    # v0.0.2: 4 is the parent, 5 to 10 are texts, 11 are attributes.
    old = [field(1, n) + field(2, "op") + field(3, 3) + field(4, 1) + field(11, field(1, "x")) for n in range(1, 5)]

    with pytest.raises(InputUnusableError, match="before August 2023"):
        read_chakra(framed(*old), tmp_path)


def test_two_traces_in_one_file_are_two_parts(tmp_path: Path) -> None:
    content = framed(metadata("0.0.4"), *NODES, metadata("0.0.4"), *NODES)

    reading = read_chakra(content, tmp_path)

    assert [row["part"] for row in reading.nodes] == [0] * 4 + [1] * 4
    assert "chakra_second_trace" in reading.codes
