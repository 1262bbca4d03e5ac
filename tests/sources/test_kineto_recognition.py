"""A Kineto trace is recognised by its content, and nothing else is."""

import subprocess
import sys

import pytest

from traceforge.sources.kineto import SOURCE


@pytest.mark.parametrize(
    "head",
    [
        b'{"schemaVersion": 1, "traceEvents": [{"ph": "X"}]}',
        b'\n{\n  "traceEvents" : [\n',
        b'\xef\xbb\xbf{"traceEvents": []}',
        b'{"schemaVersion": 1, "deviceProperties": [' + b'{"id": 0},' * 100,
        b'{"displayTimeUnit": "ms", "distributedInfo": {"pg_config": [',
        b'[{"ph": "X", "cat": "Operator", "name": "aten::empty", "ts": 1}',
        b'[\n\n  {\n    "ph": "X", "cat": "Operator", \n    "name": "a"',
        b'[{"name": "forward", "pid": 0, "ts": 1, "ph": "X"}]',
    ],
)
def test_traces_of_every_era_are_recognised(head: bytes) -> None:
    assert SOURCE.recognises(head)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"[]",
        b"{}",
        b'{"schema": "1.0.2-chakra.0.0.4", "pid": 1, "nodes": [{"id": 1}]}',
        b'{\n  "schema": "1.1.1-chakra.0.0.4", "pid": 7, "time": "2024", "start_ts": 5,\n  "nodes": [',
        b'{"workload_graph": [{"name": "a"}]}',
        b'{"schemaVersion": 1, "nodes": [{"name": "a"}]}',
        b'{"version": "0.0.4", "nodes": []}',
        b'[{"name": "a", "value": 1}]',
        b"[1, 2, 3]",
        # what JAX writes beside an XPlane file, and what it makes of that for Perfetto
        b'{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[{"ph":"M","pid":1}]}',
        b'{"displayTimeUnit": "ns", "traceEvents": [{"args": {"name": "/host:CPU"}, "name": "process_name"}]}',
        # Ascend's, whose device events have no category
        b'[{"name": "process_name", "pid": 7, "args": {"name": "Ascend Hardware"}, "ph": "M"}]',
        # Horovod's timeline, and what NCCL's example of a profiler plug-in writes
        b'[\n{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 100, "pid": 1},',
        b'[\n{"name": "AllReduce", "cat": "COLL", "ph": "b", "id": 0, "pid": 7, "tid": 1, "ts": 1.5, "args": {}},',
        # PyTorch's profiler before 1.8, and ONNX Runtime's
        b'[{"name": "aten::add", "ph": "X", "ts": 1.5, "dur": 2.0, "tid": 1, "pid": "CPU functions", "args": {}}]',
        b'[\n{"cat" : "Session","pid" :7,"tid" :7,"dur" :9,"ts" :5,"ph" : "X","name" :"session_run"}',
        b"node1:123:456 [0] NCCL INFO Bootstrap",
        b"\x00\x01\x02binary",
        b'{"loss": 0.5}\n{"loss": 0.4}',
    ],
)
def test_other_files_are_left_to_others(head: bytes) -> None:
    assert not SOURCE.recognises(head)


def test_recognising_a_file_loads_no_heavy_library() -> None:
    code = (
        "import sys; from traceforge.sources.kineto import SOURCE; SOURCE.recognises(b'{}');"
        "sys.exit(bool({'polars', 'numpy', 'msgspec'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_trace_in_utf_16_is_taken_so_that_it_can_be_refused_with_the_reason(encoding: str) -> None:
    assert SOURCE.recognises('\ufeff{"traceEvents": []}'.encode(encoding))
