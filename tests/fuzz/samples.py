"""Small sound files of every format but Kineto. In: nothing. Out: bytes by format, for fuzzing to change.

Written by hand or with the writers of the sources' own tests, which share no code with the readers.
"""

import json
import pickle
import sqlite3
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.sources.chakra_wire import attribute, field, framed, metadata, node
from tests.sources.nccl_logs import HEAD, call, init
from tests.sources.nsys_exports import EPOCH, STRINGS, nvtx
from tests.sources.nsys_exports import call as api_call
from tests.sources.nsys_exports import kernel as nsys_kernel
from tests.sources.operation_tables import parquet, pipeline
from tests.sources.test_chakra_json import BINARY, DOCUMENTS, jsonized
from tests.sources.test_live_log import NAMES, OPENING
from tests.sources.test_nccl_exceptions import EARLY_WATCHDOG, ERROR, OLD, REMOTE, WATCHDOG
from tests.sources.test_nccl_exceptions import SYSTEM as SYSTEM_ERROR
from tests.sources.test_nccl_neighbours import DUMP, GRAPHS, SYSTEM, line
from tests.sources.test_pftrace import HEAD as PACKETS
from tests.sources.test_pftrace import argument, begin, end, stage
from tests.sources.test_pytorch_et import flat, nested, trace
from tests.sources.test_rocpd import TIMES, TRACKS, database
from tests.sources.test_rocprof import dispatch, process, record
from tests.sources.test_telemetry import DMON, QUERY, answer, exported
from tests.sources.test_xplane import event, named, plane
from tests.sources.test_xplane import line as xplane_line
from traceforge.live.layout import MAGIC, RowKind, facts_frame, rows_frame

Tables = dict[str, list[dict[str, Any]]]
_OPENING = (
    f"{HEAD}NCCL version 2.21.5+cuda12.4",
    f"{HEAD}NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
    f"{HEAD}Bootstrap : Using eth0:10.0.0.1<0>",
    init(rank=1),
    f"{HEAD}NCCL_DEBUG set by environment to INFO.",
)
_PATHS = (
    f"{HEAD}Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
    f"{HEAD}Channel 01/0 : 1[1] -> 0[0] [send] via NET/IB/0/GDRDMA",
    f"{HEAD}Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1",
)


def sound() -> dict[str, list[bytes]]:
    """Files by the name of their source."""
    old = trace([flat(3, "aten::mm", 2, 11), flat(2, "step", 1, 10), flat(1, "process", 1, 0)], "1.0.1")
    new = trace([nested(3, "record_param_comms", 2, 11, values=[[1], 5]), nested(1, "process", 1, 0)])
    return {
        "chakra": [BINARY, _chakra_of_types(), jsonized(DOCUMENTS), jsonized(DOCUMENTS, None), _feeder()],
        "flight_recorder": [
            pickle.dumps(DUMP, protocol=2),
            pickle.dumps(DUMP, protocol=4),
            json.dumps(DUMP).encode(),
        ],
        "live_log": [_recording()],
        "nccl_inspector": [line() + line(coll="Broadcast"), line(event_trace_ts={"kernel_events": [{}]})],
        "nccl_log": [_log(), *_logs_of_one_thing()],
        "nccl_topology": [SYSTEM, GRAPHS],
        "nsys": [sqlite_file(tables) for tables in (*exports(), *_exports_of_one_thing())],
        "operation_table": [parquet(pipeline(2)), parquet(pipeline(1), mc=0)],
        "pftrace": [_packets()],
        "pytorch_et": [json.dumps(old).encode(), json.dumps(new).encode()],
        "rocprof": [json.dumps({"rocprofiler-sdk-tool": [_rocprof_process(), _rocprof_process(909)]}).encode()],
        "rocpd": [rocpd("_018f"), rocpd("_018f", "_018e"), *_databases_of_one_thing()],
        "telemetry": [
            QUERY.encode(),
            DMON.encode(),
            answer(exported("DCGM_FI_DEV_SM_CLOCK", "1410"), exported("DCGM_FI_DEV_POWER_USAGE", "699.8")).encode(),
        ],
        "xplane": [_xplane(), *_planes_of_one_thing()],
    }


def exports() -> list[Tables]:
    """Tables of two exports of Nsight Systems: of processes, and of devices alone."""
    strings = [{"id": number, "value": text} for number, text in STRINGS.items()]
    copy = {"start": 5, "end": 9, "deviceId": 0, "streamId": 7, "correlationId": 6, "globalPid": 0, "copyKind": 1,
            "bytes": 64}  # fmt: skip
    whole: Tables = {
        "META_DATA_EXPORT": [{"name": "x", "value": "y"}],
        "StringIds": strings,
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": EPOCH}],
        "TARGET_INFO_SYSTEM_ENV": [{"name": "DeviceEnvironment", "value": "RANK=3\nWORLD_SIZE=8"}],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [api_call(100, 110), api_call(120, 130, 8)],
        "CUPTI_ACTIVITY_KIND_KERNEL": [nsys_kernel(150, 190), nsys_kernel(200, 220, 8)],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [copy],
        "NVTX_EVENTS": [
            nvtx("aten::mm, op_id = 12, sizes = [[2, 3], [3, 4]]", 0, 9),
            nvtx(None, 2, 3, textId=4),
            nvtx("MPI Rank 5", 0, None, eventType=39),
        ],
    }
    bare: Tables = {
        "META_DATA_EXPORT": [{"name": "x", "value": "y"}],
        "StringIds": strings,
        "CUPTI_ACTIVITY_KIND_KERNEL": [{"start": 1, "end": 2, "deviceId": n, "shortName": 1} for n in range(2)],
    }
    return [whole, bare]


def _exports_of_one_thing() -> list[Tables]:
    """Ranges alone, and calls with their kernels alone: sooner read, so that more changes are tried."""
    whole, _ = exports()
    about = ("META_DATA_EXPORT", "StringIds", "TARGET_INFO_SESSION_START_TIME")
    things = (("NVTX_EVENTS",), ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL"))
    return [{name: whole[name] for name in (*about, *thing)} for thing in things]


def sqlite_file(tables: Tables) -> bytes:
    """A file of SQLite that holds some tables; what cannot be a table is left out."""
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA page_size = 512")
    for table, rows in tables.items():
        columns = list(rows[0])
        quoted = ", ".join(f'"{column}"' for column in columns)
        connection.execute(f'CREATE TABLE "{table}" ({quoted})')
        marks = ", ".join("?" * len(columns))
        values = [tuple(row.get(column) for column in columns) for row in rows]
        connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', values)
    connection.commit()
    data = connection.serialize()
    connection.close()
    return data


@cache
def sqlite_tables(data: bytes) -> Tables:
    """The tables of a sound file of SQLite that have rows; to be copied before they are changed."""
    connection = sqlite3.connect(":memory:")
    connection.deserialize(data)
    connection.row_factory = sqlite3.Row
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {name: [dict(row) for row in connection.execute(f'SELECT * FROM "{name}"')] for name in names}
    connection.close()
    return {name: rows for name, rows in found.items() if rows}


def rocpd(*processes: str, more: str = "") -> bytes:
    """A database of rocprofv3 with these processes."""
    with tempfile.TemporaryDirectory() as folder:
        return database(Path(folder) / "a.db", *processes, more=more).read_bytes()


def _databases_of_one_thing() -> list[bytes]:
    """Without copies by schema 4.1, and kernels alone by schema 4.0."""
    left_out = (
        (TRACKS, ("memory_copy", "info_agent")),
        (TIMES, ("region", "memory_copy", "info_category")),
    )
    found = []
    for schema, tables in left_out:
        whole = sqlite_tables(rocpd("_018f", more=schema))
        names = {f"rocpd_{table}_018f" for table in tables}
        found.append(sqlite_file({name: rows for name, rows in whole.items() if name not in names}))
    return found


def _chakra_of_types() -> bytes:
    kinds = {"double": 1.5, "int32": -3, "uint64": 2**63, "sint64": -5, "fixed32": 7, "bool": True, "string": "a"}
    attributes = [attribute(kind, kind, value) for kind, value in kinds.items()]
    lists = [attribute(f"{kind} list", kind, [value, value]) for kind, value in kinds.items()]
    shapes = ("[[1, 2]]", "[[[4]]]", '["float"]')
    return framed(metadata("0.0.4", attributes), node(1, "op", inputs=shapes, attributes=[*attributes, *lists]))


def _feeder() -> bytes:
    return json.dumps({"workload_graph": [document for document in DOCUMENTS if "id" in document]}).encode()


def _log() -> bytes:
    return _text(
        *_OPENING,
        *_PATHS,
        *(call(op_count=count, elements=1 << count) for count in range(12)),
        "node-1:4711:4720 [0] NCCL WARN Call to connect returned Connection refused",
        "[2025-01-02 03:04:05] " + call(op="Broadcast", op_count=13),
    )


def _logs_of_one_thing() -> list[bytes]:
    calls = [call(op_count=count, elements=1 << count) for count in range(3)]
    return [_text(*_OPENING), _text(init(rank=1), *_PATHS), _text(init(rank=1), *calls), _exceptions()]


def _exceptions() -> bytes:
    """Output without a line of NCCL's own: two ranks in turns, two watchdogs, an old release."""
    return _text(
        "[rank1]: Traceback (most recent call last):",
        f"[rank1]: {ERROR}:3699, remote process exited or there was a network error, NCCL version 2.27.3",
        f"[rank0]: {ERROR}:3690, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.3",
        f"[rank1]: {REMOTE}",
        f"[rank0]: {SYSTEM_ERROR}",
        "[rank0]: Last error:",
        "[rank1]: Last error:",
        "step 110 loss 2.30",
        "[rank0]: Call to ibv_reg_mr failed",
        "[rank1]: socketProgress: Connection closed by remote peer node1<50012>",
        *(WATCHDOG, SYSTEM_ERROR, "Last error:", "", "Exception raised from checkForNCCLErrorsInternal at NCCL.cpp:1"),
        *(EARLY_WATCHDOG, REMOTE, OLD),
    )


def _text(*lines: str) -> bytes:
    return "\n".join(lines).encode() + b"\n"


def _packets() -> bytes:
    calls = begin(0, 1, 1) + begin(10, 2, 2, argument("correlation", 9)) + end(20) + end(30)
    return PACKETS + calls + stage(25, 40) + stage(70, 5, event_id=2)


def _recording() -> bytes:
    """By the recorder's own writer, the only one that there is."""
    rows = [
        (RowKind.PHASE, 0, 10, 40, 0, 0, 0),
        (RowKind.COLLECTIVE, 1, 20, 30, 7, 10, 0),
        (RowKind.STEP, 0, 5, 50, 3, 0, 0),
        (RowKind.STEP, 0, 50, 90, 4, 0, 0),
        (RowKind.DEVICE_MARK, 0, 12, 14, 0, 0, 0),
        (RowKind.DEVICE_COLLECTIVE, 1, 300_020, 300_030, 8, 300_000, 1),
        (RowKind.DEVICE_MARK, 0, 25, 400_000, 1, 0, 0),
        (RowKind.STEP, 0, 90, 500_000, 5, 0, 0),
    ]
    return MAGIC + OPENING + NAMES + rows_frame(rows) + facts_frame({"ended": True})


def _rocprof_process(pid: int = 908) -> dict[str, object]:
    return process(
        pid,
        hip_api=[record(100, 110, kind=1, operation=1)],
        kernel_dispatch=[dispatch(150, 190), dispatch(200, 201)],
        memory_copy=[
            record(1, 3, kind=2, operation=1, bytes=64, dst_agent_id={"handle": 40}, src_agent_id={"handle": 39})
        ],
        marker_api=[record(1, 9, 5, kind=3, operation=0)],
    )


def _xplane() -> bytes:
    other = plane("/device:GPU:1", xplane_line("Stream #17(Kernel)", event(1, 0, 1000, 6), event(1, 9000, 1000, 7)))
    return _GPU + other + _TPU + _HOST + _ENVIRONMENT + field(4, "node7")


def _planes_of_one_thing() -> list[bytes]:
    return [_GPU + _ENVIRONMENT, _TPU, _TPU + _HOST + field(4, "node7")]


_GPU = plane("/device:GPU:0", xplane_line("Stream #16(Kernel)", event(1, 100_000, 40_500, 5), start_ns=900))
_TPU = plane("/device:TPU:0", xplane_line("XLA Ops", event(1, 0, 10)), xplane_line("Steps", event(3, 0, 9)))
_HOST = plane("/host:CPU", xplane_line("python", event(2, 100_000, 10_000, 5), event(3, 0, 999_000)))
_ENVIRONMENT = plane("Task Environment", stats=field(6, field(1, 8) + field(3, EPOCH)) + named(5, a=3))
