"""Perfetto traces of PyTorch's CUPTI observer: what packets say, and what damage leaves. Bytes are made by hand."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sources.reading import Reading
from traceforge.export.protobuf import number, text
from traceforge.records import Batch, ReadOptions
from traceforge.sources.pftrace import SOURCE

EPOCH = 1_790_000_000_000_000_000


def packet(*fields: bytes, at_ns: int | None = None) -> bytes:
    stamp = b"" if at_ns is None else number(8, EPOCH + at_ns)
    return text(1, stamp + b"".join(fields))


def interned(field: int, iid: int, name: str, name_field: int = 2) -> bytes:
    return packet(text(12, text(field, number(1, iid) + text(name_field, name))))


CLOCKS = packet(text(6, text(1, number(1, 6) + number(2, EPOCH)) + text(1, number(1, 1) + number(2, EPOCH))), at_ns=0)
PROCESS = packet(text(60, number(1, 70) + text(3, number(1, 7) + text(6, "python"))))
THREAD = packet(text(60, number(1, 71) + number(5, 70) + text(4, number(1, 7) + number(2, 8) + text(5, "main thread"))))
NAMES = interned(2, 1, "aten::mm") + interned(2, 2, "cudaLaunchKernel") + interned(2, 3, "gemm")
NAMES += interned(1, 1, "cpu_op") + interned(1, 2, "cuda_runtime")
LANES = interned(24, 1, "Kernel") + interned(24, 2, "[07] stream 7") + interned(24, 3, "Annotation")
HEAD = CLOCKS + PROCESS + THREAD + NAMES + LANES


def begin(at_ns: int, name: int, category: int, *more: bytes, track: int = 71) -> bytes:
    said = number(9, 1) + number(11, track) + number(10, name) + number(3, category)
    return packet(text(11, said + b"".join(more)), at_ns=at_ns)


def end(at_ns: int, track: int = 71) -> bytes:
    return packet(text(11, number(9, 2) + number(11, track)), at_ns=at_ns)


def stage(at_ns: int, lasts_ns: int, *more: bytes, event_id: int = 1, kind: int = 1) -> bytes:
    said = number(1, event_id) + number(2, lasts_ns) + number(11, 3) + number(13, 2) + number(14, kind)
    return packet(text(53, said + b"".join(more)), at_ns=at_ns)


def argument(key: str, value: int | str) -> bytes:
    return text(4, text(10, key) + (text(6, value) if isinstance(value, str) else number(4, value, keep_zero=True)))


def extra(key: str, value: str) -> bytes:
    return text(6, text(1, key) + text(2, value))


def read(tmp_path: Path, data: bytes) -> Reading:
    path = tmp_path / "rank0.pftrace"
    path.write_bytes(data)
    batches: list[Batch] = []
    return Reading(SOURCE.read(path, batches.append, ReadOptions()), batches)


def said(reading: Reading) -> list[tuple[object, ...]]:
    return [
        (e["category"], e["name"], e["raw_start_ns"] - EPOCH, e["duration_ns"], e["correlation"])
        for e in reading.events
    ]


@pytest.fixture
def launch() -> bytes:
    """An operation that launches a kernel: begins first, then ends, then the stage that the call submitted."""
    submitted = text(3000, number(1, 9))
    host = begin(10, 1, 1) + end(50) + begin(20, 2, 2, argument("correlation", 5), submitted) + end(30)
    return host + stage(60, 40, number(20, 3), event_id=9)


def test_a_kernel_has_the_correlation_of_the_call_that_submitted_it(tmp_path: Path, launch: bytes) -> None:
    reading = read(tmp_path, HEAD + launch)

    assert said(reading) == [
        ("cpu_op", "aten::mm", 10, 40, None),
        ("cuda_runtime", "cudaLaunchKernel", 20, 10, 5),
        ("kernel", "gemm", 60, 40, 5),
    ]
    assert (reading.events[2]["device"], reading.events[2]["stream"]) == (3, 7)
    names = {(t["process"], t["thread"], t["process_name"], t["thread_name"]) for t in reading.rows("track")}
    assert ("7", "8", "python", "main thread") in names


def test_a_file_is_packed_under_its_bare_name(tmp_path: Path, launch: bytes) -> None:
    assert said(read(tmp_path, gzip.compress(HEAD + launch))) == said(read(tmp_path, HEAD + launch))


def test_all_begins_of_a_group_come_before_all_ends(tmp_path: Path) -> None:
    # given slices of one thread from 10 to 30 and from 20 to 40, which no nesting would pair so
    group = begin(10, 1, 1) + begin(20, 3, 1) + end(30) + end(40)

    found = [(name, lasts) for _, name, _, lasts, _ in said(read(tmp_path, HEAD + group))]
    assert found == [("aten::mm", 20), ("gemm", 20)]


def test_slices_that_stand_in_no_groups_are_paired_by_nesting(tmp_path: Path) -> None:
    one_by_one = begin(10, 1, 1) + begin(20, 3, 1) + end(30) + begin(35, 3, 1) + end(40) + end(50)

    found = sorted((start, lasts) for _, _, start, lasts, _ in said(read(tmp_path, HEAD + one_by_one)))
    assert found == [(10, 40), (20, 10), (35, 5)]


def test_a_graph_launch_gives_all_its_nodes_one_correlation(tmp_path: Path) -> None:
    launch = begin(1, 2, 2, argument("correlation", 4), text(3000, number(1, 8) + number(1, 9))) + end(2)
    trace = HEAD + launch + stage(3, 1, event_id=8) + stage(5, 1, event_id=9)

    assert [correlation for _, _, _, _, correlation in said(read(tmp_path, trace))] == [4, 4, 4]


def test_a_collective_has_nccl_s_own_words(tmp_path: Path) -> None:
    words = {"func": "AllReduce", "algo": "RING", "proto": "LL128", "n_channels": "12", "seq": "3", "count": "64"}
    trace = HEAD + stage(1, 5, number(20, 3), *(extra(key, value) for key, value in words.items()))

    reading = read(tmp_path, trace)

    (choice,) = reading.rows("collective_choice")
    assert (choice["algorithm"], choice["protocol"], choice["channel_count"], choice["sequence"]) == (
        "ring",
        "ll128",
        12,
        3,
    )
    (call,) = reading.rows("collective")
    # NCCL counts each operation by itself, so that its number is none of the group
    assert (call["collective_name"], call["in_elements"], call["sequence"]) == ("AllReduce", 64, None)


def test_annotations_on_a_lane_are_no_kernels(tmp_path: Path) -> None:
    assert said(read(tmp_path, HEAD + stage(1, 5, kind=3)))[0][0] == "gpu_user_annotation"


def test_shapes_of_products_are_kept(tmp_path: Path) -> None:
    shapes = text(4, text(10, "Input Dims") + text(12, text(12, number(4, 2)) + text(12, number(4, 3))))

    (row,) = read(tmp_path, HEAD + begin(1, 1, 1, shapes) + end(2)).rows("operation_input")
    assert row["shapes"] == "[[2,3]]"


@pytest.mark.parametrize(
    ("tail", "code"),
    [
        (begin(70, 1, 1), "pftrace_unended_slice"),
        (b"\x0a\x7f\x01", "pftrace_truncated"),
        (text(1, b"\x42\xff"), "pftrace_damaged_packet"),
        (text(1, text(52, b"")), ""),
        (packet(text(11, number(9, 1) + number(11, 71)), at_ns=None), "pftrace_unended_slice"),
    ],
)
def test_damage_is_counted_and_the_rest_kept(tmp_path: Path, launch: bytes, tail: bytes, code: str) -> None:
    reading = read(tmp_path, HEAD + launch + tail)

    assert len(reading.events) == 3
    assert reading.codes == ([code] if code else [])


def test_a_file_of_nothing_says_so(tmp_path: Path) -> None:
    assert "pftrace_no_events" in read(tmp_path, CLOCKS).codes


def test_other_perfetto_traces_are_not_taken_for_it() -> None:
    other = packet(text(6, text(1, number(1, 6) + number(2, 5)) + text(1, number(1, 1) + number(2, EPOCH))), at_ns=0)

    assert SOURCE.recognises(HEAD)
    assert not any(map(SOURCE.recognises, (other, THREAD, b"", b"\x0a", b"\x0a\x05/device:GPU:0", b"{}")))


@given(place=st.integers(0, 2_000), noise=st.binary(max_size=24), cut=st.integers(0, 300))
def test_no_damage_ends_in_anything_but_rows_and_issues(
    tmp_path_factory: pytest.TempPathFactory, place: int, noise: bytes, cut: int
) -> None:
    whole = HEAD + begin(10, 1, 1, argument("correlation", 5), text(3000, number(1, 9))) + end(50) + stage(60, 40)
    data = whole[:place] + noise + whole[place + len(noise) :]

    reading = read(tmp_path_factory.mktemp("damaged"), data[: len(data) - cut])

    lost = sum(issue.lost_events for issue in reading.summary.issues)
    assert reading.summary.event_count == reading.summary.stored_count + lost
    assert len(reading.events) == reading.summary.stored_count
