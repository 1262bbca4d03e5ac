"""The lines of an Inspector file, in whatever container and of whatever length."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from traceforge.reading.lines import bounded_lines
from traceforge.reading.stream import ByteStream
from traceforge.records import Batch, ReadOptions, SourceSummary
from traceforge.sources.nccl_inspector import SOURCE


def line(number: int) -> bytes:
    return json.dumps(
        {
            "header": {"id": "0x1", "rank": 0, "n_ranks": 2, "nnodes": 1},
            "metadata": {"inspector_output_format_version": "v4.0"},
            "coll_perf": {"coll": "AllReduce", "coll_sn": number, "coll_msg_size_bytes": 1, "coll_exec_time_us": 3},
        }
    ).encode()


def marker(rank: int, records: int, dropped: int = 0) -> bytes:
    """What begins a dump of a communicator since format 4.3."""
    return json.dumps(
        {
            "header": {"id": "0x1", "rank": rank, "n_ranks": 2, "nnodes": 1},
            "metadata": {"inspector_output_format_version": "v4.4", "hostname": "node1", "pid": 7},
            "dump_stats": {"coll_records": records, "p2p_records": 0, "coll_dropped_since_last_dump": dropped},
        }
    ).encode()


def operation(number: int) -> bytes:
    """What follows a marker: it does not say whose it is."""
    perf = {"coll": "AllReduce", "coll_algo": "RING", "coll_sn": number, "coll_exec_time_us": 3}
    return json.dumps({"coll_perf": perf}).encode()


def read_rows(path: Path, *lines: bytes) -> tuple[SourceSummary, list[dict[str, object]]]:
    path.write_bytes(b"\n".join(lines) + b"\n")
    batches: list[Batch] = []
    summary = SOURCE.read(path, batches.append, ReadOptions())
    return summary, [row for batch in batches for row in batch.rows.to_dicts()]


def read(path: Path) -> SourceSummary:
    batches: list[Batch] = []
    return SOURCE.read(path, batches.append, ReadOptions())


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress], ids=["plain", "gzip", "zstd"])
def test_every_container_gives_the_same_lines(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "job"
    path.write_bytes(pack(b"\n".join(line(n) for n in range(100))))

    assert read(path).stored_count == 100


def test_a_zstd_file_that_was_cut_off_says_so(tmp_path: Path) -> None:
    path = tmp_path / "job.zst"
    # given frames of which the last is not whole
    frames = [zstandard.compress(b"\n".join(line(n) for n in range(k, k + 50)) + b"\n") for k in (0, 50)]
    path.write_bytes(frames[0] + frames[1][:-3])

    summary = read(path)

    assert [issue.code for issue in summary.issues][-1] == "nccl_inspector_damaged_compression"


def test_a_line_that_is_too_long_is_counted_and_the_next_one_read(tmp_path: Path) -> None:
    path = tmp_path / "job.gz"
    path.write_bytes(gzip.compress(line(0) + b"\n" + b" " * 20_000_000 + b"\n" + line(1)))

    summary = read(path)

    assert (summary.event_count, summary.stored_count) == (3, 2)
    assert [(issue.code, issue.first_at) for issue in summary.issues] == [("nccl_inspector_unreadable_line", "line 2")]


def test_of_lines_that_are_too_long_nothing_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a\nlonger\n\nb\nlongest" * 100_000)

    with ByteStream(path) as stream:
        lines = list(bounded_lines(stream, 3))

    assert lines[:5] == [b"a", None, b"", b"b", None]
    assert lines[-1] is None
    assert len(lines) == 4 * 100_000 + 1


def test_operations_behind_a_marker_are_of_its_rank(tmp_path: Path) -> None:
    lines = (marker(0, 2), operation(1), operation(2), marker(1, 1), operation(1))

    summary, rows = read_rows(tmp_path / "job", *lines)

    assert [(row["rank"], row["sequence"], row["host"], row["comm_hash"]) for row in rows] == [
        (0, 1, "node1", "0x1"),
        (0, 2, "node1", "0x1"),
        (1, 1, "node1", "0x1"),
    ]
    assert (summary.event_count, summary.stored_count, summary.issues) == (3, 3, ())


def test_operations_that_the_inspector_lost_are_counted_and_were_never_in_the_file(tmp_path: Path) -> None:
    summary, _rows = read_rows(tmp_path / "job", marker(0, 1, dropped=5), operation(6), marker(0, 1, 2), operation(9))

    assert [(issue.code, issue.count, issue.lost_events) for issue in summary.issues] == [
        ("nccl_inspector_overwritten", 7, 0)
    ]


def test_a_count_that_no_dump_can_have_is_bounded(tmp_path: Path) -> None:
    summary, rows = read_rows(tmp_path / "job", marker(0, 1, dropped=2**70), operation(6))

    assert [row["rank"] for row in rows] == [0]
    assert [issue.count for issue in summary.issues] == [2**31]


def test_an_operation_whose_marker_is_damaged_is_of_nobody(tmp_path: Path) -> None:
    summary, rows = read_rows(tmp_path / "job", marker(0, 1), operation(1), marker(1, 2)[:40], operation(2))

    assert [row["rank"] for row in rows] == [0, None]
    assert {issue.code for issue in summary.issues} == {
        "nccl_inspector_unreadable_line",
        "nccl_inspector_without_rank",
    }
