"""PyTorch's own execution traces: every schema to the same rows, and what their writer breaks is mended or counted."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sources.execution_trace import TraceReading, read_pytorch_et
from traceforge.errors import InputUnusableError

TENSOR = [131, 132, 0, 1024, 2, "cuda:0"]


def trace(nodes: list[dict[str, Any]], schema: str | None = "1.1.1-chakra.0.0.4") -> dict[str, Any]:
    head = {} if schema is None else {"schema": schema}
    return {**head, "pid": 7, "time": "2026-01-01 00:00:00", "start_ts": 5, "nodes": nodes, "finish_ts": 9}


def flat(node_id: int, name: str, parent: int, rf_id: int, **fields: object) -> dict[str, Any]:
    """A node as of 1.0.1."""
    lists = ("inputs", "input_shapes", "input_types", "outputs", "output_shapes", "output_types")
    numbers = {"fw_parent": 0, "seq_id": -1, "scope": 0, "tid": 1, "fw_tid": 0, "op_schema": ""}
    base = {"name": name, "id": node_id, "rf_id": rf_id, "parent": parent, **numbers, **{key: [] for key in lists}}
    return {**base, **fields}


def nested(node_id: int, name: str, parent: int, rf_id: int, *, values: object = (), **attributes: object) -> Any:
    """A node since 1.0.2."""
    stated = {"rf_id": rf_id, "fw_parent": 0, "seq_id": -1, "scope": 0, "tid": 1, "fw_tid": 0, "op_schema": ""}
    return {
        "id": node_id,
        "name": name,
        "ctrl_deps": parent,
        "inputs": {"values": values, "shapes": [[1024]], "types": ["Tensor(c10::Half)"]},
        "outputs": {"values": [], "shapes": [], "types": []},
        "attrs": [{"name": key, "type": "int", "value": value} for key, value in {**stated, **attributes}.items()],
    }


def communication(reading: TraceReading) -> dict[str, Any]:
    (row,) = reading.rows("communication")
    return dict(row)


def test_flat_nodes_of_1_0_1_and_nested_ones_since_1_0_2_are_the_same_rows(tmp_path: Path) -> None:
    old = trace([flat(3, "aten::mm", 2, 11), flat(2, "step", 1, 10), flat(1, "process", 1, 0)], "1.0.1")
    new = trace([nested(3, "aten::mm", 2, 11), nested(2, "step", 1, 10), nested(1, "process", 1, 0)])

    first, second = read_pytorch_et(old, tmp_path), read_pytorch_et(new, tmp_path)

    assert first.nodes == second.nodes
    assert first.edges == second.edges == [(2, 3, "parent"), (1, 2, "parent")]
    assert [row["rf_id"] for row in first.nodes] == [11, 10, 0]
    assert first.summary.issues == second.summary.issues == ()


@pytest.mark.parametrize(
    "schema",
    [
        *("1.0.1", "1.0.2-chakra.0.0.4", "1.0.3-chakra.0.0.4", "1.0.4-chakra.0.0.4", "1.1.0-chakra.0.0.4"),
        *("1.1.1-chakra.0.0.4", "1.1.1-chakra.1.0.0"),
    ],
)
def test_known_schemas_raise_no_question(schema: str, tmp_path: Path) -> None:
    reading = read_pytorch_et(trace([nested(2, "step", 1, 10)], schema), tmp_path)

    assert reading.rows("file")[0]["schema_version"] == schema
    assert reading.summary.issues == ()


@pytest.mark.parametrize(
    ("schema", "code"), [("1.2.0-chakra.9", "pytorch_et_unknown_schema"), (None, "pytorch_et_no_schema")]
)
def test_an_unknown_schema_is_read_and_said_aloud(schema: str | None, code: str, tmp_path: Path) -> None:
    reading = read_pytorch_et(trace([nested(2, "step", 1, 10)], schema), tmp_path)

    assert reading.ids == [2]
    assert reading.codes == [code]


def test_before_1_1_0_a_call_is_read_by_the_places_of_its_inputs(tmp_path: Path) -> None:
    # tensors, sequence, group handle, rank, name, splits sent, splits received, group size
    values = [[TENSOR], 85, 94_000, 3, "allreduce", [], [], 8]
    types = ["GenericList[Tensor(c10::Half)]", "Int", "Int", "Int", "String", "GenericList[]", "GenericList[]", "Int"]
    node = flat(9, "record_param_comms", 1, 4, inputs=values, input_types=types, input_shapes=[[[1024]], *[[]] * 7])

    row = communication(read_pytorch_et(trace([node], "1.0.1"), tmp_path))

    assert (row["collective_name"], row["sequence"], row["process_group_handle"]) == ("allreduce", 85, 94_000)
    assert (row["group_rank"], row["group_size"], row["in_bytes"], row["dtype"]) == (3, 8, 2048, "c10::Half")


def test_a_wait_moves_nothing_and_names_its_call_by_sequence(tmp_path: Path) -> None:
    node = flat(9, "record_param_comms", 1, 4, inputs=[85, 94_000, 3, "wait", [], [], 8])

    row = communication(read_pytorch_et(trace([node], "1.0.1"), tmp_path))

    assert (row["is_wait"], row["sequence"], row["in_bytes"]) == (True, 85, None)


def test_since_1_1_0_attributes_count_more_than_places(tmp_path: Path) -> None:
    values = [[TENSOR], 4, ["0", "default_pg"], 1, "all_to_allv", [1, 3], [2, 2], 0, 1, 2]
    node = nested(
        *(9, "record_param_comms", 1, 4),
        values=values,
        collective_name="all_to_allv",
        pg_name="7",
        pg_desc="ep",
        pg_size=2,
        dtype="Half",
        in_msg_nelems=1024,
        in_split_size="[1,3]",
        out_split_size="[2,2]",
    )

    row = communication(read_pytorch_et(trace([node]), tmp_path))

    assert (row["process_group_name"], row["process_group_description"], row["group_size"]) == ("7", "ep", 2)
    assert (row["in_split_sizes"], row["out_split_sizes"]) == ([1, 3], [2, 2])
    assert (row["in_elements"], row["dtype"], row["global_rank_stride"]) == (1024, "Half", 1)


@pytest.mark.parametrize(("stated", "codes"), [(1024, []), (1000, ["pytorch_et_size_contradicted"])])
def test_a_stated_size_that_is_not_that_of_the_tensors_is_said(stated: int, codes: list[str], tmp_path: Path) -> None:
    values = [[TENSOR], 85, 94_000, 3, "allreduce", [], [], 8]
    types = ["GenericList[Tensor(c10::Half)]", "Int", "Int", "Int", "String", "GenericList[]", "GenericList[]", "Int"]
    node = nested(9, "record_param_comms", 1, 4, values=values, in_msg_nelems=stated)
    node["inputs"] = {"values": values, "shapes": [[[1024]], *[[]] * 7], "types": types}

    assert read_pytorch_et(trace([node]), tmp_path).codes == codes


def test_members_of_process_groups_are_read_from_the_node_that_lists_them(tmp_path: Path) -> None:
    listed = json.dumps(
        [
            {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "ranks": [], "group_size": 4},
            {"pg_name": "1", "pg_desc": "dp", "backend_config": "cuda:nccl", "ranks": [1, 3], "group_size": 2},
        ]
    )
    reading = read_pytorch_et(trace([nested(2, "## process_group:init ##", 1, 3, values=[listed])]), tmp_path)

    groups = [(row["process_group_name"], row["ranks"], row["size"]) for row in reading.rows("process_group")]
    assert groups == [("0", [], 4), ("1", [1, 3], 2)]
    assert reading.summary.world_size == 4


def test_times_of_an_et_plus_keep_their_nanoseconds(tmp_path: Path) -> None:
    host = {**nested(2, "launch", 1, 3), "ts": 1_700_000_000_000_000.123, "inclusive_dur": 5.5, "exclusive_dur": 2}
    text = json.dumps(trace([host])).replace("1700000000000000.0", "1700000000000000.123")
    kernel = {**nested(3, "gemm", 2, 3), "cat": "kernel", "stream": 7, "ts": 20, "exclusive_dur": 1, "sync_dep": [2]}
    content = text.replace('"nodes": [', f'"nodes": [{json.dumps(kernel)}, ').encode()

    reading = read_pytorch_et(content, tmp_path)

    device, launch = reading.nodes
    assert (launch["raw_start_ns"], launch["duration_ns"], launch["is_cpu"]) == (1_700_000_000_000_000_123, 5_500, True)
    assert (device["raw_start_ns"], device["stream"], device["is_cpu"]) == (20_000, 7, False)
    assert (2, 3, "sync") in reading.edges
    assert reading.rows("file")[0]["format"] == "pytorch_et_plus"


def test_a_name_that_was_not_escaped_costs_nothing(tmp_path: Path) -> None:
    nodes = [nested(number, f"op{number}", 1, number) for number in range(2, 6)]
    content = json.dumps(trace(nodes), indent=1).encode().replace(b'"op3"', b'"lambda "x" \\d"')

    reading = read_pytorch_et(content, tmp_path)

    assert reading.ids == [2, 3, 4, 5]
    assert reading.nodes[1]["name"] == 'lambda "x" \\d'
    assert reading.issue("pytorch_et_repaired_node").count == 1


def test_a_job_that_died_leaves_a_list_without_end_which_is_read_and_said(tmp_path: Path) -> None:
    content = json.dumps(trace([nested(2, "a", 1, 1), nested(3, "b", 1, 2)])).encode()
    content = content[: content.index(b'], "finish_ts"')] + b","

    reading = read_pytorch_et(content, tmp_path)

    assert reading.ids == [2, 3]
    assert "pytorch_et_unfinished" in reading.codes
    assert not reading.rows("file")[0]["is_complete"]


@pytest.mark.parametrize("rf_id", ["12", 12.0, [12], None, "twelve", 2**70])
def test_a_value_of_another_type_costs_at_most_itself(rf_id: object, tmp_path: Path) -> None:
    nodes = [nested(2, "a", 1, 1), {**flat(3, "b", 1, 2), "rf_id": rf_id}, nested(4, "c", 1, 3)]

    reading = read_pytorch_et(trace(nodes), tmp_path)

    assert reading.ids == [2, 3, 4]
    assert reading.nodes[1]["rf_id"] in (12, None)
    assert reading.is_accounted


def test_an_observer_started_twice_makes_two_parts(tmp_path: Path) -> None:
    once = json.dumps(trace([nested(2, "a", 1, 1)])).encode()

    reading = read_pytorch_et(once + once, tmp_path)

    assert [row["part"] for row in reading.nodes] == [0, 1]
    assert "pytorch_et_second_trace" in reading.codes


NODES = [nested(number, f"aten::op{number}", 1, number, values=[[TENSOR]]) for number in range(2, 30)]
TEXTS = {indent: json.dumps(trace(NODES), indent=indent).encode() for indent in (None, 4)}


@given(indent=st.sampled_from([None, 4]), cut=st.integers(80, len(TEXTS[None]) - 1))
def test_a_cut_file_gives_the_nodes_before_the_cut(
    indent: int | None, cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = TEXTS[indent][:cut]
    try:
        reading = read_pytorch_et(content, tmp_path_factory.mktemp("cut"))
    except InputUnusableError:
        assert content.count(b'"id"') <= 1
        return
    assert reading.ids == list(range(2, 2 + len(reading.ids)))
    assert len(reading.ids) >= content.count(b'"id"') - 1
    assert reading.is_accounted


@given(place=st.integers(90, len(TEXTS[None]) - 1), byte=st.integers(0, 255))
def test_one_wrong_byte_costs_little_and_is_counted(
    place: int, byte: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = TEXTS[None][:place] + bytes([byte]) + TEXTS[None][place + 1 :]

    reading = read_pytorch_et(content, tmp_path_factory.mktemp("byte"))

    assert reading.is_accounted
    assert len(reading.nodes) >= len(NODES) - 2


def test_two_damaged_nodes_are_two_nodes(tmp_path: Path) -> None:
    # given nodes whose texts hold half a character, the first with a value of another type as well
    first, second = nested(2, "a", 1, 1), nested(3, "b", 1, 2)
    for node in (first, second):
        node["attrs"][3]["type"] = "\ud800"
    first["attrs"].append("-1")

    reading = read_pytorch_et(json.dumps(trace([first, second])).encode(), tmp_path)

    assert reading.summary.event_count == 2
    assert reading.summary.stored_count + sum(issue.lost_events for issue in reading.summary.issues) == 2
    assert "pytorch_et_unfinished" not in reading.codes
