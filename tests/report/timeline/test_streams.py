"""What an opened rank did: each block has the name a reader knows it by, and the details behind it."""

import numpy as np
import polars as pl

from traceforge.align.clock_course import ClockCourse
from traceforge.report.timeline.streams import Blocks, host_row, work_rows

TRAINING, DEVICE, BACKWARD = 1, 3, 4
SAME_CLOCK = ClockCourse(*(np.zeros(1, dtype=np.int64) for _ in range(3)))

Event = tuple[str, str, str, int, int, int, int, int]


def rows_of(*events: Event, has_device: bool, window: tuple[int, int] = (0, 1_000)) -> list[Blocks]:
    """Rows of events of (role, class, name, track, stream, correlation, start, end)."""
    columns = ["role", "class", "name", "track_id", "stream", "correlation", "raw_start_ns", "end_ns"]
    frame = pl.DataFrame(events, schema=columns, orient="row").with_row_index("kind_id")
    told = frame.select(
        "kind_id", "stream", "correlation", "raw_start_ns", duration_ns=pl.col("end_ns") - pl.col("raw_start_ns")
    )
    return work_rows(
        told, frame.select("kind_id", "track_id", "name", "class", "role"), window, SAME_CLOCK, has_device=has_device
    )


def blocks_of(row: Blocks) -> list[tuple[str, str, int, int]]:
    return [
        (label, detail, start, end)
        for (label, detail, _), start, end in zip(row.labels, row.start_ns.tolist(), row.end_ns.tolist(), strict=True)
    ]


def test_a_kernel_is_named_after_the_operation_that_launched_it() -> None:
    # host:   |linear [addmm  launch]|     device, later:  |sgemm|     and a copy that nothing launched
    found = rows_of(
        ("operation", "operation", "aten::linear", TRAINING, -1, -1, 10, 200),
        ("operation", "operation", "aten::addmm", TRAINING, -1, -1, 20, 100),
        ("launch", "runtime", "cudaLaunchKernel", TRAINING, -1, 5, 50, 55),
        ("device", "compute", "volta_sgemm_128x64_tn", DEVICE, 7, 5, 500, 560),
        ("device", "copy", "Memcpy HtoD (Pinned -> Device)", DEVICE, 7, 6, 600, 610),
        ("device", "communication", "ncclDevKernel_AllReduce_Sum_f32", DEVICE, 9, 7, 700, 800),
        has_device=True,
    )

    (row,) = found
    assert row.title == "computation"
    assert blocks_of(row)[0] == ("aten::addmm", "volta_sgemm_128x64_tn", 500, 560)
    assert [(label[0].startswith("Memcpy"), label[2]) for label in row.labels] == [(False, "compute"), (True, "copy")]


def test_the_launch_of_another_iteration_still_names_its_kernel() -> None:
    # the window begins at 1,000; the host launched long before
    (row,) = rows_of(
        ("operation", "operation", "aten::mm", TRAINING, -1, -1, 300, 400),
        ("launch", "runtime", "cudaLaunchKernel", TRAINING, -1, 5, 350, 355),
        ("device", "compute", "gemm", DEVICE, 7, 5, 1_200, 1_300),
        ("device", "compute", "gemm", DEVICE, 7, 4, 100, 200),
        has_device=True,
        window=(1_000, 2_000),
    )
    assert blocks_of(row) == [("aten::mm", "gemm", 1_200, 1_300)]


def test_without_a_device_the_innermost_operation_names_each_instant() -> None:
    # training:  |linear 100      |addmm 150..250|      300|      backward thread:  |mm 400..500|
    training, backward = rows_of(
        ("step", "iteration", "ProfilerStep#4", TRAINING, -1, -1, 0, 1_000),
        ("operation", "operation", "aten::linear", TRAINING, -1, -1, 100, 300),
        ("operation", "operation", "aten::addmm", TRAINING, -1, -1, 150, 250),
        ("operation", "operation", "aten::mm", BACKWARD, -1, -1, 400, 500),
        has_device=False,
    )

    assert (training.title, backward.title) == ("training thread", "other thread")
    assert blocks_of(training) == [
        ("aten::linear", "", 100, 150), ("aten::addmm", "", 150, 250), ("aten::linear", "", 250, 300),
    ]  # fmt: skip
    assert blocks_of(backward) == [("aten::mm", "", 400, 500)]


def test_of_too_many_blocks_the_shortest_are_left_out_and_counted() -> None:
    short = [("device", "compute", "k", DEVICE, 7, at, 10 * at, 10 * at + 1) for at in range(1_250)]
    (row,) = rows_of(
        *short, ("device", "compute", "long", DEVICE, 7, 0, 20_000, 21_000), has_device=True, window=(0, 30_000)
    )
    assert row.left_out == 51
    assert blocks_of(row)[-1] == ("long", "", 20_000, 21_000)


def test_a_rank_of_which_nothing_was_recorded_has_no_rows() -> None:
    assert rows_of(has_device=True) == []


def test_a_gap_has_the_name_of_a_call_only_where_that_fills_most_of_it() -> None:
    # |nothing launched, 1 s, cudaMalloc for 4 ms of it|cudaFree, all 118 ms of it|idle|
    columns = ["start_ns", "duration_ns", "cause", "call", "call_ns"]
    ms = 1_000_000
    gaps = [
        (0, 1_000 * ms, "late_launch", "cudaMalloc", 4 * ms),
        (1_000 * ms, 118 * ms, "allocator", "cudaFree", 118 * ms),
        (1_118 * ms, 2 * ms, None, None, None),
    ]

    (row,) = host_row(pl.DataFrame(gaps, schema=columns, orient="row"))

    assert [name for name, _, _ in row.labels] == ["nothing launched", "cudaFree", "idle"]
    assert [detail.replace("\N{NO-BREAK SPACE}", " ") for _, detail, _ in row.labels] == [
        "cudaMalloc for 4.00 ms of it",
        "allocator",
        "",
    ]
