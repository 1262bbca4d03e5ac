"""XPlane files: each device that did something is a part, and its streams or XLA operations are its time."""

from pathlib import Path

import pytest

from tests.given import add_facts, built, rows_of
from tests.sources.chakra_wire import field
from tests.sources.reading import Reading
from traceforge.errors import InputUnusableError
from traceforge.records import Batch, ReadOptions
from traceforge.sources.xplane import XplaneSource
from traceforge.store.database import Store

CORRELATION, STEP = 9, 7
START_NS = 1_700_000_000_000_000_000


def event(name: int, offset_ps: int, duration_ps: int, correlation: int = 0, step: int | None = None) -> bytes:
    stat = field(4, field(1, CORRELATION) + field(3, correlation)) if correlation else b""
    stat += field(4, field(1, STEP) + field(4, step)) if step is not None else b""
    # As proto3 writes it: zeros are left out.
    times = (field(2, offset_ps) if offset_ps else b"") + (field(3, duration_ps) if duration_ps else b"")
    return field(1, name) + times + stat


def line(name: str, *events: bytes, start_ns: int = 0) -> bytes:
    head = field(2, name) + (field(3, start_ns) if start_ns else b"")
    return field(3, head + b"".join(field(4, one) for one in events))


def named(table: int, **names: int) -> bytes:
    entries = [(number, name) for name, number in names.items()]
    return b"".join(
        field(table, field(1, number) + field(2, field(1, number) + field(2, name))) for number, name in entries
    )


def plane(name: str, *lines: bytes, events: dict[str, int] | None = None, stats: bytes = b"") -> bytes:
    tables = named(4, **(events or {"gemm.kd": 1, "hipModuleLaunchKernel": 2, "step": 3}))
    return field(
        1,
        field(2, name)
        + b"".join(lines)
        + tables
        + named(5, correlation_id=CORRELATION, step_num=STEP, profile_start_time=8)
        + stats,
    )


def read(tmp_path: Path, *planes: bytes, part: str | None = None, host: str = "node7") -> Reading:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(b"".join(planes) + field(4, host))
    batches: list[Batch] = []
    return Reading(XplaneSource().read(path, batches.append, ReadOptions(part=part)), batches)


def test_a_kernel_of_a_stream_is_joined_to_its_launch(tmp_path: Path) -> None:
    # given a launch 100 ns into the profile and its kernel at 1 µs on a line that starts at 900 ns
    gpu = plane("/device:GPU:0", line("Stream #16(Kernel)", event(1, 100_000, 40_500, 5), start_ns=900))
    host = plane("/host:CPU", line("python", event(2, 100_000, 10_000, 5), event(3, 0, 999_000)))
    environment = plane("Task Environment", stats=field(6, field(1, 8) + field(3, START_NS)))

    reading = read(tmp_path, gpu, host, environment)

    said = [
        (e["category"], e["name"], e["raw_start_ns"] - START_NS, e["duration_ns"], e["correlation"])
        for e in reading.events
    ]
    assert said == [
        ("kernel", "gemm", 1000, 40, 5),
        ("cuda_runtime", "hipModuleLaunchKernel", 100, 10, 5),
        ("cpu_op", "step", 0, 999, None),
    ]
    assert (reading.events[0]["device"], reading.events[0]["stream"]) == (0, 16)
    assert reading.summary.host == "node7"


def test_devices_are_parts_and_launches_go_to_the_one_they_are_for(tmp_path: Path) -> None:
    planes = [
        plane("/device:GPU:0", line("Stream #16(Kernel)", event(1, 0, 1000, 5))),
        plane("/device:GPU:1", line("Stream #17(Kernel)", event(1, 0, 1000, 6))),
        plane("/device:GPU:2"),
        plane("/host:CPU", line("python", event(2, 0, 1000, 5), event(2, 2000, 1000, 6), event(3, 0, 9000))),
    ]

    second = read(tmp_path, *planes, part="/device:GPU:1")

    assert XplaneSource().parts(tmp_path / "host.xplane.pb") == ["/device:GPU:0", "/device:GPU:1"]
    assert [(e["name"], e["correlation"]) for e in second.events] == [("gemm", 6), ("hipModuleLaunchKernel", 6)]


def test_a_step_of_the_process_is_one_of_each_of_its_devices(tmp_path: Path) -> None:
    # given what StepTraceAnnotation("step", step_num=4) leaves, and an annotation without a number
    planes = [
        plane("/device:GPU:0", line("Stream #16(Kernel)", event(1, 0, 1000, 5))),
        plane("/device:GPU:1", line("Stream #17(Kernel)", event(1, 0, 1000, 6))),
        plane("/host:CPU", line("python", event(3, 0, 7000, step=4), event(3, 7000, 1000))),
    ]

    first, second = (read(tmp_path, *planes, part=f"/device:GPU:{number}").events[1:] for number in (0, 1))

    step = ("user_annotation", "step 4", 7)
    assert [(e["category"], e["name"], e["duration_ns"]) for e in first] == [step, ("cpu_op", "step", 1)]
    assert [(e["category"], e["name"], e["duration_ns"]) for e in second] == [step]


def test_operations_of_a_tpu_are_device_time_and_derived_lines_are_counted(tmp_path: Path) -> None:
    names = {"%all-reduce.3 = f32[8] all-reduce(f32[8] %x)": 1, "jit_step": 2, "7": 3, "copy-done.2": 4}
    tpu = plane(
        "/device:TPU:0",
        line("XLA Ops", event(1, 0, 5000), event(4, 6000, 1000)),
        line("XLA Modules", event(2, 0, 9000)),
        line("Steps", event(3, 0, 9000)),
        line("XLA TraceMe", event(2, 0, 1000)),
        events=names,
    )

    reading = read(tmp_path, tpu)

    assert [(e["category"], e["name"]) for e in reading.events] == [
        ("kernel", "all-reduce.3"),
        ("gpu_memcpy", "copy-done.2"),
        ("user_annotation", "jit_step"),
        ("user_annotation", "step 7"),
    ]
    assert reading.issue("xplane_derived_lines").detail.endswith("(XLA TraceMe 1)")


def test_the_barrier_of_a_tpu_is_communication_on_a_stream_of_its_own(tmp_path: Path) -> None:
    names = {"%add.3 = f32[8] add(f32[8] %x)": 1, "barrier-cores": 2, "dependency-wait": 3}
    waits = line("XLA TraceMe", event(2, 1000, 4000), event(3, 6000, 1000))
    tpu = plane("/device:TPU:0", line("XLA Ops", event(1, 8000, 1000)), waits, events=names)

    reading = read(tmp_path, tpu)

    assert sorted((e["name"], e["category"], e["stream"], e["duration_ns"]) for e in reading.events) == [
        ("add.3", "kernel", 0, 1),
        ("barrier-cores", "kernel", 1, 4),
    ]
    assert reading.issue("xplane_derived_lines").count == 1


def test_a_chip_that_arrives_first_waits_in_the_barrier(corpus: Path) -> None:
    with Store(None, is_kept=False) as store:
        add_facts(store, corpus / "traces/xplane/tpu_v6e_4chips/tpu_inference_2.xplane.pb.gz")
        built(store, "timeline.phase")
        waits = rows_of(
            store, "SELECT rank, SUM(duration_ns)::BIGINT FROM timeline.phase WHERE phase = 'wait' GROUP BY 1"
        )

    # chip 2 stands in its first barrier from 7.1545 to 7.4955 s of the profile
    assert [(rank, round(int(str(wait_ns)) / 1e6)) for rank, wait_ns in sorted(waits, key=str)] == [
        (0, 25),
        (1, 55),
        (2, 341),
        (3, 45),
    ]


def test_sums_of_many_events_have_no_time_and_are_counted(tmp_path: Path) -> None:
    # given an event that stands for 12 others, as old files of TensorFlow have them
    many = field(1, 1) + field(5, 12) + field(3, 9_000)

    reading = read(tmp_path, plane("/device:GPU:0", line("Stream #4(Kernel)", many, event(1, 2000, 1000))))

    assert [event_["raw_start_ns"] for event_ in reading.events] == [2]
    assert (reading.summary.event_count, reading.issue("xplane_sums").lost_events) == (2, 1)


def test_copies_of_a_stream_are_copies(tmp_path: Path) -> None:
    (event_,) = read(tmp_path, plane("/device:GPU:0", line("Stream #4(MemcpyH2D)", event(1, 0, 1000)))).events

    assert (event_["category"], event_["name"]) == ("gpu_memcpy", "Memcpy HtoD")


def of_gpu(*lines: bytes, name: str = "/device:GPU:0", **events: int) -> bytes:
    """A plane with names of events, and the statistics by which XLA says what an event of a stream is."""
    said = {"memcpy_details": 20, "memset_details": 21, "memory_residency_details": 22}
    texts = {"kind_src:pageable kind_dst:device size:4096 dest:0 async:1": 30, "kind:device num_bytes:64 async:1": 31}
    return field(1, field(2, name) + b"".join(lines) + named(4, **events) + named(5, **said) + named(5, **texts))


def stated(name: int, offset_ns: int, statistic: int, text: int | str) -> bytes:
    value = field(7, text) if isinstance(text, int) else field(5, text)
    return event(name, offset_ns * 1000, 1000) + field(4, field(1, statistic) + value)


def test_a_stream_of_several_kinds_of_work_is_taken_apart_by_what_its_events_state(tmp_path: Path) -> None:
    # given a line as XLA names one on which it copied, set and computed; the texts referred to, and one written out
    work = line(
        "Stream #14(MemcpyH2D,Memset,MemoryResidency,Compute)",
        stated(1, 0, 20, 30),
        stated(2, 10, 21, 31),
        event(3, 20_000, 1000),
        stated(4, 30, 20, "kind_src:device kind_dst:device size:8 dest:0 async:1"),
        stated(5, 40, 22, "kind:device num_bytes:99 addr:0x0"),
        event(6, 50_000, 1000),
    )
    events = {"MemcpyH2D": 1, "Memset": 2, "gemm_kernel": 3, "MemcpyOther": 4, "Resident": 5, "MemcpyP2P": 6}

    reading = read(tmp_path, of_gpu(work, **events))

    assert [(e["category"], e["name"], e["size_bytes"], e["stream"]) for e in reading.events] == [
        ("gpu_memcpy", "Memcpy HtoD", 4096, 14),
        ("gpu_memset", "Memset (Device)", 64, 14),
        ("kernel", "gemm_kernel", None, 14),
        ("gpu_memcpy", "Memcpy unknown", 8, 14),
        ("memory", "Resident", None, 14),
        ("gpu_memcpy", "Memcpy PtoP", None, 14),
    ]


def test_what_is_derived_from_the_streams_of_a_gpu_is_not_counted_twice(tmp_path: Path) -> None:
    gpu = plane(
        "/device:GPU:0",
        line("Stream #7", event(1, 0, 5000)),
        line("XLA Ops", event(1, 0, 5000)),
        line("XLA Modules", event(3, 0, 5000)),
        line("Steps", event(3, 0, 9000)),
    )

    reading = read(tmp_path, gpu)

    assert [(e["category"], e["name"], e["stream"]) for e in reading.events] == [("kernel", "gemm", 7)]
    assert reading.issue("xplane_derived_lines").count == 3


def test_the_sparse_core_of_a_chip_is_no_rank_of_its_own(tmp_path: Path) -> None:
    planes = [
        plane("/device:TPU:0", line("XLA Ops", event(1, 0, 5000))),
        plane("/device:TPU:0 SparseCore 1", line("Sparse Core Ops", event(1, 0, 5000), event(1, 6000, 5000))),
    ]

    reading = read(tmp_path, *planes)

    assert XplaneSource().parts(tmp_path / "host.xplane.pb") == ["/device:TPU:0"]
    assert len(reading.events) == 1
    assert reading.issue("xplane_derived_lines").detail.endswith("(/device:TPU:0 SparseCore 1 Sparse Core Ops 2)")


def test_functions_of_python_are_no_operations_and_the_profilers_own_are_left_out(tmp_path: Path) -> None:
    # given what JAX's tracer of Python leaves, and calls that CUPTI's collector wrote to a plane of its own
    names = {"$api.py:31 block_until_ready": 1, "$profiler.py:213 stop_trace": 2, "cuLaunchKernel": 3}
    planes = [
        plane("/device:GPU:0", line("Stream #4(Compute)", event(1, 0, 1000, 5))),
        plane("/host:CPU", line("python", event(1, 0, 9000), event(2, 9000, 99_000)), events=names),
        plane("/host:CUPTI", line("Host Threads/7", event(3, 0, 1000, 5)), events=names),
    ]

    reading = read(tmp_path, *planes)

    assert [(e["category"], e["name"]) for e in reading.events[1:]] == [
        ("python_function", "$api.py:31 block_until_ready"),
        ("cuda_runtime", "cuLaunchKernel"),
    ]
    assert reading.issue("xplane_profilers_own").lost_events == 1
    assert len({e["track_id"] for e in reading.events}) == 3


@pytest.mark.parametrize("damage", [b"\x0a\xef\xbf\xbd", b"\x0a\x05ab", b"\x0a\x02\x0f\x00"])
def test_what_is_no_sound_message_is_refused(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "x.xplane.pb").write_bytes(damage)

    with pytest.raises(InputUnusableError, match="no sound protobuf"):
        XplaneSource().read(tmp_path / "x.xplane.pb", lambda _batch: None, ReadOptions())


def test_a_damaged_line_of_a_device_is_refused_when_its_parts_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "x.xplane.pb").write_bytes(plane("/device:GPU:0", field(3, b"\x12\x7f")))

    with pytest.raises(InputUnusableError, match="no sound protobuf"):
        XplaneSource().parts(tmp_path / "x.xplane.pb")


@pytest.mark.parametrize(("start_ns", "at_ns", "odd"), [(2**64 - 5, -5, 0), (2**63, 0, 1), (2**62, 0, 1)])
def test_a_line_that_starts_at_no_time_counts_from_the_start_of_the_profile(
    tmp_path: Path, start_ns: int, at_ns: int, odd: int
) -> None:
    gpu = plane("/device:GPU:0", line("Stream #16(Kernel)", event(1, 0, 2_000), start_ns=start_ns))

    reading = read(tmp_path, gpu)

    assert [event["raw_start_ns"] for event in reading.events] == [at_ns]
    assert sum(issue.count for issue in reading.summary.issues if issue.code == "xplane_out_of_range") == odd


def test_a_profile_that_starts_at_no_time_starts_at_an_unknown_one(tmp_path: Path) -> None:
    environment = plane("Task Environment", events={"x": 1}, stats=field(6, field(1, 8) + field(3, 2**63 + 1)))

    reading = read(tmp_path, plane("/device:GPU:0", line("Stream #16(Kernel)", event(1, 0, 2_000))), environment)

    assert (reading.events[0]["raw_start_ns"], reading.issue("xplane_no_profile_start").count) == (0, 1)


def test_a_file_that_states_no_host_says_how_it_is_joined_to_others(tmp_path: Path) -> None:
    gpu = plane("/device:GPU:0", line("Stream #16(Kernel)", event(1, 0, 2_000)))

    assert "rank0" in read(tmp_path, gpu, host="").issue("xplane_no_host").detail
