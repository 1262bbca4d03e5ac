"""Nsight Systems' own tables of MPI: ranks, the number of them, and where the host is; and which GPU a process saw."""

from typing import Any

import pytest

from tests.given import add_facts, built, rows_of
from tests.sources.nsys_exports import STRINGS, Export, call, export, kernel, nvtx, process, read
from traceforge.sources.nsys import NsysSource
from traceforge.store.database import Store

__all__ = ["export"]
MPI = {7: "MPI_Allreduce", 8: "MPI_Isend", 9: "MPI_Waitall", 10: "MPI_Init"}
TABLES = {7: "MPI_COLLECTIVES_EVENTS", 8: "MPI_P2P_EVENTS", 9: "MPI_START_WAIT_EVENTS", 10: "MPI_OTHER_EVENTS"}


def strings() -> list[dict[str, object]]:
    return [{"id": number, "value": text} for number, text in {**STRINGS, **MPI}.items()]


def mpi(name: int, start: int, end: int | None, pid: int = 7) -> dict[str, Any]:
    return {"start": start, "end": end, "globalTid": process(pid) + pid, "textId": name}


def test_a_rank_is_what_mpi_gave_to_each_process_of_a_report(export: Export) -> None:
    # given two processes on devices in another order than their ranks, and a communicator of part of them
    path = export(
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2, 7), kernel(1, 2, 8, deviceId=1)],
        MPI_RANKS=[{"globalTid": process(7) + 9, "rank": 5}, {"globalTid": process(8) + 8, "rank": 4}],
        MPI_COMMUNICATORS=[{"commHandle": 1, "size": 8}, {"commHandle": 2, "size": 2}],
    )

    stated = [read(path, part).summary for part in NsysSource().parts(path)]

    assert [(one.rank, one.world_size) for one in stated] == [(5, 8), (4, 8)]


def test_a_process_that_had_two_ranks_states_none(export: Export) -> None:
    ranks = [{"globalTid": process(7) + 7, "rank": rank} for rank in (0, 1)]
    path = export(CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2)], MPI_RANKS=ranks)

    assert read(path).summary.rank is None


def test_calls_to_mpi_are_annotations_of_their_thread_whatever_their_table(export: Export) -> None:
    # given a call of each table, one of them open at the end of the recording, and one of a process without a device
    path = export(
        StringIds=strings(),
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2)],
        MPI_COLLECTIVES_EVENTS=[mpi(7, 10, 30), mpi(7, 10, 30, pid=9)],
        MPI_P2P_EVENTS=[mpi(8, 40, 41)],
        MPI_START_WAIT_EVENTS=[mpi(9, 50, None)],
        MPI_OTHER_EVENTS=[mpi(10, 0, 5)],
    )

    reading = read(path)

    calls = [event for event in reading.events if event["category"] == "user_annotation"]
    assert sorted((e["name"], e["phase"], e["raw_start_ns"], e["duration_ns"]) for e in calls) == [
        ("MPI_Allreduce", "X", 10, 20),
        ("MPI_Init", "X", 0, 5),
        ("MPI_Isend", "X", 40, 1),
        ("MPI_Waitall", "i", 50, None),
    ]
    assert "MPI_COLLECTIVES_EVENTS 1" in reading.issue("nsys_rows_of_no_rank").detail


@pytest.mark.parametrize("operations", [True, False], ids=["with ranges of operations", "with steps alone"])
def test_a_gap_in_which_the_host_is_in_mpi_is_named_so(export: Export, operations: bool) -> None:
    # given four steps of 1,000 ns: a call to MPI until 700, of another table in each step, then work
    ranges = [nvtx(f"aten::mm, op_id = {at}", at + 720, at + 740) for at in range(0, 4_000, 1_000) if operations]
    steps = range(0, 4_000, 1_000)
    path = export(
        StringIds=strings(),
        NVTX_EVENTS=[nvtx(f"step {at // 1000}", at, at + 1_000) for at in steps] + ranges,
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(at + 720, at + 740, correlationId=at + 1) for at in steps],
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(at + 750, at + 1_000, correlationId=at + 1) for at in steps],
        **{TABLES[name]: [mpi(name, at, at + 700)] for name, at in zip(TABLES, steps, strict=True)},
    )

    with Store(None, is_kept=False) as store:
        add_facts(store, path)
        built(store, "timeline.gap")
        gaps = rows_of(store, "SELECT cause, cause_ns, duration_ns FROM timeline.gap ORDER BY start_ns")

    assert gaps == [("mpi_call", 700, 750)] * 4


def seen(*gpus: int) -> list[dict[str, object]]:
    """What the export says of processes 7, 8, … that call the GPU they were shown by the number 0."""
    return [{"gpuId": gpu, "cudaId": 0, "pid": 7 + place, "uuid": None} for place, gpu in enumerate(gpus)]


def test_processes_that_were_shown_one_gpu_each_are_told_apart_by_the_hosts_numbers(export: Export) -> None:
    names = [{"id": gpu, "cuDevice": gpu, "name": f"GPU {gpu}", "uuid": f"u{gpu}"} for gpu in range(4)]
    path = export(
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2, 7), kernel(1, 2, 8)],
        TARGET_INFO_CUDA_DEVICE=seen(3, 2),
        TARGET_INFO_GPU=names,
    )

    parts = NsysSource().parts(path)
    readings = [read(path, part) for part in parts]

    assert parts == ["device 2, process 8", "device 3, process 7"]
    assert [[event["device"] for event in reading.events] for reading in readings] == [[2], [3]]
    assert [reading.rows("profile")[0]["device_name"] for reading in readings] == ["GPU 2", "GPU 3"]


def test_a_gpu_that_is_said_in_two_ways_keeps_the_number_that_cuda_gave(export: Export) -> None:
    path = export(CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2)], TARGET_INFO_CUDA_DEVICE=[*seen(3), *seen(2)])

    assert [event["device"] for event in read(path).events] == [0]


def test_processes_that_all_call_their_gpu_0_are_ranks_in_the_order_of_their_numbers(export: Export) -> None:
    # given a report that does not say which GPU is which, of processes that communicate
    texts = [{"id": 1, "value": "ncclDevKernel_AllReduce_Sum_f32_RING_LL"}]
    rows = [kernel(n, n + 5, pid, demangledName=1) for n in (10, 20, 30) for pid in (9, 7, 8)]
    path = export(StringIds=texts, CUPTI_ACTIVITY_KIND_KERNEL=rows)

    with Store(None, is_kept=False) as store:
        add_facts(store, path)
        built(store, "align.rank")
        query = "SELECT r.rank, s.path FROM align.rank AS r JOIN meta.source AS s USING (source_id) ORDER BY r.rank"
        ranks = rows_of(store, query)
        codes = rows_of(store, "SELECT code FROM meta.issue WHERE stage = 'align'")

    assert [(rank, str(shown).rpartition(" ")[2]) for rank, shown in ranks] == [(0, "7"), (1, "8"), (2, "9")]
    assert ("rank_from_process",) in codes


def test_the_name_of_a_thread_gives_a_rank_to_its_own_process_alone(export: Export) -> None:
    path = export(
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2, 7), kernel(1, 2, 8, deviceId=1)],
        NVTX_EVENTS=[nvtx("MPI Rank 3", 0, None, eventType=39, globalTid=process(8) + 8)],
    )

    assert [read(path, part).summary.rank for part in NsysSource().parts(path)] == [None, 3]
