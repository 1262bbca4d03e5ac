"""Communication in exported Chakra traces, as simulators take it: kinds, sizes, groups by number, peers."""

import ast
import json
from pathlib import Path
from typing import Any

from tests.export.decoding import fields, messages, node
from tests.given import US, Trace, built, store_of
from tests.graph.recordings import add_execution_trace, operation
from traceforge.export.chakra import export_chakra
from traceforge.store.database import Store

Nodes = list[dict[str, Any]]
LIST = "## process_group:init ##"
INT32 = 7


def written(store: Store, folder: Path) -> list[list[bytes]]:
    """Messages of the nodes of each file."""
    return [messages(file.path.read_bytes())[1:] for file in export_chakra(built(store), 0, folder, "job")]


def exported(store: Store, folder: Path) -> list[Nodes]:
    return [[node(message) for message in file] for file in written(store, folder)]


def listed(nodes: Nodes) -> dict[str, tuple[str | None, list[int]]]:
    """Description and ranks by name, of the list read as simulators do: what lies within the quotes is JSON."""
    (inputs,) = (one["inputs"] for one in nodes if one["name"] == LIST)
    assert (inputs[:2], inputs[-2:]) == ("['", "']")
    assert json.loads(inputs[2:-2]) == json.loads(ast.literal_eval(inputs)[0])
    return {one["pg_name"]: (one["pg_desc"], one["ranks"]) for one in json.loads(inputs[2:-2])}


def call(place: int, **columns: object) -> dict[str, object]:
    return {"position": place, "collective_name": "all_reduce", "in_bytes": 64, **columns}


def test_groups_that_are_named_by_words_get_free_numbers_the_same_on_all_ranks(tmp_path: Path) -> None:
    # given ranks 0 and 1, which share dp and group 7, and rank 1's own group of tp
    store = store_of()
    kind = {"name": "n", "node_type": "COMM_COLL", "is_cpu": False}
    members = {"dp": [0, 1], "7": [0, 1], "tp": [1, 2]}
    for rank, names in enumerate((("dp", "7"), ("7", "dp", "tp"))):
        calls = [call(place, process_group_name=name, group_size=2) for place, name in enumerate(names)]
        groups = [{"process_group_name": name, "size": 2, "ranks": members[name]} for name in names]
        file = {"format": "chakra_et"}
        add_execution_trace(store, [kind] * len(names), calls=calls, groups=groups, rank=rank, file=file)

    first, second = exported(store, tmp_path)

    assert [one["attributes"]["pg_name"] for one in first if one["type"] == 7] == ["8", "7"]
    assert [one["attributes"]["pg_name"] for one in second if one["type"] == 7] == ["7", "8", "9"]
    assert listed(first) == {"7": (None, [0, 1]), "8": ("dp", [0, 1])}
    assert listed(second) == {"7": (None, [0, 1]), "8": ("dp", [0, 1]), "9": ("tp", [1, 2])}


def test_a_group_whose_members_nobody_states_is_not_listed_and_hides_no_other(tmp_path: Path) -> None:
    store = store_of()
    groups = [
        {"process_group_name": "0", "size": None, "ranks": None},
        {"process_group_name": "1", "size": 2, "ranks": [0, 1]},
    ]
    add_execution_trace(store, [{"name": "n", "is_cpu": False}], groups=groups, file={"format": "chakra_et"})

    (nodes,) = exported(store, tmp_path)

    assert listed(nodes) == {"1": (None, [0, 1])}


def test_the_list_of_groups_has_the_lowest_id_so_that_it_is_read_before_any_call(tmp_path: Path) -> None:
    store = store_of()
    kind = {"name": "n", "node_type": "COMM_COLL", "is_cpu": False}
    add_execution_trace(store, [kind, kind], calls=[call(0), call(1)], file={"format": "chakra_et"})

    (nodes,) = exported(store, tmp_path)

    assert [(one["id"], one["name"]) for one in nodes] == [(1, LIST), (2, "n"), (3, "n")]


def test_messages_say_peers_and_tag_as_integers_of_32_bits(tmp_path: Path) -> None:
    # Readers take these, and only these, from the field for int32.
    store = store_of()
    kinds = [{"name": kind, "node_type": f"COMM_{kind}", "is_cpu": False} for kind in ("SEND", "RECV")]
    ends = {"source_rank": 0, "destination_rank": 3}
    calls = [
        call(0, collective_name="send", tag=5, **ends),
        call(1, collective_name="recv", source_rank=3, destination_rank=0),
    ]
    add_execution_trace(store, kinds, calls=calls, file={"format": "chakra_et"})

    ((_, send, receive),) = written(store, tmp_path)

    found = [node(message) for message in (send, receive)]
    assert [one["type"] for one in found] == [5, 6]
    said = [{k: v for k, v in one["attributes"].items() if k.startswith("comm_")} for one in found]
    assert said == [
        {"comm_size": 64, "comm_src": 0, "comm_dst": 3, "comm_tag": 5},
        {"comm_size": 64, "comm_src": 3, "comm_dst": 0, "comm_tag": 0},
    ]
    attributes = [dict(fields(value)) for number, value in fields(send) if number == 10 and isinstance(value, bytes)]
    assert {one[1] for one in attributes if INT32 in one} == {b"comm_src", b"comm_dst", b"comm_tag"}


def test_an_operation_of_the_host_that_does_not_say_what_it_does_is_no_collective(tmp_path: Path) -> None:
    # Chakra's converter types c10d::broadcast_ so; the kernel that it launches says kind and size.
    store = store_of()
    kind = {"name": "c10d::broadcast_", "node_type": "COMM_COLL", "is_cpu": True}
    add_execution_trace(store, [kind], calls=[call(0, collective_name=None)], file={"format": "chakra_et"})

    ((_, found),) = exported(store, tmp_path)

    assert (found["type"], found["attributes"]["is_cpu_op"]) == (4, True)


def test_collectives_of_jobs_without_devices_are_calls_with_size_and_group(tmp_path: Path) -> None:
    #   thread 1  |mm 0 – 40||c10d::allreduce_ 40 – 50|
    #   thread 2                      |gloo:all_reduce 45 – 200|
    store = store_of(*(gloo_rank(rank) for rank in range(2)))
    names = ("aten::mm", "c10d::allreduce_", "gloo:all_reduce")
    groups = [{"process_group_name": "0", "description": "default_pg", "size": 2, "ranks": []}]
    for rank in range(2):
        edges = [{"from_node_id": 1, "to_node_id": 2, "kind": "parent", "origin": "parent"}]
        nodes = [operation(name, place) for place, name in enumerate(names, 1)]
        add_execution_trace(store, nodes, edges=edges, groups=groups, rank=rank)

    for nodes in exported(store, tmp_path):
        (reduce,) = (one for one in nodes if one["type"] == 7)
        said = {name: reduce["attributes"][name] for name in ("is_cpu_op", "comm_type", "pg_name")}
        assert said == {"is_cpu_op": False, "comm_type": 0, "pg_name": "0"}
        assert (reduce["start_us"], reduce["duration_us"]) == (45, 155)
        by_id = {one["id"]: one for one in nodes}
        assert [by_id[other]["name"] for other in reduce["data"]] == ["c10d::allreduce_"]


def gloo_rank(rank: int) -> Trace:
    trace = Trace(rank, groups=[("0", "default_pg", (0, 1))]).step(1, 0, 250 * US)
    trace.event("cpu_op", "aten::mm", 0, 40 * US, record_function_id=1)
    trace.event("cpu_op", "c10d::allreduce_", 40 * US, 50 * US, record_function_id=2)
    return trace.event("user_annotation", "gloo:all_reduce", 45 * US, 200 * US, track_id=9, record_function_id=3)
