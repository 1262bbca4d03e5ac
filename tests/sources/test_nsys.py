"""Exports of Nsight Systems become the events that Kineto would have written; nothing in them is trusted or lost."""

from typing import Any

import pytest

from tests.given import add_facts, built, rows_of
from tests.sources.nsys_exports import EPOCH, STRINGS, Export, call, kernel, nvtx, process, read
from traceforge.sources.nsys import NsysSource
from traceforge.store.database import Store


def test_a_kernel_has_its_whole_name_and_its_launch(export: Export) -> None:
    # given a launch at 100 and its kernel at 150, 1 s into a session that began at EPOCH
    path = export(
        TARGET_INFO_SESSION_START_TIME=[{"utcEpochNs": EPOCH}],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(100, 110)],
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(150, 190)],
    )

    reading = read(path)

    said = [
        (e["category"], e["name"], e["raw_start_ns"] - EPOCH, e["duration_ns"], e["correlation"])
        for e in reading.events
    ]
    assert said == [
        ("cuda_runtime", "cudaLaunchKernel", 100, 10, 5),
        ("kernel", "void gemm<float>(float*)", 150, 40, 5),
    ]
    assert reading.events[1]["stream"] == 7
    assert reading.events[1]["device"] == 0


def test_ranges_of_pytorch_are_its_operations_and_others_are_annotations(export: Export) -> None:
    path = export(
        NVTX_EVENTS=[
            nvtx("aten::mm, op_id = 12, sizes = [[2, 3], [3, 4]]", 0, 9),
            nvtx("FSDP::forward (layer, seq), seq = 4, op_id = 13", 1, 8),
            nvtx("step 3", 0, 10),
            nvtx(None, 2, 3, textId=4),
            nvtx("here", 5, None, eventType=34),
            nvtx("main thread", 0, None, eventType=39),
        ],
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2)],
    )

    ranges = [event for event in read(path).events if event["category"] != "kernel"]

    assert [(e["category"], e["name"], e["phase"], e["record_function_id"]) for e in ranges] == [
        ("cpu_op", "aten::mm", "X", 12),
        ("cpu_op", "FSDP::forward (layer, seq)", "X", 13),
        ("user_annotation", "step 3", "X", None),
        ("cpu_op", "ncclAllReduce", "X", None),
        ("user_annotation", "here", "i", None),
    ]


def test_calls_to_the_operating_system_are_those_of_threads_that_call_cuda(export: Export) -> None:
    # given a lock that the launching thread waits for, and one that a thread without CUDA calls waits for
    waits = {"nameId": 6, "eventClass": 27}
    path = export(
        StringIds=[{"id": number, "value": text} for number, text in {**STRINGS, 6: "pthread_cond_wait"}.items()],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(100, 110)],
        OSRT_API=[
            {"start": 10, "end": 90, "globalTid": process(7) + 7, **waits},
            {"start": 0, "end": 900, "globalTid": process(7) + 8, **waits},
        ],
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(150, 190)],
    )

    reading = read(path)

    found = [(e["name"], e["raw_start_ns"], e["duration_ns"]) for e in reading.events if e["category"] == "os_runtime"]
    assert found == [("pthread_cond_wait", 10, 80)]
    assert "(OSRT_API 1)" in reading.issue("nsys_rows_of_no_rank").detail


def test_without_cuda_calls_no_call_to_the_operating_system_is_kept(export: Export) -> None:
    path = export(
        OSRT_API=[{"start": 10, "end": 90, "globalTid": process(7) + 7, "nameId": 4}],
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(150, 190)],
    )

    assert [event["category"] for event in read(path).events] == ["kernel"]


def test_a_gap_in_which_the_host_waits_for_a_lock_is_a_system_call(export: Export) -> None:
    # given four steps of 1,000 ns: the host waits until 700, launches, and the device computes from 750 on
    steps = range(0, 4_000, 1_000)
    on_thread = {"globalTid": process(7) + 7}
    path = export(
        NVTX_EVENTS=[nvtx(f"step {at // 1000}", at, at + 1_000) for at in steps]
        + [nvtx(f"aten::mm, op_id = {at}", at + 700, at + 740) for at in steps],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(at + 700, at + 740, correlationId=at + 1) for at in steps],
        OSRT_API=[{"start": at, "end": at + 700, "nameId": 4, **on_thread} for at in steps],
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(at + 750, at + 1_000, correlationId=at + 1) for at in steps],
    )

    with Store(None, is_kept=False) as store:
        add_facts(store, path)
        built(store, "timeline.collective", "timeline.gap")
        gaps = rows_of(store, "SELECT cause, cause_ns, duration_ns FROM timeline.gap ORDER BY start_ns")

    assert gaps == [("system_call", 700, 750)] * 4


def test_a_gap_in_which_the_host_is_in_mpi_is_named_so_and_is_no_collective(export: Export) -> None:
    # given four steps of 1,000 ns: MPI, inside of a range and around a call to the system, until 700, then work
    steps = range(0, 4_000, 1_000)
    on_thread = {"globalTid": process(7) + 7}
    path = export(
        NVTX_EVENTS=[nvtx(f"step {at // 1000}", at, at + 1_000) for at in steps]
        + [nvtx("exchange", at, at + 720) for at in steps]
        + [nvtx("MPI_Init" if at == 0 else "MPI_Allreduce", at, at + 700, domainId=3) for at in steps]
        + [nvtx(f"aten::mm, op_id = {at}", at + 720, at + 740) for at in steps],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(at + 720, at + 740, correlationId=at + 1) for at in steps],
        OSRT_API=[{"start": at + 100, "end": at + 600, "nameId": 4, **on_thread} for at in steps],
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(at + 750, at + 1_000, correlationId=at + 1) for at in steps],
    )

    with Store(None, is_kept=False) as store:
        add_facts(store, path)
        built(store, "timeline.collective", "timeline.gap")
        gaps = rows_of(store, "SELECT cause, cause_ns, duration_ns FROM timeline.gap ORDER BY start_ns")
        collectives = rows_of(store, "SELECT COUNT(*) FROM timeline.collective")

    assert gaps == [("mpi_call", 700, 750)] * 4
    assert collectives == [(0,)]


def test_shapes_that_ranges_name_are_inputs_of_their_operations(export: Export) -> None:
    # given a product whose text names the shapes of its inputs, and others whose work does not follow from theirs
    texts = (
        "aten::mm, op_id = 12, sizes = [[2, 3], [3, 4]]",
        "aten::view, sizes = [[2, 4]]",
        "aten::addmm, sizes = no",
    )
    path = export(
        NVTX_EVENTS=[nvtx(text, n, n + 1) for n, text in enumerate(texts)], CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2)]
    )

    reading = read(path)

    (row,) = reading.rows("operation_input")
    (event,) = [e for e in reading.events if e["event_id"] == row["event_id"]]
    assert (event["name"], row["shapes"]) == ("aten::mm", "[[2, 3], [3, 4]]")


def test_copies_are_named_as_kineto_names_them(export: Export) -> None:
    copy = {"bytes": 64, "copyKind": 1, "srcKind": 1, "dstKind": 2}
    launched = {"deviceId": 0, "streamId": 7, "correlationId": 5, "globalPid": process(7)}
    path = export(CUPTI_ACTIVITY_KIND_MEMCPY=[{"start": 1, "end": 3, **launched, **copy}])

    (event,) = read(path).events

    assert (event["category"], event["name"]) == ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)")
    assert event["size_bytes"] == 64


def test_each_process_is_a_part_and_its_events_stay_apart(export: Export) -> None:
    # given two processes that use the same correlation number
    path = export(
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(100, 110, 7), call(200, 210, 8)],
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(250, 260, 8, deviceId=1), kernel(150, 160, 7)],
    )

    parts = NsysSource().parts(path)

    assert parts == ["device 0, process 7", "device 1, process 8"]
    assert [[e["raw_start_ns"] for e in read(path, part).events] for part in parts] == [[100, 150], [200, 250]]


def test_without_processes_devices_are_parts(export: Export) -> None:
    # given an excerpt made by hand, with few columns
    rows = [{"start": n, "end": n + 1, "deviceId": n % 2, "streamId": 7, "shortName": 1} for n in range(4)]
    path = export(CUPTI_ACTIVITY_KIND_KERNEL=rows)

    assert NsysSource().parts(path) == ["device 0", "device 1"]
    assert [event["name"] for event in read(path, "device 1").events] == ["gemm", "gemm"]


@pytest.mark.parametrize(
    ("tables", "rank", "world_size"),
    [
        ({"NVTX_EVENTS": [nvtx("MPI Rank 3", 0, None, eventType=39)]}, 3, None),
        (
            {"TARGET_INFO_SYSTEM_ENV": [{"name": "DeviceEnvironment", "value": "A=1\0SLURM_PROCID=5\0SLURM_NTASKS=8"}]},
            5,
            8,
        ),
        ({"META_DATA_CAPTURE": [{"name": "PROCESS_0:ENVIRONMENT_VARIABLE", "value": 'RANK="2"'}]}, 2, None),
        ({}, None, None),
    ],
)
def test_a_rank_is_what_the_launcher_says(
    export: Export, tables: dict[str, list[dict[str, Any]]], rank: int | None, world_size: int | None
) -> None:
    summary = read(export(CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2)], **tables)).summary

    assert (summary.rank, summary.world_size) == (rank, world_size)


def test_the_launchers_environment_says_nothing_of_one_process_among_several(export: Export) -> None:
    path = export(
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2, 7), kernel(1, 2, 8, deviceId=1)],
        META_DATA_CAPTURE=[{"name": "PROCESS_0:ENVIRONMENT_VARIABLE", "value": 'RANK="2"'}],
    )

    assert read(path, "device 1, process 8").summary.rank is None


def test_of_the_environment_nothing_is_kept(export: Export) -> None:
    secret = {"name": "PROCESS_0:ENVIRONMENT_VARIABLE", "value": 'TOKEN="s3cret"'}

    reading = read(export(CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2)], META_DATA_CAPTURE=[secret]))

    assert "s3cret" not in str([batch.rows.to_dicts() for batch in reading.batches])


def test_graphs_that_stand_for_their_kernels_keep_the_device_busy_and_are_told(export: Export) -> None:
    row = {"start": 5, "end": 25, "deviceId": 0, "streamId": 7, "correlationId": 1, "globalPid": process(7)}

    reading = read(export(CUPTI_ACTIVITY_KIND_GRAPH_TRACE=[row]))

    assert [(e["category"], e["duration_ns"]) for e in reading.events] == [("kernel", 20)]
    assert "nsys_graphs_as_one" in reading.codes
