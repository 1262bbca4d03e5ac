"""Host threads of exported Chakra traces: whose time is what, and what goes on from what. Times in us."""

from pathlib import Path
from typing import Any

from tests.export.decoding import longest_path_us, messages, node
from tests.given import US, Trace, built, store_of
from tests.graph.recordings import add_execution_trace, operation
from traceforge.export.chakra import export_chakra

Nodes = list[dict[str, Any]]
PAUSE = "traceforge::host_pause"


def exported(folder: Path, trace: Trace, callers: dict[str, str] | None = None) -> Nodes:
    """Timed nodes of a rank whose host operations and annotations are all recorded; callers by name of the callee."""
    names = [str(e["name"]) for e in trace.events if e["category"] in ("cpu_op", "user_annotation")]
    store = store_of(trace)
    edges = [
        {"from_node_id": names.index(caller), "to_node_id": names.index(called), "kind": "parent", "origin": "parent"}
        for called, caller in (callers or {}).items()
    ]
    add_execution_trace(store, [operation(name, place) for place, name in enumerate(names, 1)], edges=edges)
    (file,) = export_chakra(built(store), 0, folder, "job")
    nodes = [node(message) for message in messages(file.path.read_bytes())[1:]]
    return [one for one in nodes if one["name"] != "## process_group:init ##"]


def host(*rows: tuple[str, int, int, int]) -> Trace:
    """A rank of host operations: name, start, end, thread; names in capitals are annotations."""
    trace = Trace(0)
    for place, (name, start, end, track) in enumerate(rows, 1):
        kind = "user_annotation" if name.isupper() else "cpu_op"
        trace.event(kind, name, start * US, end * US, track_id=track, record_function_id=place)
    return trace


def spans(nodes: Nodes) -> list[tuple[str, int, int]]:
    """Name, start and end of each node."""
    return [(one["name"], one["start_us"], one["start_us"] + one["duration_us"]) for one in nodes]


def followed(nodes: Nodes) -> dict[str, set[str]]:
    """Names of what a node depends on, by its own name and start."""
    by_id = {one["id"]: one for one in nodes}
    return {f"{one['name']} {one['start_us']}": {by_id[other]["name"] for other in one["data"]} for one in nodes}


def test_what_an_operation_does_after_its_callee_is_of_its_name_and_only_the_rest_a_pause(tmp_path: Path) -> None:
    #   |linear 1 – 40: |mm 3 – 30: |empty 5 – 8|      |       |     |add 45 – 50|
    nodes = exported(tmp_path, host(("linear", 1, 40, 1), ("mm", 3, 30, 1), ("empty", 5, 8, 1), ("add", 45, 50, 1)))

    assert spans(nodes) == [
        ("linear", 1, 3),
        ("mm", 3, 5),
        ("empty", 5, 8),
        ("mm", 8, 30),
        ("linear", 30, 40),
        (PAUSE, 40, 45),
        ("add", 45, 50),
    ]
    assert longest_path_us(nodes) == 49


def test_operations_that_end_together_and_such_without_duration_leave_no_time_out(tmp_path: Path) -> None:
    nodes = exported(tmp_path, host(("outer", 1, 30, 1), ("mark", 5, 5, 1), ("inner", 10, 30, 1), ("last", 30, 31, 1)))

    assert spans(nodes) == [("outer", 1, 5), ("mark", 5, 5), ("outer", 5, 10), ("inner", 10, 30), ("last", 30, 31)]


def test_an_operation_keeps_its_time_while_another_thread_works(tmp_path: Path) -> None:
    nodes = exported(tmp_path, host(("mm", 1, 300, 1), ("empty", 2, 3, 1), ("other", 2, 200, 2), ("add", 300, 310, 1)))

    assert [one for one in spans(nodes) if one[0] == "mm"] == [("mm", 1, 2), ("mm", 3, 300)]


def test_an_annotation_that_waits_for_another_thread_goes_on_when_that_has_ended(tmp_path: Path) -> None:
    #   thread 1  |STEP 1 – 350: |forward 10 – 20|                                      |step 320 – 330|
    #   thread 2                                   |backward 100 – 300|
    rows = (("STEP", 1, 350, 1), ("forward", 10, 20, 1), ("backward", 100, 300, 2), ("step", 320, 330, 1))
    nodes = exported(tmp_path, host(*rows))

    assert spans(nodes) == [
        ("STEP", 1, 10),
        ("forward", 10, 20),
        ("STEP", 20, 100),
        ("backward", 100, 300),
        ("STEP", 300, 320),
        ("step", 320, 330),
        ("STEP", 330, 350),
    ]
    assert longest_path_us(nodes) == 349


def test_what_runs_on_a_silent_thread_follows_the_part_of_its_caller_that_precedes_it(tmp_path: Path) -> None:
    #   thread 1  |mm 1 – 90| |allreduce 90 – 110|
    #   thread 2                    |work 95 – 200|
    rows = (("mm", 1, 90, 1), ("allreduce", 90, 110, 1), ("work", 95, 200, 2))
    nodes = exported(tmp_path, host(*rows), {"work": "allreduce"})

    assert spans(nodes) == [("mm", 1, 90), ("allreduce", 90, 95), ("work", 95, 200), ("allreduce", 95, 110)]
    assert followed(nodes)["work 95"] == {"allreduce"}
    assert longest_path_us(nodes) == 199


def test_a_recorded_caller_that_the_times_contradict_is_no_dependency(tmp_path: Path) -> None:
    # PyTorch takes an asynchronous collective for the caller of what its thread does next.
    rows = (("mm", 1, 90, 1), ("work", 50, 300, 2), ("relu", 92, 95, 1))
    nodes = exported(tmp_path, host(*rows), {"relu": "work", "mm": "work"})

    assert not any(one["control"] for one in nodes)
    assert longest_path_us(nodes) == 250


def test_a_copy_that_its_call_waits_for_counts_once_and_the_call_goes_on_behind_it(tmp_path: Path) -> None:
    #   host      |copy_ 1 – 25: |cudaMemcpy 2 – 22|     |  |mm 28 – 40|
    #   stream 7                    |copy 6 – 20|
    trace = host(("copy_", 1, 25, 1), ("mm", 28, 40, 1))
    trace.event("cuda_runtime", "cudaMemcpy", 2 * US, 22 * US, track_id=1, correlation=71)
    trace.event("gpu_memcpy", "Memcpy DtoH", 6 * US, 20 * US, track_id=3, stream=7, correlation=71)
    nodes = exported(tmp_path, trace)

    assert spans(nodes) == [
        ("copy_", 1, 2),
        ("cudaMemcpy", 2, 6),
        ("Memcpy DtoH", 6, 20),
        ("cudaMemcpy", 20, 22),
        ("copy_", 22, 25),
        (PAUSE, 25, 28),
        ("mm", 28, 40),
    ]
    assert longest_path_us(nodes) == 39
