"""JSON of rocprofv3 becomes the events that Kineto would have written; names come from the file's own tables."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sources.reading import Reading
from traceforge.errors import InputUnusableError
from traceforge.records import Batch, ReadOptions
from traceforge.sources.rocprof import RocprofSource

OPERATIONS = [
    {"kind": "NONE", "operations": []},
    {"kind": "HIP_RUNTIME_API", "operations": ["hipFree", "hipLaunchKernel"]},
    {"kind": "MEMORY_COPY", "operations": ["MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_DEVICE"]},
    {"kind": "MARKER_CORE_API", "operations": ["roctxMarkA"]},
]
GPU = {"id": {"handle": 40}, "type": 2, "product_name": "AMD Instinct MI350X", "cu_count": 256,
       "mem_banks": [{"size_in_bytes": 64}]}  # fmt: skip
CPU = {"id": {"handle": 39}, "type": 1, "product_name": "CPU"}


def record(start: object, end: object, correlation: int = 1, **fields: object) -> dict[str, object]:
    plain = {"thread_id": 9, "correlation_id": {"internal": correlation}}
    return {"start_timestamp": start, "end_timestamp": end, **plain, **fields}


def dispatch(start: object, end: object, **fields: object) -> dict[str, object]:
    info = {"agent_id": {"handle": 40}, "queue_id": {"handle": 3}, "kernel_id": 7}
    return record(start, end, dispatch_info=info, **fields)


def process(pid: int = 908, **records: list[Any]) -> dict[str, object]:
    return {
        "metadata": {"pid": pid, "node": {"hostname": "node7"}},
        "agents": [CPU, GPU],
        "kernel_symbols": [{"kernel_id": 7, "formatted_kernel_name": "gemm(float*)", "kernel_name": "_Z4gemm.kd"}],
        "strings": {"buffer_records": OPERATIONS, "marker_api": [{"key": 5, "value": "step 3"}]},
        "buffer_records": records,
    }


def read(path: Path, *processes: dict[str, object], part: str | None = None) -> Reading:
    file = path / "908_results.json"
    file.write_text(json.dumps({"rocprofiler-sdk-tool": processes}))
    batches: list[Batch] = []
    return Reading(RocprofSource().read(file, batches.append, ReadOptions(part=part)), batches)


def test_a_dispatch_is_a_kernel_joined_to_its_launch(tmp_path: Path) -> None:
    reading = read(
        tmp_path,
        process(hip_api=[record(100, 110, kind=1, operation=1)], kernel_dispatch=[dispatch(150, 190)]),
    )

    assert [
        (e["category"], e["name"], e["raw_start_ns"], e["duration_ns"], e["correlation"]) for e in reading.events
    ] == [
        ("cuda_runtime", "hipLaunchKernel", 100, 10, 1),
        ("kernel", "gemm(float*)", 150, 40, 1),
    ]
    assert (reading.events[1]["device"], reading.events[1]["stream"]) == (0, 3)
    assert reading.summary.host == "node7"


def test_a_name_that_is_no_utf_8_costs_itself_and_is_said(tmp_path: Path) -> None:
    # given a kernel's name of which two bytes are no text
    text = json.dumps({"rocprofiler-sdk-tool": [process(kernel_dispatch=[dispatch(150, 190)])]}).encode()
    file = tmp_path / "908_results.json"
    file.write_bytes(text.replace(b"gemm(float*)", b"gemm\xff\xfe"))

    batches: list[Batch] = []
    reading = Reading(RocprofSource().read(file, batches.append, ReadOptions()), batches)

    assert [e["name"] for e in reading.events] == ["gemm\ufffd\ufffd"]
    assert "rocprof_invalid_utf8" in {issue.code for issue in reading.summary.issues}


def test_copies_and_markers_have_their_names(tmp_path: Path) -> None:
    copy = record(1, 3, kind=2, operation=1, bytes=64, dst_agent_id={"handle": 40}, src_agent_id={"handle": 39})

    reading = read(tmp_path, process(memory_copy=[copy], marker_api=[record(0, 9, 5, kind=3, operation=0)]))

    said = {(e["category"], e["name"], e["size_bytes"], e["device"]) for e in reading.events}
    assert said == {("gpu_memcpy", "Memcpy HtoD", 64, 0), ("user_annotation", "step 3", None, None)}


def test_a_marker_of_pytorch_is_an_operation_by_its_plain_name(tmp_path: Path) -> None:
    marked = process(marker_api=[record(0, 9, 5, kind=3, operation=0), record(0, 9, 6, kind=3, operation=0)])
    texts = [{"key": 5, "value": "aten::mm, seq = 3, op_id = 17"}, {"key": 6, "value": "load, then train"}]
    marked["strings"] = {"buffer_records": OPERATIONS, "marker_api": texts}

    reading = read(tmp_path, marked)

    assert [(e["category"], e["name"]) for e in reading.events] == [
        ("cpu_op", "aten::mm"),
        ("user_annotation", "load, then train"),
    ]


def test_the_device_is_the_one_that_was_used(tmp_path: Path) -> None:
    (profile,) = read(tmp_path, process(kernel_dispatch=[dispatch(1, 2)])).rows("profile")

    assert profile["device_name"] == "AMD Instinct MI350X"
    assert json.loads(profile["metadata"])["deviceProperties"][0]["totalGlobalMem"] == 64


def test_each_process_of_a_file_is_a_part(tmp_path: Path) -> None:
    both = [process(7, kernel_dispatch=[dispatch(1, 2)]), process(8, kernel_dispatch=[dispatch(3, 4)])]

    second = read(tmp_path, *both, part="process 8")

    assert RocprofSource().parts(tmp_path / "908_results.json") == ["process 7", "process 8"]
    assert [event["raw_start_ns"] for event in second.events] == [3]


def test_processes_of_one_number_are_told_apart(tmp_path: Path) -> None:
    both = [process(1, kernel_dispatch=[dispatch(1, 2)]), process(1, kernel_dispatch=[dispatch(3, 4)])]

    second = read(tmp_path, *both, part="process 1 #2")

    assert RocprofSource().parts(tmp_path / "908_results.json") == ["process 1", "process 1 #2"]
    assert [event["raw_start_ns"] for event in second.events] == [3]


def test_odd_times_cost_one_record_and_unread_lists_are_counted(tmp_path: Path) -> None:
    # given a record that ends before it starts, two beyond 64 bits, one that is a text, one without times, page faults
    odd = [dispatch(9, 4), dispatch(2**70, 7), dispatch(7, 2**70), dispatch("soon", 7), {"kind": 11}, dispatch(10, 11)]

    reading = read(tmp_path, process(kernel_dispatch=odd, kfd_page_fault=[{}, {}]))

    assert [(e["raw_start_ns"], e["duration_ns"]) for e in reading.events] == [(9, 0), (10, 1)]
    assert (reading.summary.event_count, reading.summary.stored_count) == (6, 2)
    assert reading.issue("rocprof_not_read").count == 2
    assert {"rocprof_negative_duration", "rocprof_no_launches"} <= set(reading.codes)


@pytest.mark.parametrize(
    "text", ['{"rocprofiler-sdk-tool": [', '{"rocprofiler-sdk-tool": 3}', '{"rocprofiler-sdk-tool": []}']
)
def test_what_is_cut_off_or_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)

    with pytest.raises(InputUnusableError):
        RocprofSource().read(tmp_path / "x.json", lambda _batch: None, ReadOptions())
