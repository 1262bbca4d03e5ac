"""NCCL's own NVTX ranges say what its kernels move, and between whom, where the export holds their payloads.

No public export holds payloads: these are made by the layouts that public exports state for NCCL.
"""

import json
import struct
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.given import add_facts, built, rows_of
from tests.sources.nsys_exports import Export, call, export, kernel, nvtx, process, read
from tests.sources.test_nsys_parquet import UNSIGNED
from traceforge.sources.nsys import NsysSource
from traceforge.store.database import Store

__all__ = ["export"]
Rows = list[dict[str, Any]]
COMMUNICATOR, SIZE, PEER = "NCCL communicator ID", "Message size [bytes]", "Peer rank"
UINT64, INT, BYTES, REDUCTION = 18, 5, 22, 16777232
LAYOUTS = {
    16777218: [(UINT64, COMMUNICATOR, None), (INT, "No. of ranks", 8), (INT, "Rank", 12), (INT, "CUDA device", 16)],
    16777223: [(UINT64, COMMUNICATOR, None), (BYTES, SIZE, 8), (REDUCTION, "Reduction operation", 16)],
    16777220: [(UINT64, COMMUNICATOR, None), (BYTES, SIZE, 8)],
    16777225: [(UINT64, COMMUNICATOR, None), (BYTES, SIZE, 8), (INT, PEER, 16)],
}
INIT, REDUCE, GATHER, MESSAGE = LAYOUTS
ENTRIES = [
    {"domainId": 1, "schemaId": schema, "idx": place, "type": kind, "name": label, "offset": offset}
    for schema, fields in LAYOUTS.items()
    for place, (kind, label, offset) in enumerate(fields)
]
SCHEMAS = {
    "NVTX_PAYLOAD_SCHEMAS": [{"domainId": 1, "schemaId": schema, "payloadSize": 24} for schema in LAYOUTS],
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": ENTRIES,
}
ALL, PAIR = 0xF00DFACE12345678, 0xABC


def payload(schema: int, communicator: int, *values: int) -> bytes:
    """A payload as an export holds it: its header, then 24 bytes by its layout."""
    body = {
        INIT: struct.pack("<Qiii4x", communicator, *values) if schema == INIT else b"",
        REDUCE: struct.pack("<QQi4x", communicator, *values) if schema == REDUCE else b"",
        GATHER: struct.pack("<QQ", communicator, *values) if schema == GATHER else b"",
        MESSAGE: struct.pack("<QQi4x", communicator, *values) if schema == MESSAGE else b"",
    }[schema]
    return struct.pack("<QQQQ", 1, schema, len(body), 32 + len(body)) + body


def ranges(text: str, start: int, end: int, data: object = None, pid: int = 7, **columns: object) -> dict[str, Any]:
    return nvtx(text, start, end, globalTid=process(pid) + pid, domainId=1, binaryData=data, **columns)


def launched(start: int, number: int, name: int = 4, pid: int = 7) -> tuple[dict[str, object], dict[str, object]]:
    """A call that launches, and its kernel, 50 later."""
    names = {"correlationId": number, "demangledName": name, "shortName": name}
    own = {"globalTid": process(pid) + pid, "correlationId": number}
    return call(start, start + 5, pid, **own), kernel(start + 50, start + 90, pid, **names)


def report(export: Export, events: Rows, pairs: list[tuple[Any, Any]], **tables: Rows) -> Path:
    kernels = {"CUPTI_ACTIVITY_KIND_RUNTIME": [one for one, _ in pairs]}
    kernels["CUPTI_ACTIVITY_KIND_KERNEL"] = [one for _, one in pairs]
    return export(NVTX_EVENTS=events, **kernels, **{**SCHEMAS, **tables})


def carried(path: Path, part: str | None = None) -> list[tuple[object, ...]]:
    """By start of its kernel, what each call is, of whom, bytes in and out, and the peer."""
    reading = read(path, part)
    starts = {event["event_id"]: event["raw_start_ns"] for event in reading.events}
    columns = ("collective_name", "process_group_name", "in_elements", "out_elements", "group_rank")
    return [(starts[row["event_id"]], *(row[name] for name in columns)) for row in reading.rows("collective")]


def test_a_kernel_is_of_the_call_within_which_it_was_launched(export: Export) -> None:
    # given 4,096 bytes to sum, and a kernel that is launched after the call
    path = report(export, [ranges("ncclAllReduce", 100, 120, payload(REDUCE, ALL, 4096, 0))],
                  [launched(105, 1), launched(130, 2)])  # fmt: skip

    assert carried(path) == [(155, "AllReduce", f"NCCL communicator {ALL:#x}", 4096, 4096, None)]
    (group,) = read(path).rows("process_group")
    assert (group["process_group_name"], group["size"]) == (f"NCCL communicator {ALL:#x}", None)


def test_what_a_call_gathers_is_known_with_the_size_of_its_communicator(export: Export) -> None:
    # given two communicators, one of which the process joined, as rank 1 of 4, while it was recorded
    events = [
        ranges("ncclCommInitRankConfig", 0, 9, payload(INIT, ALL, 4, 1, 0)),
        ranges("ncclAllGather", 100, 120, payload(GATHER, ALL, 1000)),
        ranges("ncclAllGather", 200, 220, payload(GATHER, PAIR, 1000)),
        ranges("ncclReduceScatter", 300, 320, payload(REDUCE, ALL, 1000, 0)),
    ]
    path = report(export, events, [launched(at, at) for at in (105, 205, 305)])

    assert [(name, sent, received) for _, name, _, sent, received, _ in carried(path)] == [
        ("AllGather", 1000, 4000),
        ("AllGather", 1000, None),
        ("ReduceScatter", 4000, 1000),
    ]


def test_a_kernel_of_a_group_carries_all_its_calls(export: Export) -> None:
    # given a send and a receive within a group within a group, launched at its end, and another group with one send
    events = [
        ranges("ncclGroupStart", 100, 101),
        ranges("ncclGroupStart", 102, 103),
        ranges("ncclSend", 104, 105, payload(MESSAGE, PAIR, 600, 1)),
        ranges("ncclRecv", 106, 107, payload(MESSAGE, PAIR, 400, 1)),
        ranges("ncclGroupEnd", 108, 109),
        ranges("ncclGroupEnd", 110, 130),
        ranges("ncclGroupStart", 200, 201),
        ranges("ncclSend", 204, 205, payload(MESSAGE, PAIR, 64, 3)),
        ranges("ncclGroupEnd", 210, 230),
    ]
    path = report(export, events, [launched(115, 1), launched(215, 2)])

    name = f"NCCL communicator {PAIR:#x}"
    assert carried(path) == [(165, "SendRecv", name, 1000, 1000, None), (265, "Send", name, 64, 64, 3)]


def test_a_group_on_several_communicators_tells_no_size(export: Export) -> None:
    events = [
        ranges("ncclGroupStart", 100, 101),
        ranges("ncclAllReduce", 104, 105, payload(REDUCE, PAIR, 600, 0)),
        ranges("ncclAllReduce", 106, 107, payload(REDUCE, ALL, 600, 0)),
        ranges("ncclGroupEnd", 110, 130),
    ]

    assert carried(report(export, events, [launched(115, 1)])) == []


def test_payloads_as_json_say_the_same(export: Export) -> None:
    said = json.dumps({COMMUNICATOR: hex(ALL), SIZE: 4096, "Reduction operation": "Sum"})
    path = report(export, [ranges("ncclAllReduce", 100, 120, jsonText=said)], [launched(105, 1)])

    assert carried(path) == [(155, "AllReduce", f"NCCL communicator {ALL:#x}", 4096, 4096, None)]


@pytest.mark.parametrize(
    "data",
    [
        b"short",
        struct.pack("<QQQQ", 1, 99, 24, 56) + bytes(24),
        struct.pack("<QQQQ", 1, REDUCE, 2**60, 56) + bytes(24),
        "text \xff that is none",
    ],
)
def test_bytes_that_fit_no_layout_are_counted(export: Export, data: object) -> None:
    reading = read(report(export, [ranges("ncclAllReduce", 100, 120, data)], [launched(105, 1)]))

    assert reading.rows("collective") == []
    assert reading.issue("nsys_payload_unreadable").count == 1


def test_payloads_that_were_left_out_are_told(export: Export) -> None:
    reading = read(report(export, [ranges("ncclAllReduce", 100, 120)], [launched(105, 1)]))

    assert "--include-blobs" in reading.issue("nsys_payloads_not_exported").detail


def test_processes_of_one_communicator_have_its_ranks(export: Export) -> None:
    # given a host with ranks 2 and 3 of 4, each of which joined a pair as well
    events = [
        ranges(text, at, at + 1, payload(INIT, number, size, rank, 0), pid)
        for pid, place in ((7, 2), (8, 3))
        for text, at, number, size, rank in (
            ("ncclCommInitRank", 10, ALL, 4, place), ("ncclCommSplit", 20, PAIR, 2, place - 2))
    ]  # fmt: skip
    path = report(export, events, [launched(105, 1), launched(105, 1, pid=8)])

    assert [(read(path, part).summary.rank, read(path, part).summary.world_size) for part in NsysSource().parts(path)] \
        == [(2, 4), (3, 4)]  # fmt: skip


def test_a_process_alone_may_have_joined_a_part_of_the_job(export: Export) -> None:
    path = report(export, [ranges("ncclCommInitRank", 10, 11, payload(INIT, PAIR, 2, 1, 0))], [launched(105, 1)])

    assert read(path).summary.rank is None


@pytest.mark.parametrize("as_parquet", [False, True])
def test_calls_are_matched_within_their_communicators(export: Export, tmp_path: Path, as_parquet: bool) -> None:
    # given processes 7 to 10: the first two and the last two sum in a pair each, then all sum together
    pairs, events = [], []
    for place, pid in enumerate(range(7, 11)):
        for step in range(4):
            at = 1_000_000 * (step + 1)
            own = PAIR + place // 2
            events += [
                ranges("ncclAllReduce", at, at + 120, payload(REDUCE, own, 100, 0), pid),
                ranges("ncclAllReduce", at + 300, at + 420, payload(REDUCE, ALL, 4000, 0), pid),
            ]
            for start, number in ((at + 5, 2 * step), (at + 305, 2 * step + 1)):
                one, two = launched(start, number, pid=pid)
                pairs.append((one, two | {"deviceId": place}))
    path = report(export, events, pairs)
    if as_parquet:
        path = converted(path, tmp_path / "report_pqtdir")

    with Store(None, is_kept=False) as store:
        add_facts(store, path)
        built(store, "timeline.collective", "timeline.communicator")
        found = rows_of(
            store,
            "SELECT c.ranks, m.size_bytes, COUNT(*) FROM timeline.collective AS m"
            " JOIN timeline.communicator AS c USING (run_id, communicator_id) GROUP BY ALL ORDER BY ALL",
        )

    assert found == [([0, 1], 100, 4), ([0, 1, 2, 3], 4000, 4), ([2, 3], 100, 4)]


def converted(report: Path, folder: Path) -> Path:
    """The same tables as Parquet."""
    import sqlite3

    folder.mkdir()
    connection = sqlite3.connect(report)
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        cursor = connection.execute(f"SELECT * FROM {table}")
        columns = [column[0] for column in cursor.description]
        frame = pl.DataFrame(cursor.fetchall(), schema=columns, orient="row", infer_schema_length=None)
        types = [pl.col(column).cast(kind) for column, kind in UNSIGNED.items() if column in frame.columns]
        frame.with_columns(types).write_parquet(folder / f"{table}.parquet")
    connection.close()
    return folder
